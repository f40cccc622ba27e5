// Rows of products of integers, one and two at once: rows_amd64.h and pairs_amd64.h for each type of integers. Included
// once for each instruction set, after its vectors (avx2_amd64.h) and with the names of its functions: ROWSINT16,
// ROWSINT32 and PAIRSINT32.

#define VL (AB/8)
#define VALSIZE 8
#define BCAST(mem) VBROADCASTSD mem, V
#define MACLAST(mem, a) MAC(mem, a)
#define ADD(x, a) VADDPD x, a, a
#define SCALE(a)
#define ALPHA
#define STORE(a, mem) VMOVUPD a, mem
#define STREAM(a, mem) STORE(a, mem)
#undef STORELAST
#define STORELAST(a, mem) STORE(a, mem)
#undef MASK
#define MASK(w)

#define VB (AB/4)
#define AHEAD8 VECTORS2
#define AHEAD4 VECTORS1
#define AHEAD2 VECTORS1
#define MAC(mem, a) VPMOVSXWD mem, THALF; VCVTDQ2PD THALF, T; VFMADD231PD T, V, a
#define ROWS ROWSINT16
#include "rows_amd64.h"

#undef VB
#undef AHEAD8
#undef AHEAD4
#undef MAC

#define VB (AB/2)
#define AHEAD8 VECTORS4
#define AHEAD4 VECTORS2
#define MAC(mem, a) VCVTDQ2PD mem, T; VFMADD231PD T, V, a
#define ROWS ROWSINT32
#include "rows_amd64.h"

#define PAIRS PAIRSINT32
#include "pairs_amd64.h"

#undef VL
#undef VALSIZE
#undef BCAST
#undef MAC
#undef MACLAST
#undef ADD
#undef SCALE
#undef ALPHA
#undef STORE
#undef STREAM
#undef VB
#undef AHEAD8
#undef AHEAD4
#undef AHEAD2
#undef ROWSINT16
#undef ROWSINT32
#undef PAIRSINT32
