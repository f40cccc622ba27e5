// Panels of sparse-dense products: panel_amd64.h for each instruction set and element type.

#include "textflag.h"

// AVX2 with FMA and F16C: 8 columns, b in Y8, a value in Y9. There are no second halves.

#define EACH(do, next) \
	do(0, Y0, Y0); next do(1, Y1, Y1); next do(2, Y2, Y2); next do(3, Y3, Y3); next \
	do(4, Y4, Y4); next do(5, Y5, Y5); next do(6, Y6, Y6); next do(7, Y7, Y7)
#define ROW(r, l, h) VBROADCASTSS (4*r)(SI), Y9; VFMADD231PS Y8, Y9, l
#define TAKE(r, l, h) VMOVUPS (R8), l
#define PUT(r, l, h) VMOVUPS l, (R8)

#define NAME ·panelF32AVX2
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VMOVUPS (R8), Y8
#include "panel_amd64.h"

#define NAME ·panelF16AVX2
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VCVTPH2PS (R8), Y8
#include "panel_amd64.h"

#define NAME ·panelBF16AVX2
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VPMOVZXWD (R8), Y8; VPSLLD $16, Y8, Y8
#include "panel_amd64.h"

// Four rows of 16 columns, b in Y8 and Y9, a value in Y10: fewer loads for each product than eight rows of 8.

#undef EACH
#undef ROW
#undef TAKE
#undef PUT

#define EACH(do, next) \
	do(0, Y0, Y1); next do(1, Y2, Y3); next do(2, Y4, Y5); next do(3, Y6, Y7)
#define ROW(r, l, h) VBROADCASTSS (4*r)(SI), Y10; VFMADD231PS Y8, Y10, l; VFMADD231PS Y9, Y10, h
#define TAKE(r, l, h) VMOVUPS (R8), l; VMOVUPS 32(R8), h
#define PUT(r, l, h) VMOVUPS l, (R8); VMOVUPS h, 32(R8)

#define NAME ·fourF32AVX2
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VMOVUPS (R8), Y8; VMOVUPS 32(R8), Y9
#include "panel_amd64.h"

// Of integers, 4 columns of eight rows, with sums in float64. A row of values is 1024 bytes behind the one before.

#undef EACH
#define EACH(do, next) \
	do(0, Y0, Y0); next do(1, Y1, Y1); next do(2, Y2, Y2); next do(3, Y3, Y3); next \
	do(4, Y4, Y4); next do(5, Y5, Y5); next do(6, Y6, Y6); next do(7, Y7, Y7)

#undef ROW
#undef TAKE
#undef PUT

#define ROW(r, l, h) VBROADCASTSD (1024*r)(SI), Y9; VFMADD231PD Y8, Y9, l
#define TAKE(r, l, h) VMOVUPD (R8), l
#define PUT(r, l, h) VMOVUPD l, (R8)

#define NAME ·panelInt32AVX2
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VCVTDQ2PD (R8), Y8
#include "panel_amd64.h"

#undef EACH
#undef ROW
#undef TAKE
#undef PUT

// AVX-512: 32 columns, b in Z16 and Z17, a value in Z18.

#define EACH(do, next) \
	do(0, Z0, Z1); next do(1, Z2, Z3); next do(2, Z4, Z5); next do(3, Z6, Z7); next \
	do(4, Z8, Z9); next do(5, Z10, Z11); next do(6, Z12, Z13); next do(7, Z14, Z15)
#define ROW(r, l, h) VBROADCASTSS (4*r)(SI), Z18; VFMADD231PS Z16, Z18, l; VFMADD231PS Z17, Z18, h
#define TAKE(r, l, h) VMOVUPS (R8), l; VMOVUPS 64(R8), h
#define PUT(r, l, h) VMOVUPS l, (R8); VMOVUPS h, 64(R8)

#define NAME ·panelF32AVX512
#define AHEAD PREFETCHT0 (BX)(R13*1); PREFETCHT0 64(BX)(R13*1)
#define LOADB VMOVUPS (R8), Z16; VMOVUPS 64(R8), Z17
#include "panel_amd64.h"

#define NAME ·panelF16AVX512
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VCVTPH2PS (R8), Z16; VCVTPH2PS 32(R8), Z17
#include "panel_amd64.h"

#define NAME ·panelBF16AVX512
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VPMOVZXWD (R8), Z16; VPMOVZXWD 32(R8), Z17; VPSLLD $16, Z16, Z16; VPSLLD $16, Z17, Z17
#include "panel_amd64.h"

// Of integers, 16 columns, with sums in float64.

#undef ROW
#undef TAKE
#undef PUT

#define ROW(r, l, h) VBROADCASTSD (1024*r)(SI), Z18; VFMADD231PD Z16, Z18, l; VFMADD231PD Z17, Z18, h
#define TAKE(r, l, h) VMOVUPD (R8), l; VMOVUPD 64(R8), h
#define PUT(r, l, h) VMOVUPD l, (R8); VMOVUPD h, 64(R8)

#define NAME ·panel16Int32AVX512
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VCVTDQ2PD (R8), Z16; VCVTDQ2PD 32(R8), Z17
#include "panel_amd64.h"

// 8 columns: there are no second halves.

#undef ROW
#undef TAKE
#undef PUT

#define ROW(r, l, h) VFMADD231PD.BCST (1024*r)(SI), Z16, l
#define TAKE(r, l, h) VMOVUPD (R8), l
#define PUT(r, l, h) VMOVUPD l, (R8)

#define NAME ·panel8Int32AVX512
#define AHEAD PREFETCHT0 (BX)(R13*1)
#define LOADB VCVTDQ2PD (R8), Z16
#include "panel_amd64.h"

// func finiteAVX2(x *float32, n int) bool
// x·2 as an integer, which drops the sign, is less than that of an infinity.
TEXT ·finiteAVX2(SB), NOSPLIT, $0-17
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VPXOR Y0, Y0, Y0

loop:
	VMOVDQU (SI), Y1
	VPADDD Y1, Y1, Y1
	VPMAXUD Y1, Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ  loop
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPMAXUD X1, X0, X0
	VMOVD X0, AX
	CMPL AX, $0xff000000
	SETCS ret+16(FP)
	VZEROUPPER
	RET
