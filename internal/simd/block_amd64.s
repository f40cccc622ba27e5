// Blocks: products whose lanes are rows with AVX-512, transposition and widening with AVX2.

#include "textflag.h"

#define NAME ·linesF32AVX2
#define LOAD VMOVUPS (R8), Y0
#define BYTES 32
#include "block_amd64.h"

#define NAME ·linesF16AVX2
#define LOAD VCVTPH2PS (R8), Y0
#define BYTES 16
#include "block_amd64.h"

#define NAME ·linesBF16AVX2
#define LOAD VPMOVZXWD (R8), Y0; VPSLLD $16, Y0, Y0
#define BYTES 16
#include "block_amd64.h"

// A vector of a is in Z16; each element of the row of b at R8 is multiplied by all of it.
//
// DI acc; SI a; DX cols, CX vectors left; BX b, R11 ldb.

#define ARGUMENTS \
	MOVQ acc+0(FP), DI \
	MOVQ a+8(FP), SI \
	MOVQ cols+16(FP), DX \
	MOVQ nnz+24(FP), CX \
	MOVQ b+32(FP), BX \
	MOVQ ldb+40(FP), R11

#define VECTOR \
	MOVL    (DX), R8 \
	IMULQ   R11, R8 \
	ADDQ    BX, R8 \
	VMOVUPS (SI), Z16 \
	ADDQ    $4, DX \
	ADDQ    $64, SI

#define EIGHT(at, s0, s1, s2, s3, s4, s5, s6, s7) \
	VFMADD231PS.BCST (at+0)(R8), Z16, s0 \
	VFMADD231PS.BCST (at+4)(R8), Z16, s1 \
	VFMADD231PS.BCST (at+8)(R8), Z16, s2 \
	VFMADD231PS.BCST (at+12)(R8), Z16, s3 \
	VFMADD231PS.BCST (at+16)(R8), Z16, s4 \
	VFMADD231PS.BCST (at+20)(R8), Z16, s5 \
	VFMADD231PS.BCST (at+24)(R8), Z16, s6 \
	VFMADD231PS.BCST (at+28)(R8), Z16, s7

#define TAKE8(at, s0, s1, s2, s3, s4, s5, s6, s7) \
	VMOVUPS (at+0)(DI), s0 \
	VMOVUPS (at+64)(DI), s1 \
	VMOVUPS (at+128)(DI), s2 \
	VMOVUPS (at+192)(DI), s3 \
	VMOVUPS (at+256)(DI), s4 \
	VMOVUPS (at+320)(DI), s5 \
	VMOVUPS (at+384)(DI), s6 \
	VMOVUPS (at+448)(DI), s7

#define PUT8(at, s0, s1, s2, s3, s4, s5, s6, s7) \
	VMOVUPS s0, (at+0)(DI) \
	VMOVUPS s1, (at+64)(DI) \
	VMOVUPS s2, (at+128)(DI) \
	VMOVUPS s3, (at+192)(DI) \
	VMOVUPS s4, (at+256)(DI) \
	VMOVUPS s5, (at+320)(DI) \
	VMOVUPS s6, (at+384)(DI) \
	VMOVUPS s7, (at+448)(DI)

// func turned8AVX512(acc, a *float32, cols *uint32, nnz int, b *float32, ldb int)
TEXT ·turned8AVX512(SB), NOSPLIT, $0-48
	ARGUMENTS
	TAKE8(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)

loop:
	VECTOR
	EIGHT(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	DECQ CX
	JNZ  loop
	PUT8(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// func turned16AVX512(acc, a *float32, cols *uint32, nnz int, b *float32, ldb int)
TEXT ·turned16AVX512(SB), NOSPLIT, $0-48
	ARGUMENTS
	TAKE8(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	TAKE8(512, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)

loop:
	VECTOR
	EIGHT(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	EIGHT(32, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	DECQ CX
	JNZ  loop
	PUT8(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	PUT8(512, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	VZEROUPPER
	RET

// func turn8AVX2(dst *float32, ldd int, src *float32, lds, n int)
// Four numbers of lines i and i+4 are in the halves of Y(i), so that what is left is to transpose 4×4 in each half.
//
// DI dst, R9 ldd, R12 3·ldd; SI src, R11 src at line 4, R10 lds, R13 3·lds; CX numbers left.
TEXT ·turn8AVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ ldd+8(FP), R9
	MOVQ src+16(FP), SI
	MOVQ lds+24(FP), R10
	MOVQ n+32(FP), CX
	LEAQ (R9)(R9*2), R12
	LEAQ (R10)(R10*2), R13
	LEAQ (SI)(R10*4), R11

loop:
	VMOVUPS (SI), X0
	VMOVUPS (SI)(R10*1), X1
	VMOVUPS (SI)(R10*2), X2
	VMOVUPS (SI)(R13*1), X3
	VINSERTF128 $1, (R11), Y0, Y0
	VINSERTF128 $1, (R11)(R10*1), Y1, Y1
	VINSERTF128 $1, (R11)(R10*2), Y2, Y2
	VINSERTF128 $1, (R11)(R13*1), Y3, Y3
	VUNPCKLPS Y1, Y0, Y4 // 0₀ 1₀ 0₁ 1₁
	VUNPCKHPS Y1, Y0, Y5 // 0₂ 1₂ 0₃ 1₃
	VUNPCKLPS Y3, Y2, Y6 // 2₀ 3₀ 2₁ 3₁
	VUNPCKHPS Y3, Y2, Y7
	VUNPCKLPD Y6, Y4, Y0
	VUNPCKHPD Y6, Y4, Y1
	VUNPCKLPD Y7, Y5, Y2
	VUNPCKHPD Y7, Y5, Y3
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, (DI)(R9*1)
	VMOVUPS Y2, (DI)(R9*2)
	VMOVUPS Y3, (DI)(R12*1)
	ADDQ $16, SI
	ADDQ $16, R11
	LEAQ (DI)(R9*4), DI
	SUBQ $4, CX
	JNZ  loop
	VZEROUPPER
	RET
