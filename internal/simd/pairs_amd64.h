// One function that computes two products of integers at once (see IntRows), row after row. Included once for each
// instruction set, after the macros of integers_amd64.h; PAIRS is the function.
//
// Columns are done in tiles of 4, 2 and 1 registers, and each tile for all rows; within a tile 1, 2 or 4 entries have
// sums of their own, so that eight multiply-adds are always under way: A0 to A3 are those with the first value, A4 to
// A7 those with the second.
//
// Registers are those of rows_amd64.h; R15 is the bytes from an entry's value to its second, V and S are these in every
// lane, T its vector of b.

// PAIR finds the row of b of entry u from DX on, and broadcasts its values.
#define PAIR(u) \
	MOVL (4*u)(DX), R8; \
	IMULQ R10, R8; \
	ADDQ R9, R8; \
	VBROADCASTSD (8*u)(SI), V; \
	VBROADCASTSD (8*u)(SI)(R15*1), S

// BOTH adds the products with the vector at mem.
#define BOTH(mem, low, high) \
	VCVTDQ2PD mem, T; VFMADD231PD T, V, low; VFMADD231PD T, S, high

#define AHEAD(u) \
	MOVL (4*u)(DX)(R13*1), R8; \
	IMULQ R10, R8; \
	ADDQ R9, R8

#define TILE(w) \
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

#define DOWN(row) \
	LEAQ (DI)(R12*2), DI; DECQ BX; JNZ row; JMP tile

#define NEXT(u) \
	ADDQ $(4*u), DX; ADDQ $(8*u), SI; SUBL $u, CX

TEXT PAIRS(SB), NOSPLIT, $0-8
	MOVQ job+0(FP), AX
	MOVQ rowsJob_ldb(AX), R10
	MOVQ rowsJob_ldc(AX), R12
	MOVQ rowsJob_ahead(AX), R13
	MOVQ rowsJob_upper(AX), R15
	SUBQ rowsJob_vals(AX), R15

tile:
	CMPQ rowsJob_vectors(AX), $4
	JGE  tile4
	CMPQ rowsJob_vectors(AX), $2
	JGE  tile2
	CMPQ rowsJob_vectors(AX), $1
	JGE  tile1
	VZEROUPPER
	RET

tile4:
	TILE(4)

row4:
	START
	TESTL CX, CX
	JZ    store4
	TESTQ R13, R13
	JNZ   ahead4

loop4:
	PAIR(0)
	BOTH(0(R8), A0, A4)
	BOTH(VB(R8), A1, A5)
	BOTH((2*VB)(R8), A2, A6)
	BOTH((3*VB)(R8), A3, A7)
	NEXT(1)
	JNZ loop4
	JMP store4

ahead4:
	AHEAD(0)
	AHEAD4
	PAIR(0)
	BOTH(0(R8), A0, A4)
	BOTH(VB(R8), A1, A5)
	BOTH((2*VB)(R8), A2, A6)
	BOTH((3*VB)(R8), A3, A7)
	NEXT(1)
	JNZ ahead4

store4:
	VMOVUPD A0, (DI)
	VMOVUPD A1, AB(DI)
	VMOVUPD A2, (2*AB)(DI)
	VMOVUPD A3, (3*AB)(DI)
	LEAQ    (DI)(R12*1), R8
	VMOVUPD A4, (R8)
	VMOVUPD A5, AB(R8)
	VMOVUPD A6, (2*AB)(R8)
	VMOVUPD A7, (3*AB)(R8)
	DOWN(row4)

tile2:
	TILE(2)

row2:
	START
	SUBL $2, CX
	JLT  last2

loop2:
	PAIR(0)
	BOTH(0(R8), A0, A4)
	BOTH(VB(R8), A1, A5)
	PAIR(1)
	BOTH(0(R8), A2, A6)
	BOTH(VB(R8), A3, A7)
	NEXT(2)
	JGE loop2

last2:
	ADDL $2, CX
	JZ   sum2
	PAIR(0)
	BOTH(0(R8), A0, A4)
	BOTH(VB(R8), A1, A5)
	NEXT(1)

sum2:
	ADD(A2, A0)
	ADD(A3, A1)
	ADD(A6, A4)
	ADD(A7, A5)
	VMOVUPD A0, (DI)
	VMOVUPD A1, AB(DI)
	LEAQ    (DI)(R12*1), R8
	VMOVUPD A4, (R8)
	VMOVUPD A5, AB(R8)
	DOWN(row2)

tile1:
	TILE(1)

row1:
	START
	SUBL $4, CX
	JLT  short1

loop1:
	PAIR(0)
	BOTH(0(R8), A0, A4)
	PAIR(1)
	BOTH(0(R8), A1, A5)
	PAIR(2)
	BOTH(0(R8), A2, A6)
	PAIR(3)
	BOTH(0(R8), A3, A7)
	NEXT(4)
	JGE loop1

short1:
	ADDL $4, CX
	JZ   sum1

each1:
	PAIR(0)
	BOTH(0(R8), A0, A4)
	NEXT(1)
	JNZ each1

sum1:
	ADD(A1, A0)
	ADD(A3, A2)
	ADD(A5, A4)
	ADD(A7, A6)
	ADD(A2, A0)
	ADD(A6, A4)
	VMOVUPD A0, (DI)
	VMOVUPD A4, (DI)(R12*1)
	DOWN(row1)

#undef PAIR
#undef BOTH
#undef AHEAD
#undef TILE
#undef START
#undef DOWN
#undef NEXT
#undef PAIRS
