// One function that computes rows of a sparse-dense product, one after the other (see RowsF32). Included once for each
// pair of instruction set and element type, after entry_amd64.h, with these macros set:
//
//	ROWS         the function
//	VL           elements of C in a vector register
//	AB           bytes of a vector register
//	VB           bytes of as many elements of b
//	VALSIZE      bytes of an element of vals
//	A0 … A7, V, S  registers: the sums, the entry's value and alpha in every lane
//	BCAST(mem)   V = the element at mem, widened, in every lane
//	MAC(mem, a)  a += V · the VL elements at mem, widened; MACLAST(mem, a) the same, in the lanes of the mask alone
//	ZERO(a), ADD(x, a), SCALE(a)  a = 0, a += x, a *= alpha
//	STORE(a, mem), STREAM(a, mem)  to mem, by way of the caches or not; STORELAST(a, mem) the lanes of the mask alone
//	ALPHA        S = alpha;  MASK  the mask, whose lanes are all set but in the last vector of columns
//	AHEAD8, AHEAD4, AHEAD2  prefetch the lines at R8 of 8, 4 or 2 vectors of b
//
// Columns are done in tiles of 8, 4, 2 and 1 registers; within a tile 1, 2, 4 or 8 entries have sums of their own, so
// that eight multiply-adds are always under way. They are added at the end. The order of sums is that of row_amd64.h.
// With up to 8 registers of columns each tile is done for all rows. With more each row does all its tiles before the
// next row, as its rows of b are then read in one piece.
//
// AX job, whose vectors, c and b move from tile to tile; DI the row of C, R12 ldc; R9 b, R10 ldb; SI vals, DX cols, CX
// entries left in the row; R11 starts, BX rows left; R13 how far ahead of DX the columns are that are prefetched, 0 if
// none are; R8 the entry's row of b, R15 lines are streamed to C; R14 how far below DI the row of C is that
// is prefetched, 0 if none is. Strides are in bytes.

#define AHEAD(u) \
	MOVL (4*u)(DX)(R13*1), R8; \
	IMULQ R10, R8; \
	ADDQ R9, R8

// TILE begins a tile of w registers.
#define TILE(w) \
	MASK(w) \
	MOVQ rowsJob_starts(AX), R11; \
	MOVQ rowsJob_rows(AX), BX; \
	MOVQ rowsJob_cols(AX), DX; \
	MOVQ rowsJob_vals(AX), SI; \
	MOVQ rowsJob_b(AX), R9; \
	MOVQ rowsJob_c(AX), DI; \
	SUBQ $w, rowsJob_vectors(AX); \
	ADDQ $(VB*w), rowsJob_b(AX); \
	ADDQ $(AB*w), rowsJob_c(AX)

#define START \
	MOVL 4(R11), CX; \
	SUBL (R11), CX; \
	ADDQ $4, R11; \
	EACH8(ZERO)

// LONE does ENTRY for the entry that is left, or, if CX is 0, for -0 and a row of zeros, with which no sum changes a
// bit. Where it differs from row to row whether one is left, a branch is mispredicted, which takes as long as six
// entries.
#define LONE \
	LEAQ -4(DX)(CX*4), DX; \
	MOVL (DX), R8; \
	ADDQ $4, DX; \
	LEAQ (SI)(CX*VALSIZE), SI; \
	IMULQ R10, R8; \
	ADDQ R9, R8; \
	TESTL CX, CX; \
	LEAQ ·noEntry(SB), CX; \
	CMOVQEQ CX, R8; \
	LEAQ 264(CX), CX; \
	CMOVQNE SI, CX; \
	BCAST(-VALSIZE(CX))

// LATER prefetches the tile's lines of a later row of C, after which it is in R8.
#define LATER(lines) \
	LEAQ (DI)(R14*1), R8; \
	lines

// DOWN goes to the next row, or tile.
#define DOWN(row) \
	ADDQ R12, DI; DECQ BX; JNZ row; JMP tile

#define NEXT(u) \
	ADDQ $(4*u), DX; ADDQ $(VALSIZE*u), SI; SUBL $u, CX

TEXT ROWS(SB), NOSPLIT, $0-8
	MOVQ job+0(FP), AX
	MOVQ rowsJob_ldb(AX), R10
	MOVQ rowsJob_ldc(AX), R12
	MOVQ rowsJob_ahead(AX), R13
	MOVQ rowsJob_stream(AX), R15
	MOVQ rowsJob_later(AX), R14
	ALPHA
	PREPARE
	MOVQ rowsJob_vectors(AX), R8
	CMPQ R8, $8
	JLE  tile
	MOVQ R8, rowsJob_across(AX)
	MOVQ rowsJob_b(AX), R9
	MOVQ R9, rowsJob_left(AX)
	MOVQ rowsJob_c(AX), DI
	MOVQ DI, rowsJob_row(AX)
	MOVQ rowsJob_rows(AX), BX
	DECQ BX
	MOVQ BX, rowsJob_after(AX)
	MOVQ $1, rowsJob_rows(AX)

