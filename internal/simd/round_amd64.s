// Rounding exact sums to float32 (see Rounding). The conversion is the one rounding: products with powers of two are
// exact, and so are sums rounded to odd, as far as it matters.

#include "go_asm.h"
#include "textflag.h"

// DI y, R9 ldy; SI high, R8 low, R10 lds; DX unit, BX rows, CX rows left, R11 columns; R12 the column; R15
// whether y is written past the caches. Strides are in bytes.
#define ARGUMENTS \
	MOVQ r+0(FP), AX; \
	MOVQ n+8(FP), R11; \
	MOVQ Rounding_Y(AX), DI; \
	MOVQ Rounding_LDY(AX), R9; \
	MOVQ Rounding_High(AX), SI; \
	MOVQ Rounding_Low(AX), R8; \
	MOVQ Rounding_LDS(AX), R10; \
	MOVQ Rounding_Unit(AX), DX; \
	MOVQ Rounding_Rows(AX), BX; \
	MOVQ (Rounding_Rows+8)(AX), CX; \
	SHLQ $2, R9; \
	SHLQ $3, R10; \
	MOVBQZX Rounding_Stream(AX), R15

// ROW begins a row, whose factor is all of r; NEXT goes to its next columns, then to the next row.
#define ROW(r) \
	VBROADCASTSD (BX), r; \
	XORQ R12, R12
#define NEXT(columns, loop, row) \
	ADDQ $columns, R12; \
	CMPQ R12, R11; \
	JLT  loop; \
	ADDQ R9, DI; \
	ADDQ R10, SI; \
	ADDQ R10, R8; \
	ADDQ $8, BX; \
	DECQ CX; \
	JNZ  row

// func roundSinglesAVX2(r *Rounding, n int)
TEXT ·roundSinglesAVX2(SB), NOSPLIT, $0-16
	ARGUMENTS
	VPXOR X9, X9, X9

row:
	ROW(Y8)

columns:
	VMULPD (SI)(R12*8), Y8, Y0
	VMULPD (DX)(R12*8), Y0, Y0
	VCVTPD2PSY Y0, X0
	VADDPS X9, X0, X0 // −0 becomes +0
	TESTQ R15, R15
	JNZ  stream
	VMOVUPS X0, (DI)(R12*4)
	NEXT(4, columns, row)
	VZEROUPPER
	RET

stream:
	VMOVNTPS X0, (DI)(R12*4)
	NEXT(4, columns, row)
	SFENCE
	VZEROUPPER
	RET

// func roundSinglesAVX512(r *Rounding, n int)
TEXT ·roundSinglesAVX512(SB), NOSPLIT, $0-16
	ARGUMENTS
	VPXOR X9, X9, X9

row:
	ROW(Z8)

columns:
	VMULPD (SI)(R12*8), Z8, Z0
	VMULPD (DX)(R12*8), Z0, Z0
	VCVTPD2PS Z0, Y0
	VADDPS Y9, Y0, Y0 // −0 becomes +0
	TESTQ R15, R15
	JNZ  stream
	VMOVUPS Y0, (DI)(R12*4)
	NEXT(8, columns, row)
	VZEROUPPER
	RET

stream:
	VMOVNTPS Y0, (DI)(R12*4)
	NEXT(8, columns, row)
	SFENCE
	VZEROUPPER
	RET

// ODD sets s to a + b, rounded to odd (see OddSum): c and d are other registers, Y9 is 0, Y14 1 in each lane. A last
// bit that must be set is set by adding 1 to the bits, or subtracting it where the remainder has the other sign than s.
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

// func roundPairsAVX2(r *Rounding, n int)
TEXT ·roundPairsAVX2(SB), NOSPLIT, $0-16
	ARGUMENTS
	VBROADCASTSD Rounding_Scale(AX), Y7
	VPXOR Y9, Y9, Y9
	VPCMPEQD Y14, Y14, Y14
	VPSRLQ $63, Y14, Y14

row:
	ROW(Y8)

columns:
	VMULPD (SI)(R12*8), Y7, Y0
	VMOVUPD (R8)(R12*8), Y1
	ODD(Y0, Y1, Y2, Y3, Y4)
	VMULPD (DX)(R12*8), Y2, Y2
	VMULPD Y8, Y2, Y2
	VCVTPD2PSY Y2, X0
	VADDPS X9, X0, X0 // −0 becomes +0
	TESTQ R15, R15
	JNZ  stream
	VMOVUPS X0, (DI)(R12*4)
	NEXT(4, columns, row)
	VZEROUPPER
	RET

stream:
	VMOVNTPS X0, (DI)(R12*4)
	NEXT(4, columns, row)
	SFENCE
	VZEROUPPER
	RET

// func roundPairsAVX512(r *Rounding, n int)
// Of a sum rounded down and up, if they differ, one is odd.
TEXT ·roundPairsAVX512(SB), NOSPLIT, $0-16
	ARGUMENTS
	VBROADCASTSD Rounding_Scale(AX), Z7
	VPXOR X9, X9, X9
	MOVQ $1, R13
	VPBROADCASTQ R13, Z14

row:
	ROW(Z8)

columns:
	VMOVUPD (SI)(R12*8), Z2
	VMOVUPD (R8)(R12*8), Z0
	VMOVAPD Z0, Z1
	VFMADD231PD.RD_SAE Z2, Z7, Z0
	VFMADD231PD.RU_SAE Z2, Z7, Z1
	VPTESTMQ Z14, Z1, K1
	VMOVAPD Z1, K1, Z0
	VMULPD (DX)(R12*8), Z0, Z0
	VMULPD Z8, Z0, Z0
	VCVTPD2PS Z0, Y0
	VADDPS Y9, Y0, Y0 // −0 becomes +0
	TESTQ R15, R15
	JNZ  stream
	VMOVUPS Y0, (DI)(R12*4)
	NEXT(8, columns, row)
	VZEROUPPER
	RET

stream:
	VMOVNTPS Y0, (DI)(R12*4)
	NEXT(8, columns, row)
	SFENCE
	VZEROUPPER
	RET
