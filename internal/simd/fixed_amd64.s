// Fixed point with AVX2. Each loop does eight elements a turn.

#include "textflag.h"

// Those of quantise16 and quantise32.
#define ARGUMENTS \
	MOVQ q+0(FP), DI; \
	MOVQ x+8(FP), R8; \
	MOVQ unit+16(FP), DX; \
	MOVQ n+24(FP), CX

// func scanRangeAVX2(largest, lowest, special *int32, x *float32, n int)
TEXT ·scanRangeAVX2(SB), NOSPLIT, $0-40
	MOVQ largest+0(FP), DI
	MOVQ lowest+8(FP), SI
	MOVQ special+16(FP), DX
	MOVQ x+24(FP), R8
	MOVQ n+32(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y14  // 0x7fffffff: magnitude
	VPSRLD $9, Y15, Y13  // 0x007fffff: fraction
	VPSRLD $31, Y15, Y12 // 1
	VPSLLD $23, Y12, Y11 // 0x00800000: the implicit bit
	VPSLLD $24, Y15, Y10
	VPSRLD $1, Y10, Y10  // 0x7f800000: infinity
	VPSUBD Y12, Y10, Y9  // the largest finite magnitude
	VPXOR Y8, Y8, Y8

scan:
	VPAND (R8), Y14, Y0  // magnitude
	VPCMPGTD Y9, Y0, Y1  // not finite
	VPOR (DX), Y1, Y2
	VMOVDQU Y2, (DX)
	VPANDN Y0, Y1, Y0    // 0 in its place
	VPMAXSD (DI), Y0, Y2
	VMOVDQU Y2, (DI)
	VPSRLD $23, Y0, Y2   // exponent
	VPAND Y13, Y0, Y3
	VPCMPGTD Y8, Y2, Y4
	VPAND Y11, Y4, Y4
	VPOR Y4, Y3, Y3      // significand
	VPMAXSD Y12, Y2, Y2  // subnormals have the exponent of the least normal numbers
	VPSUBD Y3, Y8, Y4
	VPAND Y4, Y3, Y3     // its lowest bit, 0 if there is none
	VCVTDQ2PS Y3, Y4
	VPSRLD $23, Y4, Y4   // that bit's number + 127
	VPADDD Y4, Y2, Y2
	VPCMPEQD Y8, Y3, Y3
	VPAND Y14, Y3, Y3
	VPOR Y3, Y2, Y2      // zeros have none
	VPMINSD (SI), Y2, Y2
	VMOVDQU Y2, (SI)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, R8
	SUBQ $8, CX
	JNZ  scan
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

// PRODUCTS has them times units in Y2 and Y3, INTEGERS in X2 and X3, as integers of 32 bits.
#define PRODUCTS \
	FINITE; \
	VEXTRACTF128 $1, Y0, X1; \
	VCVTPS2PD X0, Y2; \
	VCVTPS2PD X1, Y3; \
	VMULPD (DX), Y2, Y2; \
	VMULPD 32(DX), Y3, Y3
#define INTEGERS \
	PRODUCTS; \
	VCVTPD2DQY Y2, X2; \
	VCVTPD2DQY Y3, X3

// NEXT goes to the next eight elements, of this many bytes in q.
#define NEXT(bytes, loop) \
	ADDQ $bytes, DI; \
	ADDQ $32, R8; \
	ADDQ $64, DX; \
	SUBQ $8, CX; \
	JNZ  loop

// func quantise16AVX2(q *int16, x *float32, unit *float64, n int)
TEXT ·quantise16AVX2(SB), NOSPLIT, $0-32
	ARGUMENTS
	INFINITY

quantise16:
	INTEGERS
	VPACKSSDW X3, X2, X2
	VMOVDQU X2, (DI)
	NEXT(16, quantise16)
	VZEROUPPER
	RET

// func quantise32AVX2(q *int32, x *float32, unit *float64, n int)
TEXT ·quantise32AVX2(SB), NOSPLIT, $0-32
	ARGUMENTS
	INFINITY

quantise32:
	INTEGERS
	VMOVDQU X2, (DI)
	VMOVDQU X3, 16(DI)
	NEXT(32, quantise32)
	VZEROUPPER
	RET

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

// func roundSumsAVX2(y *float32, sums *int64, unit *float64, n int, scale float64) (tooLarge int64)
// The conversion to float32 is the one rounding: the products with powers of two are exact.
TEXT ·roundSumsAVX2(SB), NOSPLIT, $0-48
	MOVQ y+0(FP), DI
	MOVQ sums+8(FP), SI
	MOVQ unit+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSD scale+32(FP), Y8
	MAGIC(AX)
	VPCMPEQD Y15, Y15, Y15
	VPSRLQ $63, Y15, Y14
	VPSLLQ $51, Y14, Y14 // 2⁵¹
	VPXOR Y13, Y13, Y13  // bits of sums that are too large
	VPXOR Y12, Y12, Y12

round:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPADDQ Y14, Y0, Y2
	VPADDQ Y14, Y1, Y3
	VPSRLQ $52, Y2, Y2
	VPSRLQ $52, Y3, Y3
	VPOR Y2, Y13, Y13
	VPOR Y3, Y13, Y13
	VPADDQ Y9, Y0, Y0
	VPADDQ Y9, Y1, Y1
	VSUBPD Y9, Y0, Y0
	VSUBPD Y9, Y1, Y1
	VMULPD (DX), Y0, Y0
	VMULPD 32(DX), Y1, Y1
	VMULPD Y8, Y0, Y0
	VMULPD Y8, Y1, Y1
	VCVTPD2PSY Y0, X0
	VCVTPD2PSY Y1, X1
	VADDPS X12, X0, X0   // −0 becomes +0
	VADDPS X12, X1, X1
	VMOVUPS X0, (DI)
	VMOVUPS X1, 16(DI)
	ADDQ $32, DI
	ADDQ $64, SI
	ADDQ $64, DX
	SUBQ $8, CX
	JNZ  round
	VEXTRACTI128 $1, Y13, X0
	VPOR X0, X13, X13
	VPSHUFD $0x4e, X13, X0
	VPOR X0, X13, X13
	VMOVQ X13, AX
	MOVQ AX, tooLarge+40(FP)
	VZEROUPPER
	RET
