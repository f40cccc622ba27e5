// Fixed point with AVX2: each loop does eight elements a turn. With AVX-512: sixteen.

#include "textflag.h"

// Arguments of functions that widen.
#define WIDEN \
	MOVQ dst+0(FP), DI \
	MOVQ src+8(FP), SI \
	MOVQ n+16(FP), CX

// Those of quantise16 and quantise32.
#define ARGUMENTS \
	MOVQ q+0(FP), DI; \
	MOVQ ldq+8(FP), R9; \
	MOVQ x+16(FP), SI; \
	MOVQ ldx+24(FP), R10; \
	MOVQ rows+32(FP), CX; \
	MOVQ n+40(FP), BX; \
	MOVQ first+48(FP), R11; \
	MOVQ second+56(FP), R12

// func joinRangesAVX2(dst, src *uint32, n int)
TEXT ·joinRangesAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $22, Y15, Y14 // bits 0 to 9
	VPSLLD $10, Y14, Y13 // 10 to 19
	VPSLLD $20, Y15, Y12 // the others

join:
	VMOVDQU (DI), Y0
	VMOVDQU (SI), Y1
	VPAND Y14, Y0, Y2
	VPAND Y14, Y1, Y3
	VPMAXUD Y2, Y3, Y2
	VPAND Y13, Y0, Y4
	VPAND Y13, Y1, Y5
	VPMAXUD Y4, Y5, Y4
	VPAND Y12, Y0, Y0
	VPAND Y12, Y1, Y1
	VPMAXUD Y0, Y1, Y0
	VPOR Y2, Y4, Y2
	VPOR Y2, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ  join
	VZEROUPPER
	RET

// FINITE has eight elements at R8 in Y0, zeros in place of those that are not finite. Y10 is infinity's bits.
#define FINITE \
	VMOVDQU (R8), Y0; \
	VPAND Y0, Y10, Y1; \
	VPCMPEQD Y10, Y1, Y1; \
	VPANDN Y0, Y1, Y0

#define INFINITY \
	VPCMPEQD Y10, Y10, Y10; \
	VPSLLD $24, Y10, Y10; \
	VPSRLD $1, Y10, Y10

// INTEGERS has eight elements times units, as integers of 32 bits, in Y0. VMULPS is exact but where the product is so
// small that it becomes 0.
#define INTEGERS \
	FINITE; \
	VMULPS (R13), Y0, Y0; \
	VMULPS (DX), Y0, Y0; \
	VCVTPS2DQ Y0, Y0

// ROW begins a row, NEXT goes to its next eight elements, of this many bytes in q, and then to the next row.
#define ROW \
	MOVQ DI, AX; \
	MOVQ SI, R8; \
	MOVQ R11, R13; \
	MOVQ R12, DX; \
	MOVQ BX, R15
#define NEXT(bytes, row, loop) \
	ADDQ $bytes, AX; \
	ADDQ $32, R8; \
	ADDQ $32, R13; \
	ADDQ $32, DX; \
	SUBQ $8, R15; \
	JNZ  loop; \
	ADDQ R9, DI; \
	ADDQ R10, SI; \
	DECQ CX; \
	JNZ  row

// func quantise16AVX2(q *int16, ldq int, x *float32, ldx, rows, n int, first, second *float32)
TEXT ·quantise16AVX2(SB), NOSPLIT, $0-64
	ARGUMENTS
	INFINITY

row16:
	ROW

quantise16:
	INTEGERS
	VEXTRACTI128 $1, Y0, X1
	VPACKSSDW X1, X0, X0
	VMOVDQU X0, (AX)
	NEXT(16, row16, quantise16)
	VZEROUPPER
	RET

// func quantise32AVX2(q *int32, ldq int, x *float32, ldx, rows, n int, first, second *float32)
TEXT ·quantise32AVX2(SB), NOSPLIT, $0-64
	ARGUMENTS
	INFINITY

row32:
	ROW

quantise32:
	INTEGERS
	VMOVDQU Y0, (AX)
	NEXT(32, row32, quantise32)
	VZEROUPPER
	RET

// func quantise32AVX512(q *int32, ldq int, x *float32, ldx, rows, n int, first, second *float32)
// n is a multiple of 16.
TEXT ·quantise32AVX512(SB), NOSPLIT, $0-64
	ARGUMENTS

wide32:
	ROW

quantise512:
	VMOVUPS (R8), Z0
	VFPCLASSPSZ $0x99, Z0, K1 // infinities and NaN
	KNOTW K1, K1
	VMULPS (R13), Z0, Z0
	VMULPS (DX), Z0, Z0
	VCVTPS2DQ.Z Z0, K1, Z0
	VMOVDQU32 Z0, (AX)
	ADDQ $64, AX
	ADDQ $64, R8
	ADDQ $64, R13
	ADDQ $64, DX
	SUBQ $16, R15
	JNZ  quantise512
	ADDQ R9, DI
	ADDQ R10, SI
	DECQ CX
	JNZ  wide32
	VZEROUPPER
	RET

// PRODUCTS has eight elements times units in Y2 and Y3.
#define PRODUCTS \
	FINITE; \
	VEXTRACTF128 $1, Y0, X1; \
	VCVTPS2PD X0, Y2; \
	VCVTPS2PD X1, Y3; \
	VMULPD (DX), Y2, Y2; \
	VMULPD 32(DX), Y3, Y3

