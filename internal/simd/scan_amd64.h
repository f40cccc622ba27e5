// One function that scans columns of a matrix (see ScanColumns), as many as a vector has lanes. Included once for each
// instruction set, with these macros set:
//
//	SCAN, MOV             the function; to and from memory
//	AND, ANDN, OR, XOR    of whole vectors
//	X, T, U, W            registers: elements, and intermediate results
//	LARGEST, LOWEST, SPECIAL, ABS, IMPLICIT, ONE, ZERO, ONES  registers: results, and constants; XONES lies in ONES
//
// DI largest, SI lowest, DX special; R8 x, R9 ld in bytes, CX rows left.

TEXT SCAN(SB), NOSPLIT, $0-48
	MOVQ largest+0(FP), DI
	MOVQ lowest+8(FP), SI
	MOVQ special+16(FP), DX
	MOVQ x+24(FP), R8
	MOVQ ld+32(FP), R9
	MOVQ rows+40(FP), CX
	MOVL $-1, AX
	MOVQ AX, XONES
	VPBROADCASTD XONES, ONES
	XOR ZERO, ZERO, ZERO
	VPSRLD $1, ONES, ABS
	VPSRLD $31, ONES, ONE
	VPSLLD $23, ONE, IMPLICIT
	MOV (DI), LARGEST
	MOV (SI), LOWEST
	MOV (DX), SPECIAL

loop:
	PREFETCHT0 (R8)(R9*8)
	AND (R8), ABS, X      // magnitude
	VPADDD X, IMPLICIT, T
	VPSRAD $31, T, T      // not finite
	OR T, SPECIAL, SPECIAL
	ANDN X, T, X          // 0 in its place
	VPMAXSD X, LARGEST, LARGEST
	VPSRLD $23, X, T
	VPMAXSD ONE, T, T     // exponent; subnormals have that of the least normal numbers
	OR X, IMPLICIT, U     // the lowest bit, as if all were normal: if it is the implicit one, X is
	VPSUBD U, ZERO, W
	AND W, U, U
	VCVTDQ2PS U, U
	VPSRLD $23, U, U      // that bit's number + 127
	VPADDD U, T, T
	VPSUBD ONE, X, U
	VPSRAD $31, U, U
	OR U, T, T            // zeros have none
	VPMINUD T, LOWEST, LOWEST
	ADDQ R9, R8
	DECQ CX
	JNZ  loop
	MOV LARGEST, (DI)
	MOV LOWEST, (SI)
	MOV SPECIAL, (DX)
	VZEROUPPER
	RET
