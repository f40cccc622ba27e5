// One function that adds to a tile of 8×8 of a sparse-dense product (see PanelF32). Included once for each element type of b,
// with these macros set:
//
//	NAME   the function
//	LOADB  V16, V17 = the 8 elements at R8, widened
//
// Row r has its sums in V(2·r) and V(2·r+1); V18 and V19 are the values of a vector.
//
// R0 acc, R1 lda; R2 vals, R3 v; R4 cols, R5 vectors left; R6 b, R7 ldb; R8 the vector's row of b, or a row of acc. Strides
// are in bytes.

TEXT NAME(SB), NOSPLIT, $0-64
	MOVD acc+0(FP), R0
	MOVD lda+8(FP), R1
	MOVD vals+16(FP), R2
	MOVD v+24(FP), R3
	MOVD cols+32(FP), R4
	MOVD nnz+40(FP), R5
	MOVD b+48(FP), R6
	MOVD ldb+56(FP), R7
	MOVD R0, R8
	VLD1 (R8), [V0.S4, V1.S4]
	ADD  R1, R8
	VLD1 (R8), [V2.S4, V3.S4]
	ADD  R1, R8
	VLD1 (R8), [V4.S4, V5.S4]
	ADD  R1, R8
	VLD1 (R8), [V6.S4, V7.S4]
	ADD  R1, R8
	VLD1 (R8), [V8.S4, V9.S4]
	ADD  R1, R8
	VLD1 (R8), [V10.S4, V11.S4]
	ADD  R1, R8
	VLD1 (R8), [V12.S4, V13.S4]
	ADD  R1, R8
	VLD1 (R8), [V14.S4, V15.S4]

loop:
	MOVWU.P 4(R4), R8
	MUL     R7, R8, R8
	ADD     R6, R8, R8
	LOADB
	VLD1    (R2), [V18.S4, V19.S4]
	ADD     R3, R2
	FMLA(16, 18, 0, 0, 0)
	FMLA(17, 18, 0, 0, 1)
	FMLA(16, 18, 0, 1, 2)
	FMLA(17, 18, 0, 1, 3)
	FMLA(16, 18, 1, 0, 4)
	FMLA(17, 18, 1, 0, 5)
	FMLA(16, 18, 1, 1, 6)
	FMLA(17, 18, 1, 1, 7)
	FMLA(16, 19, 0, 0, 8)
	FMLA(17, 19, 0, 0, 9)
	FMLA(16, 19, 0, 1, 10)
	FMLA(17, 19, 0, 1, 11)
	FMLA(16, 19, 1, 0, 12)
	FMLA(17, 19, 1, 0, 13)
	FMLA(16, 19, 1, 1, 14)
	FMLA(17, 19, 1, 1, 15)
	SUBS    $1, R5
	BNE     loop

	MOVD R0, R8
	VST1 [V0.S4, V1.S4], (R8)
	ADD  R1, R8
	VST1 [V2.S4, V3.S4], (R8)
	ADD  R1, R8
	VST1 [V4.S4, V5.S4], (R8)
	ADD  R1, R8
	VST1 [V6.S4, V7.S4], (R8)
	ADD  R1, R8
	VST1 [V8.S4, V9.S4], (R8)
	ADD  R1, R8
	VST1 [V10.S4, V11.S4], (R8)
	ADD  R1, R8
	VST1 [V12.S4, V13.S4], (R8)
	ADD  R1, R8
	VST1 [V14.S4, V15.S4], (R8)
	RET

#undef NAME
#undef LOADB
