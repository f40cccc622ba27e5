// One function that computes rows of products of integers (see IntRows) in tiles of as many columns as give an entry
// sixteen multiply-adds, with AVX-512. Included for one product and for two at once, with these macros set:
//
//	WIDE     the function
//	W        vectors of columns of a tile
//	BCAST    Z8, and Z10 for the second value = the values of the entry at SI, in every lane
//	MACS     the products of W vectors at R8 added to Z0 to Z7 and Z16 to Z23
//	LINES    prefetch the lines at R8 of W vectors of b
//	PUTS     store the sums at DI
//	DOWN     DI goes to the next row's sums
//	BEFORE   sets registers that the others read
//
// It leaves columns that do not fill a tile in the job. Registers are those of pairs_amd64.h.

TEXT WIDE(SB), NOSPLIT, $0-8
	MOVQ job+0(FP), AX
	MOVQ rowsJob_ldb(AX), R10
	MOVQ rowsJob_ldc(AX), R12
	MOVQ rowsJob_ahead(AX), R13
	MOVQ rowsJob_upper(AX), R15
	SUBQ rowsJob_vals(AX), R15
	BEFORE

tile:
	CMPQ rowsJob_vectors(AX), $W
	JLT  done
	MOVQ rowsJob_starts(AX), R11
	MOVQ rowsJob_rows(AX), BX
	MOVQ rowsJob_cols(AX), DX
	MOVQ rowsJob_vals(AX), SI
	MOVQ rowsJob_b(AX), R9
	MOVQ rowsJob_c(AX), DI
	SUBQ $W, rowsJob_vectors(AX)
	ADDQ $(32*W), rowsJob_b(AX)
	ADDQ $(64*W), rowsJob_c(AX)

row:
	MOVL 4(R11), CX
	SUBL (R11), CX
	ADDQ $4, R11
	ZERO8(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	ZERO8(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)
	TESTL CX, CX
	JZ    store

loop:
	TESTQ R13, R13
	JZ    entry
	MOVL  (DX)(R13*1), R8
	IMULQ R10, R8
	ADDQ  R9, R8
	LINES

entry:
	MOVL  (DX), R8
	IMULQ R10, R8
	ADDQ  R9, R8
	BCAST
	MACS
	ADDQ $4, DX
	ADDQ $8, SI
	DECL CX
	JNZ  loop

store:
	PUTS
	DOWN
	DECQ BX
	JNZ  row
	JMP  tile

done:
	VZEROUPPER
	RET

#undef WIDE
#undef W
#undef BCAST
#undef MACS
#undef LINES
#undef PUTS
#undef DOWN
#undef BEFORE
