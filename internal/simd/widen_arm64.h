// One function that widens 16-bit elements (see WidenF16). Included once for each type, with these macros set:
//
//	NAME           the function
//	LO(n, d), HI(n, d)  widen the lower and the upper half of Vn into Vd

TEXT NAME(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2

loop:
	VLD1.P 16(R1), [V0.H8]
	LO(0, 1)
	HI(0, 2)
	VST1.P [V1.S4, V2.S4], 32(R0)
	SUBS   $8, R2
	BNE    loop
	RET

#undef NAME
#undef LO
#undef HI
