// Scaled vectors, added, with AVX2.

#include "textflag.h"

// func axpbyAVX2(c, x *float32, n int, alpha, beta float32)
// n is a positive multiple of eight; c is not read where beta is ±0.
TEXT ·axpbyAVX2(SB), NOSPLIT, $0-32
	MOVQ c+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS alpha+24(FP), Y0
	VBROADCASTSS beta+28(FP), Y1
	MOVL beta+28(FP), AX
	SHLL $1, AX
	JZ   scale

both:
	VMULPS (DI), Y1, Y2
	VFMADD231PS (SI), Y0, Y2
	VMOVUPS Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  both
	VZEROUPPER
	RET

scale:
	VMULPS (SI), Y0, Y2
	VMOVUPS Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  scale
	VZEROUPPER
	RET