// MAGIC has 1.5·2⁵² in each half of Y9: as an integer, what sums with integers below 2⁵¹ are the doubles of.
#define MAGIC(r) \
	MOVQ $0x4338000000000000, r; \
	MOVQ r, X9; \
	VPBROADCASTQ X9, Y9

// func quantise48AVX2(low, high *int32, x *float32, unit *float64, n int)
TEXT ·quantise48AVX2(SB), NOSPLIT, $0-40
	MOVQ low+0(FP), DI
	MOVQ high+8(FP), SI
	MOVQ x+16(FP), R8
	MOVQ unit+24(FP), DX
	MOVQ n+32(FP), CX
	INFINITY
	MAGIC(AX)
	VPCMPEQD Y15, Y15, Y15
	VPSRLQ $40, Y15, Y14 // 2²⁴ − 1
	VPSRLQ $63, Y15, Y13
	VPSLLQ $23, Y13, Y13 // 2²³

quantise48:
	PRODUCTS
	VADDPD Y9, Y2, Y2
	VADDPD Y9, Y3, Y3
	VPSUBQ Y9, Y2, Y2    // the integers
	VPSUBQ Y9, Y3, Y3
	VPADDQ Y13, Y2, Y4
	VPADDQ Y13, Y3, Y5
	VPAND Y14, Y4, Y4
	VPAND Y14, Y5, Y5
	VPSUBQ Y13, Y4, Y4   // their low digits
	VPSUBQ Y13, Y5, Y5
	VPSUBQ Y4, Y2, Y2
	VPSUBQ Y5, Y3, Y3
	VPSRLQ $24, Y2, Y2   // the high ones, in the lower 32 bits
	VPSRLQ $24, Y3, Y3
	VSHUFPS $0x88, Y5, Y4, Y4
	VSHUFPS $0x88, Y3, Y2, Y2
	VPERMQ $0xd8, Y4, Y4
	VPERMQ $0xd8, Y2, Y2
	VMOVDQU Y4, (DI)
	VMOVDQU Y2, (SI)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, R8
	ADDQ $64, DX
	SUBQ $8, CX
	JNZ  quantise48
	VZEROUPPER
	RET

// func widenInt16AVX2(dst *float64, src *int16, n int)
TEXT ·widenInt16AVX2(SB), NOSPLIT, $0-24
	WIDEN

widen16:
	VPMOVSXWD (SI), Y0
	VEXTRACTI128 $1, Y0, X1
	VCVTDQ2PD X0, Y0
	VCVTDQ2PD X1, Y1
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ  widen16
	VZEROUPPER
	RET

// func widenInt32AVX2(dst *float64, src *int32, n int)
TEXT ·widenInt32AVX2(SB), NOSPLIT, $0-24
	WIDEN

widen32:
	VCVTDQ2PD (SI), Y0
	VCVTDQ2PD 16(SI), Y1
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ  widen32
	VZEROUPPER
	RET

// func halveInt32AVX2(low, high *float64, src *int32, n int)
TEXT ·halveInt32AVX2(SB), NOSPLIT, $0-32
	MOVQ low+0(FP), DI
	MOVQ high+8(FP), DX
	MOVQ src+16(FP), SI
	MOVQ n+24(FP), CX

halve:
	VMOVDQU (SI), Y0
	VPSLLD $16, Y0, Y1
	VPSRAD $16, Y1, Y1 // the low halves
	VPSUBD Y1, Y0, Y0
	VPSRAD $16, Y0, Y0 // the high ones
	VEXTRACTI128 $1, Y1, X3
	VEXTRACTI128 $1, Y0, X2
	VCVTDQ2PD X1, Y1
	VCVTDQ2PD X3, Y3
	VCVTDQ2PD X0, Y0
	VCVTDQ2PD X2, Y2
	VMOVUPD Y1, (DI)
	VMOVUPD Y3, 32(DI)
	VMOVUPD Y0, (DX)
	VMOVUPD Y2, 32(DX)
	ADDQ $32, SI
	ADDQ $64, DI
	ADDQ $64, DX
	SUBQ $8, CX
	JNZ  halve
	VZEROUPPER
	RET

// func foldSumsAVX2(high, low, sums *float64, n int, scale float64)
TEXT ·foldSumsAVX2(SB), NOSPLIT, $0-40
	MOVQ high+0(FP), DI
	MOVQ low+8(FP), SI
	MOVQ sums+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSD scale+32(FP), Y8
	MOVQ $0x4558000000000000, AX // foldMagic
	MOVQ AX, X9
	VPBROADCASTQ X9, Y9

fold:
	VMULPD (DX), Y8, Y0
	VMULPD 32(DX), Y8, Y1
	VADDPD Y9, Y0, Y2
	VADDPD Y9, Y1, Y3
	VSUBPD Y9, Y2, Y2
	VSUBPD Y9, Y3, Y3
	VSUBPD Y2, Y0, Y0
	VSUBPD Y3, Y1, Y1
	VADDPD (DI), Y2, Y2
	VADDPD 32(DI), Y3, Y3
	VADDPD (SI), Y0, Y0
	VADDPD 32(SI), Y1, Y1
	VMOVUPD Y2, (DI)
	VMOVUPD Y3, 32(DI)
	VMOVUPD Y0, (SI)
	VMOVUPD Y1, 32(SI)
	ADDQ $64, DI
	ADDQ $64, SI
	ADDQ $64, DX
	SUBQ $8, CX
	JNZ  fold
	VZEROUPPER
	RET
