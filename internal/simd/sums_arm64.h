// How the functions of row_arm64.h begin: their arguments, and a tile of columns.
//
// R0 acc, R1 columns left, R5 b (at the tile's first column), R6 ldb in bytes; R2 vals, R3 cols, R4
// nnz; R7, R9, R10: the same, moving; V0 to V7 the sums.

#define ARGUMENTS \
	MOVD acc+0(FP), R0 \
	MOVD n+8(FP), R1 \
	MOVD vals+16(FP), R2 \
	MOVD cols+24(FP), R3 \
	MOVD nnz+32(FP), R4 \
	MOVD b+40(FP), R5 \
	MOVD ldb+48(FP), R6

#define START \
	MOVD R2, R7 \
	MOVD R3, R9 \
	MOVD R4, R10 \
	VEOR V0.B16, V0.B16, V0.B16 \
	VEOR V1.B16, V1.B16, V1.B16 \
	VEOR V2.B16, V2.B16, V2.B16 \
	VEOR V3.B16, V3.B16, V3.B16 \
	VEOR V4.B16, V4.B16, V4.B16 \
	VEOR V5.B16, V5.B16, V5.B16 \
	VEOR V6.B16, V6.B16, V6.B16 \
	VEOR V7.B16, V7.B16, V7.B16
