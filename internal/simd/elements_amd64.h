// The functions of an instruction set: row_amd64.h and rows_amd64.h for each element type. Included once for each set,
// after its vectors (avx2_amd64.h) and with the names of its functions: ROWF64, ROWSF64 and so on.

#define VL (AB>>SHIFT)
#define ADD(x, a) VADD x, a, a
#define SCALE(a) VMUL S, a, a
#define STORE(a, mem) MOV a, mem
#define STREAM(a, mem) MOVNT a, mem
#define ALPHA VSPREAD rowsJob_alpha(AX), S

// Elements that are as wide as the sums.

#define VB AB
#define BCAST(mem) VSPREAD mem, V
#define MAC(mem, a) VFMA mem, V, a
#define MACLAST(mem, a) FMALAST(mem, a)
#define AHEAD8 VECTORS8
#define AHEAD4 VECTORS4
#define AHEAD2 VECTORS2

#define SHIFT 3
#define VALSIZE 8
#define MOV VMOVUPD
#define MASKMOV VMASKMOVPD
#define MOVNT VMOVNTPD
#define VADD VADDPD
#define VMUL VMULPD
#define VFMA VFMADD231PD
#define VSPREAD VBROADCASTSD
#define ROW ROWF64
#define ROWS ROWSF64
#include "row_amd64.h"
#include "rows_amd64.h"

#undef SHIFT
#undef VALSIZE
#undef MOV
#undef MASKMOV
#undef MOVNT
#undef VADD
#undef VMUL
#undef VFMA
#undef VSPREAD

#define SHIFT 2
#define VALSIZE 4
#define MOV VMOVUPS
#define MASKMOV VMASKMOVPS
#define MOVNT VMOVNTPS
#define VADD VADDPS
#define VMUL VMULPS
#define VFMA VFMADD231PS
#define VSPREAD VBROADCASTSS
#define ROW ROWF32
#define ROWS ROWSF32
#include "row_amd64.h"
#include "rows_amd64.h"

// Elements of half the width.

#undef VB
#undef VALSIZE
#undef BCAST
#undef MAC
#undef MACLAST
#undef AHEAD8
#undef AHEAD4
#undef AHEAD2

#define VB (AB/2)
#define VALSIZE 2
#define AHEAD8 VECTORS4
#define AHEAD4 VECTORS2
#define AHEAD2 VECTORS1

#undef FIRST
#undef SECOND
#define FIRST(u) ROWOF(u); VPBROADCASTD (2*u)(SI), HALFTWO; VCVTPH2PS HALFTWO, BOTHVALUES; VMOVSLDUP BOTHVALUES, V
#define SECOND(u) ROWOF(u); VMOVSHDUP BOTHVALUES, V
#define BCAST(mem) VPBROADCASTW mem, HALF; VCVTPH2PS HALF, V
#define MAC(mem, a) VCVTPH2PS mem, T; VFMA T, V, a
#define MACLAST(mem, a) LOADLAST(VCVTPH2PS, mem, T); VFMA T, V, a
#define ROW ROWF16
#define ROWS ROWSF16
#include "row_amd64.h"
#include "rows_amd64.h"

#undef BCAST
#undef MAC
#undef MACLAST
#undef FIRST
#undef SECOND

#define FIRST(u) ROWOF(u); VPBROADCASTD (2*u)(SI), BOTHVALUES; VPSLLD $16, BOTHVALUES, V
#define SECOND(u) ROWOF(u); VANDPS BOTHVALUES, UPPER, V
#define BCAST(mem) VPBROADCASTW mem, V; VPSLLD $16, V, V
#define MAC(mem, a) VPMOVZXWD mem, T; VPSLLD $16, T, T; VFMA T, V, a
#define MACLAST(mem, a) LOADLAST(VPMOVZXWD, mem, T); VPSLLD $16, T, T; VFMA T, V, a
#define ROW ROWBF16
#define ROWS ROWSBF16

// A word of 32 bits has two columns: shifted, it is the first as float32, and without its lower half the second. So the
// first of two registers of sums has the even columns, until JOIN.
#undef MACPAIR
#undef JOIN
#undef PREPARE
#define MACPAIR(at, a, b) \
	MOV (at)(R8), T; VANDPS T, UPPER, ODD; VPSLLD $16, T, T; VFMA T, V, a; VFMA ODD, V, b
#define JOIN(a, b) INTERLEAVE(a, b)
#define PREPARE INTERLEAVING
#include "row_amd64.h"
#include "rows_amd64.h"

#undef MACPAIR
#undef JOIN
#undef PREPARE
#define MACPAIR(at, a, b) \
	MAC((at)(R8), a); MAC((at+VB)(R8), b)
#define JOIN(a, b)
#define PREPARE

#undef FIRST
#undef SECOND
#define FIRST(u) ENTRY(u)
#define SECOND(u) ENTRY(u)

#undef VL
#undef ADD
#undef SCALE
#undef STORE
#undef STREAM
#undef ALPHA
#undef VB
#undef VALSIZE
#undef BCAST
#undef MAC
#undef MACLAST
#undef AHEAD8
#undef AHEAD4
#undef AHEAD2
#undef SHIFT
#undef MOV
#undef MASKMOV
#undef MOVNT
#undef VADD
#undef VMUL
#undef VFMA
#undef VSPREAD
#undef ROWF64
#undef ROWSF64
#undef ROWF32
#undef ROWSF32
#undef ROWF16
#undef ROWSF16
#undef ROWBF16
#undef ROWSBF16
