// One function that adds to a tile of eight rows of a sparse-dense product (see PanelF32). Included
// once for each pair of instruction set and element type, with these macros set:
//
//	NAME            the function
//	EACH(do, next)  do(r, l, h) for each row r, whose sums are in l and h, or in l alone; next in between
//	AHEAD           prefetch the tile's columns of the row of b that is R13 bytes after its first
//	LOADB           the tile's columns of the row of b at R8, widened, into the B registers
//	ROW(r, l, h)    l, h += vals[r] (at 4·r bytes from SI, in every lane) · the B registers
//	TAKE(r, l, h)   l, h = the sums at R8;  PUT(r, l, h) the reverse
//
// The row of b of the eighth vector on is prefetched, or that of the last.
//
// DI acc, R9 lda; SI vals, R10 v; DX cols, CX vectors left; BX b at the tile's first column, R11 ldb;
// R12 the last of cols, R13 the row of b to prefetch; R8 the vector's row of b, or a row of acc. Strides are in bytes.

#define DOWN ADDQ R9, R8;
#define STAY

TEXT NAME(SB), NOSPLIT, $0-64
	MOVQ acc+0(FP), DI
	MOVQ lda+8(FP), R9
	MOVQ vals+16(FP), SI
	MOVQ v+24(FP), R10
	MOVQ cols+32(FP), DX
	MOVQ nnz+40(FP), CX
	MOVQ b+48(FP), BX
	MOVQ ldb+56(FP), R11
	LEAQ -4(DX)(CX*4), R12
	MOVQ DI, R8
	EACH(TAKE, DOWN)

loop:
	LEAQ  32(DX), R13
	CMPQ  R13, R12
	CMOVQHI R12, R13
	MOVL  (R13), R13
	IMULQ R11, R13
	AHEAD
	MOVL  (DX), R8
	IMULQ R11, R8
	ADDQ  BX, R8
	LOADB
	EACH(ROW, STAY)
	ADDQ R10, SI
	ADDQ $4, DX
	DECQ CX
	JNZ  loop
	MOVQ DI, R8
	EACH(PUT, DOWN)
	VZEROUPPER
	RET

#undef DOWN
#undef STAY
#undef NAME
#undef LOADB
#undef AHEAD
