// One function that computes a row of a sparse-dense product (see RowF32). Included once for each
// pair of instruction set and element type, after entry_amd64.h, with these macros set:
//
//	ROW          the function
//	VL           elements of acc in a vector register
//	AB           bytes of a vector register
//	VB           bytes of as many elements of b
//	VALSIZE      bytes of an element of vals
//	A0 … A7, V   registers: the sums, and the entry's value in every lane
//	BCAST(mem)   V = the element at mem, widened, in every lane
//	MAC(mem, a)  a += V · the VL elements at mem, widened
//	ZERO(a), ADD(x, a), STORE(a, mem)
//
// Columns are done in tiles of 8, 4, 2 and 1 registers; within a tile 1, 2, 4 or 8 entries have sums
// of their own, so that eight multiply-adds are always under way. They are added at the end.
//
// DI acc, BX columns left, R9 b (at the tile's first column), R10 ldb in bytes; R11 vals, R12 cols,
// R13 nnz; SI, DX, CX: the same, moving; R8 the entry's row of b.

#define START \
	MOVQ R11, SI; MOVQ R12, DX; MOVQ R13, CX; \
	EACH8(ZERO)

#define NEXT(u) \
	ADDQ $(4*u), DX; ADDQ $(VALSIZE*u), SI; SUBQ $u, CX

#define ADVANCE(regs) \
	ADDQ $(AB*regs), DI; ADDQ $(VB*regs), R9; SUBQ $(VL*regs), BX

TEXT ROW(SB), NOSPLIT, $0-56
	MOVQ acc+0(FP), DI
	MOVQ n+8(FP), BX
	MOVQ vals+16(FP), R11
	MOVQ cols+24(FP), R12
	MOVQ nnz+32(FP), R13
	MOVQ b+40(FP), R9
	MOVQ ldb+48(FP), R10
	PREPARE

tile8:
	CMPQ BX, $(8*VL)
	JLT  tile4
	START

loop8:
	ENTRY(0)
	MAC8
	NEXT(1)
	JNZ loop8
	JOIN8
	PUT8(STORE, STORE)
	ADVANCE(8)
	JMP tile8

tile4:
	CMPQ BX, $(4*VL)
	JLT  tile2
	START
	SUBQ $2, CX
	JLT  last4

loop4:
	TWO
	NEXT(2)
	JGE loop4

last4:
	ADDQ $2, CX
	JZ   sum4
	ENTRY(0)
	MAC4(A0, A1, A2, A3)

sum4:
	SUM4
	JOIN4
	PUT4(STORE, STORE)
	ADVANCE(4)

tile2:
	CMPQ BX, $(2*VL)
	JLT  tile1
	START
	SUBQ $4, CX
	JLT  last2

loop2:
	FOUR
	NEXT(4)
	JGE loop2

last2:
	ADDQ $4, CX
	JZ   sum2

rest2:
	ENTRY(0)
	MAC2(A0, A1)
	NEXT(1)
	JNZ rest2

sum2:
	SUM2
	JOIN2
	PUT2(STORE, STORE)
	ADVANCE(2)

tile1:
	CMPQ BX, $VL
	JLT  done
	START
	SUBQ $8, CX
	JLT  last1

loop1:
	EIGHT(MAC)
	NEXT(8)
	JGE loop1

last1:
	ADDQ $8, CX
	JZ   sum1

rest1:
	ENTRY(0)
	MAC(0(R8), A0)
	NEXT(1)
	JNZ rest1

sum1:
	SUM1
	PUT1(STORE)

done:
	VZEROUPPER
	RET

#undef START
#undef NEXT
#undef ADVANCE
#undef ROW
