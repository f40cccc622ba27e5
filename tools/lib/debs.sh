# Folders of unpacked Debian packages, made on first use and cached. Sourced by the scripts in tools/.
#
# Packages come from the machine's own Debian mirror, of the suites named here, whatever release the
# machine runs. Nothing is installed: apt works on a private state, so no root is needed.

me=${me:-${0##*/}} # the name that messages begin with

# die says in one line why nothing can be done. Exit 3: something is not available.
die() { printf '%s: %s\n' "$me" "$*" >&2; exit 3; }

say() { printf '%s: %s\n' "$me" "$*" >&2; }

# cache_root prints the folder that all cached folders lie in.
cache_root() {
	local root=${XDG_CACHE_HOME:-}
	[[ $root == /* ]] || root=${HOME:-/tmp}/.cache
	[[ $root != *[:\$]* ]] || die "cannot use the cache folder $root: its name holds ':' or '\$'; set XDG_CACHE_HOME"
	printf '%s/spmm\n' "$root"
}

# ensure NAME RECIPE makes sure that the cached folder NAME exists and prints its path. RECIPE STAGE
# FINAL fills an empty folder STAGE, which is then renamed to FINAL: a folder is complete or absent.
# It must return a failure or die; set -e does not work in it.
# A recipe's changes call for a new NAME (they end in a version).
ensure() {
	local name=$1 recipe=$2 root final stage
	root=$(cache_root) || exit
	final=$root/$name
	if [[ ! -d $final ]]; then
		mkdir -p "$root" 2>/dev/null || die "cannot create $root; set XDG_CACHE_HOME to a folder that can be written"
		(
			flock 9
			[[ ! -d $final ]] || exit 0 # another process made it meanwhile
			supported_machine
			rm -rf "$root/$name".tmp.* # left by one that was stopped
			stage=$(mktemp -d "$root/$name.tmp.XXXXXX") || die "cannot write in $root"
			trap 'rm -rf "$stage"' EXIT
			trap 'exit 130' INT TERM HUP
			say "setting up $name in $root (first use)"
			"$recipe" "$stage" "$final" && chmod 755 "$stage" && mv -T "$stage" "$final" || die "setting up $name failed"
			say "$name is ready"
		) 9>"$root/$name.lock" >&2 || exit
	fi
	printf '%s\n' "$final"
}

supported_machine() {
	local id=
	[[ $(uname -m) == x86_64 ]] || die "needs an amd64 machine, this is $(uname -m)"
	id=$(. /etc/os-release 2>/dev/null && echo "$ID") || true
	[[ $id == debian ]] || die "needs Debian, this is ${id:-an unknown system}"
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || die "needs apt-get and dpkg-deb"
}

# unpack STAGE COMPONENTS SUITES PACKAGE... downloads the packages with all they depend on and
# unpacks them into STAGE. SUITES is "trixie" or "trixie trixie-backports"; the last is preferred.
# A package written PACKAGE! is fetched alone, without what it depends on. With unpack_only=./FOLDER
# in the environment only that folder of the packages is unpacked.
unpack() {
	local stage=$1 components=$2 suites=$3 apt=$1/.apt suite deb
	shift 3
	local with=() alone=() prefer=${suites##* }
	for p in "$@"; do
		case $p in *!) alone+=("${p%!}") ;; *) with+=("$p") ;; esac
	done
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" || die "cannot write in $stage"
	: >"$apt/status"
	local mirror
	mirror=$(mirror /etc/apt "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")") || exit
	for suite in $suites; do
		printf 'deb %s %s %s\n' "$mirror" "$suite" "$components"
	done >"$apt/sources.list"
	private_apt "$apt" >"$apt/apt.conf"
	apt "$apt" "reading the package lists of $suites" apt-get -q update
	if ((${#with[@]})); then
		apt "$apt" "downloading ${with[*]}" apt-get -q -y -t "$prefer" --no-install-recommends --download-only install "${with[@]}"
	fi
	if ((${#alone[@]})); then
		(cd "$apt/cache/archives" && apt "$apt" "downloading ${alone[*]}" apt-get -q -t "$prefer" download "${alone[@]}") || exit
	fi
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$stage" ${unpack_only:+"$unpack_only"} ||
			die "cannot unpack ${deb##*/} (is the disk full?)"
		dpkg-deb -W "$deb" >>"$stage/VERSIONS"
	done
	rm -rf "$apt"
}

# apt STATE WHAT COMMAND... runs an apt command on the private state.
apt() {
	local state=$1 what=$2 why
	shift 2
	say "$what"
	if ! APT_CONFIG=$state/apt.conf DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@" >"$state/log" 2>&1 </dev/null; then
		why=$(grep -m1 '^E: ' "$state/log" | cut -c4-300) || true
		die "$what failed: ${why:-$(tail -n1 "$state/log")} (is there a network, and does the mirror in the machine's apt sources have it? SPMM_DEBIAN_MIRROR=URL names another)"
	fi
}

# private_apt STATE prints an apt configuration: the machine's settings for downloads (proxies,
# expiry), and everything else in STATE.
private_apt() {
	apt-config dump Acquire | grep -v '^Acquire::IndexTargets'
	cat <<-END
		Dir::Etc::main "/dev/null";
		Dir::Etc::parts "/dev/null";
		Dir::Etc::sourcelist "$1/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State "$1";
		Dir::State::lists "$1/lists";
		Dir::State::status "$1/status";
		Dir::Cache "$1/cache";
		Dir::Log "$1";
		APT::Architecture "amd64";
		APT::Architectures { "amd64"; };
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Retries "3";
		APT::Update::Error-Mode "any";
		Debug::NoLocking "true";
	END
}

# mirror DIR RELEASE prints "[options] URI" of the machine's Debian mirror, as a sources line has it:
# the one that apt's configuration in DIR names for the machine's release.
mirror() {
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg best
	if [[ -n ${SPMM_DEBIAN_MIRROR:-} ]]; then
		printf '[signed-by=%s] %s\n' "$keyring" "$SPMM_DEBIAN_MIRROR"
		return
	fi
	best=$(sources "$1" | awk -v code="$2" '
		{ # fields: URI, options, suites, components; tab-separated
			fits = 0
			for (i = split($3, s, " "); i > 0; i--) if (s[i] == code || s[i] ~ /^(oldstable|stable|testing|unstable|sid)$/) fits = 1
			if (!fits) next
			if ($4 !~ /(^| )main( |$)/ || $1 ~ /^cdrom:/) next
			name = $1; sub(/\/+$/, "", name); sub(/\.list$/, "", name); sub(/.*\//, "", name)
			rank = name == "debian" ? 1 : $1 ~ /debian/ ? 2 : 3 # others publish suites of these names too
			print rank "\t[" $2 "] " $1
		}' FS='\t' | sort -s -n -k1,1 | head -n1 | cut -f2)
	[[ -n $best ]] || die "found no Debian mirror in $1/sources.list and $1/sources.list.d; set SPMM_DEBIAN_MIRROR=URL"
	[[ $best == *signed-by=* ]] || best="[signed-by=$keyring ${best#[}"
	printf '%s\n' "$best"
}

# sources DIR prints the binary package sources of apt's configuration, one a line: URI, options,
# suites and components, separated by tabs.
sources() {
	local f
	for f in "$1"/sources.list "$1"/sources.list.d/*.list; do
		[[ -r $f ]] && awk -v OFS='\t' '
			{ sub(/#.*/, "") }
			$1 == "deb" {
				line = $0; sub(/^[ \t]*deb[ \t]+/, "", line); opts = ""
				if (match(line, /^\[[^]]*\][ \t]*/)) {
					opts = substr(line, 2, RLENGTH); sub(/\].*/, "", opts); line = substr(line, RLENGTH + 1)
				}
				n = split(line, f, /[ \t]+/); comps = ""
				for (i = 3; i <= n; i++) comps = comps f[i] " "
				print f[1], keep(opts), f[2], comps
			}
			function keep(o,   n, a, i, r) { # the options that say whom to trust
				n = split(o, a, /[ \t]+/)
				for (i = 1; i <= n; i++) if (tolower(a[i]) ~ /^(signed-by=\/|trusted=)/) r = r (r == "" ? "" : " ") a[i]
				return r
			}' "$f"
	done
	for f in "$1"/sources.list.d/*.sources; do
		[[ -r $f ]] && awk -v OFS='\t' '
			function flush(   n, u, i, o) {
				if (v["types"] ~ /(^| )deb( |$)/ && tolower(v["enabled"]) != "no") {
					o = v["signed-by"] ~ /^\/[^ ]*$/ ? "signed-by=" v["signed-by"] : ""
					if (tolower(v["trusted"]) == "yes") o = o (o == "" ? "" : " ") "trusted=yes"
					n = split(v["uris"], u, " ")
					for (i = 1; i <= n; i++) print u[i], o, v["suites"], v["components"]
				}
				split("", v); key = ""
			}
			/^#/ { next }
			/^[ \t]*$/ { flush(); next }
			/^[ \t]/ { v[key] = v[key] " " trim($0); next }
			{ i = index($0, ":"); key = tolower(substr($0, 1, i - 1)); v[key] = trim(substr($0, i + 1)) }
			function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
			END { flush() }' "$f"
	done
	return 0
}
