// One function that converts elements (see WidenF16). Included once for each conversion, with these macros set:
//
//	NAME       the function
//	FROM, TO   bytes of eight elements, at SI and at DI
//	CONSTANTS  what CONVERT needs in registers
//	CONVERT    eight elements at SI to DI

TEXT NAME(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	CONSTANTS

loop:
	CONVERT
	ADDQ $FROM, SI
	ADDQ $TO, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET

#undef NAME
#undef CONSTANTS
#undef CONVERT
