// Panels of sparse-dense products: panel_amd64.h for each instruction set and element type.

#include "textflag.h"

// AVX2 with FMA and F16C: 8 columns, b in Y8, a value in Y9. There are no second halves.

#define L0 Y0
#define H0 Y0
#define L1 Y1
#define H1 Y1
#define L2 Y2
#define H2 Y2
#define L3 Y3
#define H3 Y3
#define L4 Y4
#define H4 Y4
#define L5 Y5
#define H5 Y5
#define L6 Y6
#define H6 Y6
#define L7 Y7
#define H7 Y7
#define ROW(r, l, h) VBROADCASTSS (4*r)(SI), Y9; VFMADD231PS Y8, Y9, l
#define TAKE(l, h) VMOVUPS (R8), l
#define PUT(l, h) VMOVUPS l, (R8)

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

#undef L0
#undef H0
#undef L1
#undef H1
#undef L2
#undef H2
#undef L3
#undef H3
#undef L4
#undef H4
#undef L5
#undef H5
#undef L6
#undef H6
#undef L7
#undef H7
#undef ROW
#undef TAKE
#undef PUT

// AVX-512: 32 columns, b in Z16 and Z17, a value in Z18.

#define L0 Z0
#define H0 Z1
#define L1 Z2
#define H1 Z3
#define L2 Z4
#define H2 Z5
#define L3 Z6
#define H3 Z7
#define L4 Z8
#define H4 Z9
#define L5 Z10
#define H5 Z11
#define L6 Z12
#define H6 Z13
#define L7 Z14
#define H7 Z15
#define ROW(r, l, h) VBROADCASTSS (4*r)(SI), Z18; VFMADD231PS Z16, Z18, l; VFMADD231PS Z17, Z18, h
#define TAKE(l, h) VMOVUPS (R8), l; VMOVUPS 64(R8), h
#define PUT(l, h) VMOVUPS l, (R8); VMOVUPS h, 64(R8)

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

// func widenF16AVX2(dst *float32, src *half.F16, n int)
TEXT ·widenF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VCVTPH2PS (SI), Y0
	VMOVUPS Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET

// func widenBF16AVX2(dst *float32, src *half.BF16, n int)
TEXT ·widenBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VPMOVZXWD (SI), Y0
	VPSLLD $16, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET

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
