#!/bin/bash
# Builds a peer of spmmrun bench from a checkout of published code:
#
#   bench/peers/published.sh NAME CHECKOUT [FLAGS OF NVCC]      # writes bin/peers/NAME
#
#   NAME        repository                     commit
#   rode        CRAFT-THU/RoDe                 f446e2980201
#   sputnik     google-research/sputnik        bbf5840ba5ef
#   gespmm      hgyhungry/ge-spmm              f62f51169eb2
#   flashsparse ParCIS/FlashSparse             168764612c1a
#   dtc         HPMLL/DTC-SpMM_ASPLOS24        66eca266bde1
#   acc         AI4SClab/AccSpMM               873420e86db9
#   voltrix     YaqiXia/Voltrix-SpMM           ea7ab6566f3c
#   hc          ZJU-DAILY/HC-SpMM              3484cf74b059
#   macko       vlejd/macko_spmv               afa70330a4c1
#   spinfer     xxyux/SpInfer                  ee689064cc04
#
# Patches that nvcc 13 needs go to copies in a temporary folder; the checkout stays as it is. Without a git folder
# CHECKOUT is taken to be of that commit.
set -euo pipefail
[[ $# -ge 2 ]] || { sed -n '2,20s/^# \{0,1\}//p' "$0" >&2; exit 2; }
name=$1 program=published.cu from=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
shift 2
out=${OUT:-$here/../../bin/peers}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $name in
rode) commit=f446e2980201 sources=(RoDe_SpMM RoDe_SDDMM utils) ;;
sputnik) commit=bbf5840ba5ef sources=(sputnik) ;;
gespmm) commit=f62f51169eb2 sources=(spmm_test.cu) ;;
flashsparse) commit=168764612c1a sources=(FlashSparse) ;;
dtc) commit=66eca266bde1 sources=(DTC-SpMM) program=windows.cu ;;
acc) commit=873420e86db9 sources=(include) program=windows.cu ;;
voltrix) commit=ea7ab6566f3c sources=(voltrix) program=windows.cu ;;
hc) commit=3484cf74b059 sources=(hybrid_kernel) program=windows.cu ;;
macko) commit=afa70330a4c1 sources=(src/macko_spmv/cuda) program=weights.cu ;;
spinfer) commit=ee689064cc04 sources=(csrc) program=weights.cu ;;
*) echo "published.sh: no peer $name: want rode, sputnik, gespmm, flashsparse, dtc, acc, voltrix, hc, macko or spinfer" >&2; exit 2 ;;
esac
if [[ -e $from/.git ]] && is=$(git -C "$from" rev-parse HEAD) && [[ $is != "$commit"* ]]; then
  echo "published.sh: $from is at $is, want $commit: git checkout $commit" >&2
  exit 2
fi
for s in "${sources[@]}"; do cp -r "$from/$s" "$work/"; done

flags=(-w -DCOMMIT="\"$commit\"" -include cstdint -I"$here" -I"$work")
case $name in
rode)
  flags+=(-DRODE -DSAMPLED -I"$work/utils" -I"$work/RoDe_SpMM" -I"$work/RoDe_SDDMM" "$work"/RoDe_S*/RoDeS*mm.cu)
  # Only float is called. CUDA 13 replaces double4 by types that say their alignment. An empty grid is an error.
  sed -i '/^void RoDeSpmm_n[0-9]*(.*const double/,/^}/d' "$work/RoDe_SpMM/RoDeSpmm.cu"
  sed -i 's/\bdouble4\b/double4_16a/g; 1i #if CUDART_VERSION < 13000\n#define double4_16a double4\n#endif' \
    "$work/utils/basic_utils.h"
  sed -i 's/^    RoDeComputeKernel\([12]\)</    if (m\1 > 0) &/' "$work/RoDe_SpMM/RoDeSpmm.cu"
  sed -i '/matrix_utils.h/d; s/^    SDDMMKernel4Block</    if (m1 > 0) &/' "$work/RoDe_SDDMM/RoDeSddmm.cu"
  sed -i 's/^    SDDMMKernel4Residue</    if (m2 > 0) &/' "$work/RoDe_SDDMM/RoDeSddmm.cu"
  ;;
sputnik)
  for s in spmm sddmm; do cp "$work/sputnik/$s/cuda_$s.cu.cc" "$work/$s.cu"; done
  flags+=(-DSPUTNIK -DSAMPLED "$work/spmm.cu" "$work/sddmm.cu")
  ;;
gespmm)
  # The kernels and their wrapper alone, without the program around them that calls what cuSPARSE no longer has.
  sed -n '/^template<typename T>/,$p' "$work/spmm_test.cu" | sed '/^int main/,$d; s/,0>>>/,peerStream>>>/' \
    > "$work/gespmm.cuh"
  flags+=(-DGESPMM)
  ;;
flashsparse)
  sed -i '/#include <torch/d; s/at::Half/__half/g' "$work"/FlashSparse/SpMM/*/*.h "$work"/FlashSparse/SpMM/src/*.cu
  flags+=(-DFLASHSPARSE)
  ;;
dtc)
  # The kernels, without the functions around them that take PyTorch's tensors.
  sed '/^std::\(vector\|tuple\)<torch/,/^}/d; /^  std::vector<torch/,/^  }/d' "$work/DTC-SpMM/DTCSpMM_kernel.cu" |
    sed '/#include.*\(torch\|sputnik\|cusparse\)/d' > "$work/DTC-SpMM/dtc.cuh"
  flags+=(-DDTC)
  ;;
acc) flags+=(-DACC -I"$work/include") ;;
voltrix)
  sed -i 's/exit(1);/throw std::runtime_error(message);/' "$work/voltrix/include/voltrix/spmm_kernels.cuh"
  flags+=(-DVOLTRIX -I"$work/voltrix/include") ARCH=${ARCH:-sm_90a}
  ;;
hc)
  # S_SIZE is the entries of a window that its shared memory holds, 62 for its authors' data.
  sed '/^std::vector<torch/,/^}/d; /#include.*\(torch\|cublas\)/d; s/^#define S_SIZE .*/#define S_SIZE 2048/' \
    "$work/hybrid_kernel/hybrid_all_kernel.cu" > "$work/hybrid_kernel/hc.cuh"
  flags+=(-DHC)
  ;;
macko) flags+=(-DMACKO -I"$work/cuda") ;;
spinfer) flags+=(-DSPINFER) ;;
esac
mkdir -p "$out"
"${NVCC:-nvcc}" -O3 -std=c++17 -arch="${ARCH:-native}" -o "$out/$name" "$here/$program" "${flags[@]}" "$@"
