// One function that computes a row of a sparse-dense product (see RowF32). Included once for each
// element type, with these macros set:
//
//	NAME     the function
//	VALSIZE  bytes of an element of vals
//	TILE32   bytes of 32 elements of b
//	BCAST    V16 = the entry at R7, widened, in every lane
//	LOAD32   V17 … V24 = the 32 elements at R11, widened
//	LOAD8    V17, V18 = the 8 elements at R11, widened
//
// Tiles of 32 columns have their sums in V0 … V7. In tiles of 8 columns four entries have sums of
// their own, which are added at the end, so that eight multiply-adds are always under way.
//
// R0 acc, R1 columns left, R5 b (at the tile's first column), R6 ldb in bytes; R2 vals, R3 cols, R4
// nnz; R7, R9, R10: the same, moving; R11 the entry's row of b.

#define START \
	MOVD R2, R7 \
	MOVD R3, R9 \
	MOVD R4, R10 \
	VEOR V0.B16, V0.B16, V0.B16 \
	VEOR V1.B16, V1.B16, V1.B16 \
	VEOR V2.B16, V2.B16, V2.B16 \
	VEOR V3.B16, V3.B16, V3.B16 \
	VEOR V4.B16, V4.B16, V4.B16 \
	VEOR V5.B16, V5.B16, V5.B16 \
	VEOR V6.B16, V6.B16, V6.B16 \
	VEOR V7.B16, V7.B16, V7.B16

#define ENTRY \
	MOVWU.P 4(R9), R11 \
	MUL     R6, R11, R11 \
	ADD     R5, R11, R11 \
	BCAST \
	ADD     $VALSIZE, R7

#define ENTRY8(a, b) \
	ENTRY \
	LOAD8 \
	VFMLA V17.S4, V16.S4, a \
	VFMLA V18.S4, V16.S4, b

TEXT NAME(SB), NOSPLIT, $0-56
	MOVD acc+0(FP), R0
	MOVD n+8(FP), R1
	MOVD vals+16(FP), R2
	MOVD cols+24(FP), R3
	MOVD nnz+32(FP), R4
	MOVD b+40(FP), R5
	MOVD ldb+48(FP), R6

tile32:
	CMP $32, R1
	BLT tile8
	START

loop32:
	ENTRY
	LOAD32
	VFMLA V17.S4, V16.S4, V0.S4
	VFMLA V18.S4, V16.S4, V1.S4
	VFMLA V19.S4, V16.S4, V2.S4
	VFMLA V20.S4, V16.S4, V3.S4
	VFMLA V21.S4, V16.S4, V4.S4
	VFMLA V22.S4, V16.S4, V5.S4
	VFMLA V23.S4, V16.S4, V6.S4
	VFMLA V24.S4, V16.S4, V7.S4
	SUBS  $1, R10
	BNE   loop32
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0)
	ADD    $TILE32, R5
	SUB    $32, R1
	B      tile32

tile8:
	CMP $8, R1
	BLT done
	START
	SUBS $4, R10
	BLT  last8

loop8:
	ENTRY8(V0.S4, V1.S4)
	ENTRY8(V2.S4, V3.S4)
	ENTRY8(V4.S4, V5.S4)
	ENTRY8(V6.S4, V7.S4)
	SUBS $4, R10
	BGE  loop8

last8:
	ADDS $4, R10
	BEQ  sum8

rest8:
	ENTRY8(V0.S4, V1.S4)
	SUBS $1, R10
	BNE  rest8

sum8:
	ADDS4(2, 0)
	ADDS4(3, 1)
	ADDS4(6, 4)
	ADDS4(7, 5)
	ADDS4(4, 0)
	ADDS4(5, 1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	ADD    $(TILE32/4), R5
	SUB    $8, R1
	B      tile8

done:
	RET

#undef START
#undef ENTRY
#undef ENTRY8
#undef NAME
#undef VALSIZE
#undef TILE32
#undef BCAST
#undef LOAD32
#undef LOAD8
