// Rounding to 16-bit elements with AVX2 and F16C.

#include "textflag.h"

// func narrowF16AVX2(dst *half.F16, src *float32, n int)
TEXT ·narrowF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VMOVUPS (SI), Y0
	VCVTPS2PH $0, Y0, (DI) // to nearest even, whatever MXCSR says
	ADDQ $32, SI
	ADDQ $16, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET

// func narrowBF16AVX2(dst *half.BF16, src *float32, n int)
// Adding 0x7fff, and 1 more where the kept part is odd, carries into it where it must be rounded
// up. NaNs, which that might make infinities or zeros, keep their upper half, made quiet.
TEXT ·narrowBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPCMPEQD Y7, Y7, Y7
	VPSRLD $31, Y7, Y6 // 1
	VPSRLD $17, Y7, Y5 // 0x7fff
	VPSLLD $22, Y6, Y4 // 0x400000, the quiet bit

loop:
	VMOVUPS (SI), Y0
	VPSRLD $16, Y0, Y1
	VPAND Y6, Y1, Y1
	VPADDD Y5, Y1, Y1
	VPADDD Y0, Y1, Y1
	VPOR Y4, Y0, Y2
	VCMPPS $3, Y0, Y0, Y3 // unordered: NaN
	VBLENDVPS Y3, Y2, Y1, Y1
	VPSRLD $16, Y1, Y1
	VEXTRACTI128 $1, Y1, X2
	VPACKUSDW X2, X1, X1
	VMOVDQU X1, (DI)
	ADDQ $32, SI
	ADDQ $16, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET
