// Vectors of AVX2: 32 bytes. b is padded to whole registers, so that only stores need the mask, which is Y11.

#define AB 32
#define A0 Y0
#define A1 Y1
#define A2 Y2
#define A3 Y3
#define A4 Y4
#define A5 Y5
#define A6 Y6
#define A7 Y7
#define V Y8
#define HALF X8
#define T Y9
#define THALF X9
#define S Y10
#define ZERO(a) VXORPS a, a, a
#define FMALAST(x, a) VFMA x, V, a
#define LOADLAST(op, mem, a) op mem, a
#define STORELAST(a, mem) MASKMOV a, Y11, mem
#define MASK(w) \
	MOVQ $0, R8; \
	CMPQ rowsJob_vectors(AX), $w; \
	CMOVQEQ rowsJob_missing(AX), R8; \
	SHLQ $SHIFT, R8; \
	LEAQ ·laneMasks(SB), CX; \
	VMOVUPS (CX)(R8*1), Y11;

// INTERLEAVE makes of the even columns in a and the odd ones in b the first and the last in order; UPPER selects upper
// halves of words.
#define UPPER Y12
#define ODD Y13

// BOTHVALUES has the values of two entries in turn, HALFTWO the same of 16 bits.
#define BOTHVALUES Y14
#define HALFTWO X14

#define INTERLEAVING VPCMPEQD UPPER, UPPER, UPPER; VPSLLD $16, UPPER, UPPER
#define INTERLEAVE(a, b) \
	VUNPCKLPS b, a, T; VUNPCKHPS b, a, ODD; VPERM2F128 $0x20, ODD, T, a; VPERM2F128 $0x31, ODD, T, b

#define VECTORS8 LINES4
#define VECTORS4 LINES2
#define VECTORS2 LINES1
#define VECTORS1 LINES1
