// One function that computes a row of a sparse-dense product of integers (see RowInt32). Included once for each
// element type, with these macros set:
//
//	NAME   the function
//	TILE8  bytes of 8 elements of b
//	LOAD8  V17, V18 = the 8 elements at R11, widened to 32 bits
//
// Tiles of 8 columns have their sums in V0 … V3, those of every other entry in V4 … V7, which are added at the end.
//
// Registers are those of sums_arm64.h, which comes before; R11 is the entry's row of b, V16 its value in every lane.

#define ENTRY(a, b, c, d) \
	MOVWU.P 4(R9), R11 \
	MUL     R6, R11, R11 \
	ADD     R5, R11, R11 \
	VLD1R.P 4(R7), [V16.S4] \
	LOAD8 \
	SMLAL(16, 17, a) \
	SMLAL2(16, 17, b) \
	SMLAL(16, 18, c) \
	SMLAL2(16, 18, d)

TEXT NAME(SB), NOSPLIT, $0-56
	ARGUMENTS

tile:
	START
	SUBS $2, R10
	BLT  last

pair:
	ENTRY(0, 1, 2, 3)
	ENTRY(4, 5, 6, 7)
	SUBS $2, R10
	BGE  pair

last:
	ADDS $2, R10
	BEQ  sum
	ENTRY(0, 1, 2, 3)

sum:
	VADD V4.D2, V0.D2, V0.D2
	VADD V5.D2, V1.D2, V1.D2
	VADD V6.D2, V2.D2, V2.D2
	VADD V7.D2, V3.D2, V3.D2
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	ADD  $TILE8, R5
	SUBS $8, R1
	BNE  tile
	RET

#undef ENTRY
#undef NAME
#undef TILE8
#undef LOAD8
