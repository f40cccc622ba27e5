// One function that widens lines of elements (see WidenLinesF32). Included once for each element type, with these
// macros set:
//
//	NAME   the function
//	LOAD   Y0 = the 8 elements at R8, widened
//	BYTES  of 8 elements
//
// DI dst, R9 ldd; SI src, R10 lds; CX lines left, DX columns; R8, R11 and AX move along a line.

TEXT NAME(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ ldd+8(FP), R9
	MOVQ src+16(FP), SI
	MOVQ lds+24(FP), R10
	MOVQ lines+32(FP), CX
	MOVQ n+40(FP), DX

line:
	MOVQ SI, R8
	MOVQ DI, R11
	MOVQ DX, AX

loop:
	LOAD
	VMOVUPS Y0, (R11)
	ADDQ $BYTES, R8
	ADDQ $32, R11
	SUBQ $8, AX
	JNZ  loop
	ADDQ R10, SI
	ADDQ R9, DI
	DECQ CX
	JNZ  line
	VZEROUPPER
	RET

#undef NAME
#undef LOAD
#undef BYTES
