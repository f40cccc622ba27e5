#!/bin/sh
# Prints what the environment needs for building with the tag cuda (no CUDA toolkit is needed):
#
#   eval "$(backend/cuda/env.sh)"; go build -tags cuda ./...
#
# or, one value at a time, for a Makefile: env.sh cflags, env.sh ldflags.
#
# gorgonia.org/cu includes <cuda.h> and links -lcuda; these flags lead it to the project's own
# header and to an empty libcuda.a, before any that the system has. The header's checksum is among
# them because Go does not see a change of a header outside the package that includes it.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)/internal/driver
sum=$(cksum <"$here/cuda.h")
cflags="\"-I$here\" -DSPMM_CUDA_SUM=${sum%% *}"
ldflags="\"-L$here/stub\""
# Set already, by an outer make say: keep, lest the flags grow and everything is built anew.
case ${CGO_CFLAGS-} in *"$cflags"*) cflags=$CGO_CFLAGS ;; *) cflags="$cflags ${CGO_CFLAGS:--O2 -g}" ;; esac
case ${CGO_LDFLAGS-} in *"$ldflags"*) ldflags=$CGO_LDFLAGS ;; *) ldflags="$ldflags ${CGO_LDFLAGS:--O2 -g}" ;; esac
case ${1-} in
cflags) printf '%s\n' "$cflags" ;;
ldflags) printf '%s\n' "$ldflags" ;;
'') printf "export CGO_CFLAGS='%s'\nexport CGO_LDFLAGS='%s'\n" "$cflags" "$ldflags" ;;
*)
	echo "usage: env.sh [cflags|ldflags]" >&2
	exit 2
	;;
esac
