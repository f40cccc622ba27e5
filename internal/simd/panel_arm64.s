// Panels of sparse-dense products with NEON: panel_arm64.h for each element type, and widening.

#include "textflag.h"

// Instructions that Go's assembler lacks.
#define F16LO(n, d) WORD $(0x0E217800 | n<<5 | d)  // FCVTL Vd.4S, Vn.4H
#define F16HI(n, d) WORD $(0x4E217800 | n<<5 | d)  // FCVTL2 Vd.4S, Vn.8H
#define BF16LO(n, d) WORD $(0x2E613800 | n<<5 | d) // SHLL Vd.4S, Vn.4H, #16
#define BF16HI(n, d) WORD $(0x6E613800 | n<<5 | d) // SHLL2 Vd.4S, Vn.8H, #16

// FMLA Vd.4S, Vn.4S, Vm.S[2·h+l], m from 16 on
#define FMLA(n, m, h, l, d) WORD $(0x4F801000 | l<<21 | m<<16 | h<<11 | n<<5 | d)

#define NAME ·panelF32NEON
#define LOADB VLD1 (R8), [V16.S4, V17.S4]
#include "panel_arm64.h"

#define NAME ·panelF16NEON
#define LOADB \
	VLD1 (R8), [V20.H8] \
	F16LO(20, 16) \
	F16HI(20, 17)
#include "panel_arm64.h"

#define NAME ·panelBF16NEON
#define LOADB \
	VLD1 (R8), [V20.H8] \
	BF16LO(20, 16) \
	BF16HI(20, 17)
#include "panel_arm64.h"

// func widenF16NEON(dst *float32, src *half.F16, n int)
TEXT ·widenF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2

loop:
	VLD1.P 16(R1), [V0.H8]
	F16LO(0, 1)
	F16HI(0, 2)
	VST1.P [V1.S4, V2.S4], 32(R0)
	SUBS   $8, R2
	BNE    loop
	RET

// func widenBF16NEON(dst *float32, src *half.BF16, n int)
TEXT ·widenBF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2

loop:
	VLD1.P 16(R1), [V0.H8]
	BF16LO(0, 1)
	BF16HI(0, 2)
	VST1.P [V1.S4, V2.S4], 32(R0)
	SUBS   $8, R2
	BNE    loop
	RET
