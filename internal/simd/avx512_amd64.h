// Vectors of AVX-512, after those of avx2_amd64.h: 64 bytes. The mask is K1.

#undef AB
#undef A0
#undef A1
#undef A2
#undef A3
#undef A4
#undef A5
#undef A6
#undef A7
#undef V
#undef HALF
#undef T
#undef THALF
#undef S
#undef ZERO
#undef FMALAST
#undef LOADLAST
#undef STORELAST
#undef MASK
#undef UPPER
#undef ODD
#undef BOTHVALUES
#undef HALFTWO
#undef INTERLEAVING
#undef INTERLEAVE
#undef VECTORS8
#undef VECTORS4
#undef VECTORS2
#undef VECTORS1

#define AB 64
#define A0 Z0
#define A1 Z1
#define A2 Z2
#define A3 Z3
#define A4 Z4
#define A5 Z5
#define A6 Z6
#define A7 Z7
#define V Z8
#define HALF Y8
#define T Z9
#define THALF Y9
#define S Z10
#define ZERO(a) VPXORD a, a, a
#define FMALAST(x, a) VFMA x, V, K1, a
#define LOADLAST(op, mem, a) op.Z mem, K1, a
#define STORELAST(a, mem) MOV a, K1, mem
#define MASK(w) \
	MOVQ $0, CX; \
	CMPQ rowsJob_vectors(AX), $w; \
	CMOVQEQ rowsJob_missing(AX), CX; \
	MOVL $(1<<VL-1), R8; \
	SHRL CX, R8; \
	KMOVW R8, K1;

#define UPPER Z12
#define ODD Z13
#define BOTHVALUES Z16
#define HALFTWO Y16
#define INTERLEAVING \
	VPTERNLOGD $0xff, UPPER, UPPER, UPPER; VPSLLD $16, UPPER, UPPER; \
	VMOVDQU32 ·interleaved(SB), Z14; VMOVDQU32 ·interleaved+64(SB), Z15
#define INTERLEAVE(a, b) \
	VMOVAPS a, T; VPERMT2PS b, Z14, a; VPERMT2PS b, Z15, T; VMOVAPS T, b

#define VECTORS8 LINES8
#define VECTORS4 LINES4
#define VECTORS2 LINES2
#define VECTORS1 LINES1
