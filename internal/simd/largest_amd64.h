// Two functions that find the largest magnitudes of columns of a matrix (see LargestColumns): of as many columns as a
// vector has lanes, and of several vectors side by side, whose rows are read from one end to the other. Included once
// for each instruction set, after scan_amd64.h with its macros, and with these set:
//
//	LARGEST1, LARGESTMANY  the functions
//	VB                     bytes of a vector
//	ALLONES                sets all bits of ABS
//	EACH(do)               do(i, l, s) for each vector i of LARGESTMANY and the registers of its two results
//
// DI largest, SI special; R8 x, R9 ld in bytes, CX rows left.

#define READ(i, l, s) MOV (VB*i)(DI), l; MOV (VB*i)(SI), s
#define WRITE(i, l, s) MOV l, (VB*i)(DI); MOV s, (VB*i)(SI)
#define SEE(i, l, s) \
	AND (VB*i)(R8), ABS, X; \
	VPADDD X, IMPLICIT, T; \
	VPSRAD $31, T, T; \
	OR T, s, s; \
	ANDN X, T, X; \
	VPMAXSD X, l, l

#define ARGUMENTS \
	MOVQ largest+0(FP), DI; \
	MOVQ special+8(FP), SI; \
	MOVQ x+16(FP), R8; \
	MOVQ ld+24(FP), R9; \
	MOVQ rows+32(FP), CX; \
	ALLONES; \
	VPSRLD $31, ABS, IMPLICIT; \
	VPSLLD $23, IMPLICIT, IMPLICIT; \
	VPSRLD $1, ABS, ABS

TEXT LARGEST1(SB), NOSPLIT, $0-40
	ARGUMENTS
	READ(0, LARGEST, SPECIAL)

one:
	PREFETCHT0 (R8)(R9*8)
	SEE(0, LARGEST, SPECIAL)
	ADDQ R9, R8
	DECQ CX
	JNZ  one
	WRITE(0, LARGEST, SPECIAL)
	VZEROUPPER
	RET

TEXT LARGESTMANY(SB), NOSPLIT, $0-40
	ARGUMENTS
	EACH(READ)

many:
	EACH(SEE)
	ADDQ R9, R8
	DECQ CX
	JNZ  many
	EACH(WRITE)
	VZEROUPPER
	RET

#undef READ
#undef WRITE
#undef SEE
#undef ARGUMENTS