tile:
	CMPQ rowsJob_vectors(AX), $8
	JGE  tile8
	CMPQ rowsJob_vectors(AX), $4
	JGE  tile4
	CMPQ rowsJob_vectors(AX), $2
	JGE  tile2
	CMPQ rowsJob_vectors(AX), $1
	JGE  tile1
	DECQ rowsJob_after(AX)
	JLT  finish
	ADDQ $4, rowsJob_starts(AX)
	MOVQ DX, rowsJob_cols(AX)
	MOVQ SI, rowsJob_vals(AX)
	MOVQ rowsJob_left(AX), R9
	MOVQ R9, rowsJob_b(AX)
	MOVQ rowsJob_row(AX), DI
	ADDQ R12, DI
	MOVQ DI, rowsJob_row(AX)
	MOVQ DI, rowsJob_c(AX)
	MOVQ rowsJob_across(AX), R8
	MOVQ R8, rowsJob_vectors(AX)
	JMP  tile

finish:
	TESTQ R15, R15
	JZ   done
	SFENCE

done:
	VZEROUPPER
	RET

tile8:
	TILE(8)

row8:
	START
	TESTQ R14, R14
	JZ    begin8
	LATER(VECTORS8)

begin8:
	TESTL CX, CX
	JZ    store8
	TESTQ R13, R13
	JNZ   ahead8

loop8:
	ENTRY(0)
	MAC8
	NEXT(1)
	JNZ loop8
	JMP store8

ahead8:
	AHEAD(0)
	AHEAD8
	ENTRY(0)
	MAC8
	NEXT(1)
	JNZ ahead8

store8:
	JOIN8
	EACH8(SCALE)
	TESTQ R15, R15
	JNZ   stream8
	PUT8(STORE, STORELAST)
	DOWN(row8)

stream8:
	PUT8(STREAM, STREAM)
	DOWN(row8)

tile4:
	TILE(4)

row4:
	START
	TESTQ R14, R14
	JZ    begin4
	LATER(VECTORS4)

begin4:
	TESTL CX, CX
	JZ    sum4
	SUBL  $2, CX
	JLT   last4
	TESTQ R13, R13
	JNZ   ahead4

loop4:
	TWO
	NEXT(2)
	JGE loop4
	JMP last4

ahead4:
	AHEAD(0)
	AHEAD4
	AHEAD(1)
	AHEAD4
	TWO
	NEXT(2)
	JGE ahead4

last4:
	ADDL $2, CX
	CMPQ rowsJob_uneven(AX), $0
	JNE  lone4
	TESTL CX, CX
	JZ   sum4

lone4:
	TESTQ R13, R13
	JZ   entry4
	AHEAD(0)
	AHEAD4

entry4:
	LONE
	MAC4(A0, A1, A2, A3)

sum4:
	SUM4
	JOIN4
	EACH4(SCALE)
	TESTQ R15, R15
	JNZ   stream4
	PUT4(STORE, STORELAST)
	DOWN(row4)

stream4:
	PUT4(STREAM, STREAM)
	DOWN(row4)

tile2:
	TILE(2)

row2:
	START
	TESTQ R14, R14
	JZ    begin2
	LATER(VECTORS2)

begin2:
	SUBL $4, CX
	JLT  short2
	TESTQ R13, R13
	JNZ  ahead2

loop2:
	FOUR
	NEXT(4)
	JGE loop2
	JMP short2

ahead2:
	AHEAD(0)
	AHEAD2
	AHEAD(1)
	AHEAD2
	AHEAD(2)
	AHEAD2
	AHEAD(3)
	AHEAD2
	FOUR
	NEXT(4)
	JGE ahead2

short2:
	ADDL $4, CX
	JZ   sum2
	TESTQ R13, R13
	JNZ  restahead2

rest2:
	ENTRY(0)
	MAC2(A0, A1)
	NEXT(1)
	JNZ rest2
	JMP sum2

restahead2:
	AHEAD(0)
	AHEAD2
	ENTRY(0)
	MAC2(A0, A1)
	NEXT(1)
	JNZ restahead2

sum2:
	SUM2
	JOIN2
	EACH2(SCALE)
	TESTQ R15, R15
	JNZ   stream2
	PUT2(STORE, STORELAST)
	DOWN(row2)

stream2:
	PUT2(STREAM, STREAM)
	DOWN(row2)

tile1:
	TILE(1)

row1:
	START
	SUBL $8, CX
	JLT  short1

loop1:
	EIGHT(MACLAST)
	NEXT(8)
	JGE loop1

short1:
	ADDL $8, CX
	JZ   sum1

rest1:
	ENTRY(0)
	MACLAST(0(R8), A0)
	NEXT(1)
	JNZ rest1

sum1:
	SUM1
	EACH1(SCALE)
	PUT1(STORELAST)
	DOWN(row1)

#undef AHEAD
#undef TILE
#undef START
#undef LATER
#undef LONE
#undef NEXT
#undef DOWN
#undef ROWS
