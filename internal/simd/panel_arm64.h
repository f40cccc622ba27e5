// One function that adds to a tile of 8×8 of a sparse-dense product (see PanelF32). Included once for each element type
// of b, with these macros set:
//
//	NAME   the function
//	LOADB  V16, V17 = the 8 elements at R8, widened
//
// Row r has its sums in V(2·r) and V(2·r+1); V18 and V19 are the values of a vector.
//
// R0 acc, R1 lda; R2 vals, R3 v; R4 cols, R5 vectors left; R6 b, R7 ldb; R8 the vector's row of b, or a row of acc.
// Strides are in bytes.

// EACH does each row's sums, in place after place of acc.
#define EACH(do) \
	do(V0, V1) \
	ADD  R1, R8 \
	do(V2, V3) \
	ADD  R1, R8 \
	do(V4, V5) \
	ADD  R1, R8 \
	do(V6, V7) \
	ADD  R1, R8 \
	do(V8, V9) \
	ADD  R1, R8 \
	do(V10, V11) \
	ADD  R1, R8 \
	do(V12, V13) \
	ADD  R1, R8 \
	do(V14, V15)

#define TAKE(l, h) VLD1 (R8), [l.S4, h.S4]
#define PUT(l, h) VST1 [l.S4, h.S4], (R8)

// ROWS adds to two rows, whose values are in half h of the vector v: V(l) and V(h) are a row's sums.
#define ROWS(v, half, l0, h0, l1, h1) \
	FMLA(16, v, half, 0, l0) \
	FMLA(17, v, half, 0, h0) \
	FMLA(16, v, half, 1, l1) \
	FMLA(17, v, half, 1, h1)

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
	EACH(TAKE)

loop:
	MOVWU.P 4(R4), R8
	MUL     R7, R8, R8
	ADD     R6, R8, R8
	LOADB
	VLD1    (R2), [V18.S4, V19.S4]
	ADD     R3, R2
	ROWS(18, 0, 0, 1, 2, 3)
	ROWS(18, 1, 4, 5, 6, 7)
	ROWS(19, 0, 8, 9, 10, 11)
	ROWS(19, 1, 12, 13, 14, 15)
	SUBS    $1, R5
	BNE     loop

	MOVD R0, R8
	EACH(PUT)
	RET

#undef EACH
#undef TAKE
#undef PUT
#undef ROWS
#undef NAME
#undef LOADB
