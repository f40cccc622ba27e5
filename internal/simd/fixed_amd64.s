// Fixed point with AVX2. Each loop does eight elements a turn.

#include "textflag.h"

// Arguments of functions that widen.
#define WIDEN \
	MOVQ dst+0(FP), DI \
	MOVQ src+8(FP), SI \
	MOVQ n+16(FP), CX

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

// func roundSumsAVX2(y *float32, sums, unit *float64, n int, scale float64)
// The conversion to float32 is the one rounding: the products with powers of two are exact.
TEXT ·roundSumsAVX2(SB), NOSPLIT, $0-40
	MOVQ y+0(FP), DI
	MOVQ sums+8(FP), SI
	MOVQ unit+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSD scale+32(FP), Y8
	VPXOR Y9, Y9, Y9

round:
	VMULPD (SI), Y8, Y0
	VMULPD 32(SI), Y8, Y1
	VMULPD (DX), Y0, Y0
	VMULPD 32(DX), Y1, Y1
	VCVTPD2PSY Y0, X0
	VCVTPD2PSY Y1, X1
	VADDPS X9, X0, X0 // −0 becomes +0
	VADDPS X9, X1, X1
	VMOVUPS X0, (DI)
	VMOVUPS X1, 16(DI)
	ADDQ $32, DI
	ADDQ $64, SI
	ADDQ $64, DX
	SUBQ $8, CX
	JNZ  round
	VZEROUPPER
	RET

// ODD sets s to a + b, rounded to odd (see OddSum): c and d are other registers, Y9 is 0, Y14 1 in each lane. A last bit
// that must be set is set by adding 1 to the bits, or subtracting it where what is left has the other sign than s.
#define ODD(a, b, s, c, d) \
	VADDPD b, a, s; \
	VSUBPD a, s, c; \
	VSUBPD c, s, d; \
	VSUBPD d, a, a; \
	VSUBPD c, b, b; \
	VADDPD a, b, b; \
	VCMPPD $4, Y9, b, c; \
	VPAND s, Y14, d; \
	VPXOR d, Y14, d; \
	VPAND c, d, d; \
	VPXOR s, b, b; \
	VPSRLQ $63, b, b; \
	VPADDQ b, b, b; \
	VPSUBQ b, Y14, b; \
	VPSUBQ d, Y9, d; \
	VPAND b, d, d; \
	VPADDQ d, s, s

// func roundPairsAVX2(y *float32, high, low *float64, scale float64, unit *float64, n int, row float64)
TEXT ·roundPairsAVX2(SB), NOSPLIT, $0-56
	MOVQ y+0(FP), DI
	MOVQ high+8(FP), SI
	MOVQ low+16(FP), R8
	VBROADCASTSD scale+24(FP), Y7
	MOVQ unit+32(FP), DX
	MOVQ n+40(FP), CX
	VBROADCASTSD row+48(FP), Y8
	VPXOR Y9, Y9, Y9
	VPCMPEQD Y14, Y14, Y14
	VPSRLQ $63, Y14, Y14

pairs:
	VMULPD (SI), Y7, Y0
	VMULPD 32(SI), Y7, Y1
	VMOVUPD (R8), Y2
	VMOVUPD 32(R8), Y3
	ODD(Y0, Y2, Y4, Y10, Y11)
	ODD(Y1, Y3, Y5, Y12, Y13)
	VMULPD (DX), Y4, Y4
	VMULPD 32(DX), Y5, Y5
	VMULPD Y8, Y4, Y4
	VMULPD Y8, Y5, Y5
	VCVTPD2PSY Y4, X0
	VCVTPD2PSY Y5, X1
	VADDPS X9, X0, X0 // −0 becomes +0
	VADDPS X9, X1, X1
	VMOVUPS X0, (DI)
	VMOVUPS X1, 16(DI)
	ADDQ $32, DI
	ADDQ $64, SI
	ADDQ $64, R8
	ADDQ $64, DX
	SUBQ $8, CX
	JNZ  pairs
	VZEROUPPER
	RET
