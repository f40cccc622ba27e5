// One function that computes a row of a sparse-dense product (see RowF32). Included once for each
// element type, with these macros set:
//
//	NAME     the function
//	VALSIZE  bytes of an element of vals
//	WIDE     columns of a wide tile: 32 with sums in float32, 16 with sums in float64
//	TILE     bytes of as many elements of b
//	BCAST    V16 = the entry at R7, widened, in every lane
//	LOADWIDE V17 … V24 = the WIDE elements at R11, widened
//	LOAD     V17, V18 = the WIDE/4 elements at R11, widened
//	FMA(x, a) Va += V16 · Vx, JOIN(n, d) Vd += Vn
//
// Wide tiles have their sums in V0 … V7. In tiles of a quarter of that four entries have sums of
// their own, which are added at the end, so that eight multiply-adds are always under way.
//
// Registers are those of sums_arm64.h, which comes before; R11 is the entry's row of b.

#define ENTRY \
	MOVWU.P 4(R9), R11 \
	MUL     R6, R11, R11 \
	ADD     R5, R11, R11 \
	BCAST \
	ADD     $VALSIZE, R7

#define ENTRYNARROW(a, b) \
	ENTRY \
	LOAD \
	FMA(17, a) \
	FMA(18, b)

TEXT NAME(SB), NOSPLIT, $0-56
	ARGUMENTS

tilewide:
	CMP $WIDE, R1
	BLT tilenarrow
	START

loopwide:
	ENTRY
	LOADWIDE
	FMA(17, 0)
	FMA(18, 1)
	FMA(19, 2)
	FMA(20, 3)
	FMA(21, 4)
	FMA(22, 5)
	FMA(23, 6)
	FMA(24, 7)
	SUBS  $1, R10
	BNE   loopwide
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R0)
	VST1.P [V4.B16, V5.B16, V6.B16, V7.B16], 64(R0)
	ADD    $TILE, R5
	SUB    $WIDE, R1
	B      tilewide

tilenarrow:
	CMP $(WIDE/4), R1
	BLT done
	START
	SUBS $4, R10
	BLT  lastnarrow

loopnarrow:
	ENTRYNARROW(0, 1)
	ENTRYNARROW(2, 3)
	ENTRYNARROW(4, 5)
	ENTRYNARROW(6, 7)
	SUBS $4, R10
	BGE  loopnarrow

lastnarrow:
	ADDS $4, R10
	BEQ  sumnarrow

restnarrow:
	ENTRYNARROW(0, 1)
	SUBS $1, R10
	BNE  restnarrow

sumnarrow:
	JOIN(2, 0)
	JOIN(3, 1)
	JOIN(6, 4)
	JOIN(7, 5)
	JOIN(4, 0)
	JOIN(5, 1)
	VST1.P [V0.B16, V1.B16], 32(R0)
	ADD    $(TILE/4), R5
	SUB    $(WIDE/4), R1
	B      tilenarrow

done:
	RET

#undef ENTRY
#undef ENTRYNARROW
#undef NAME
#undef VALSIZE
#undef TILE
#undef BCAST
#undef LOADWIDE
#undef LOAD
