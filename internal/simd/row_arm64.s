// Rows of sparse-dense products with NEON: row_arm64.h for each element type.

#include "textflag.h"

// Instructions that Go's assembler lacks.
#define ADDS4(n, d) WORD $(0x4E20D400 | n<<16 | d<<5 | d)  // FADD Vd.4S, Vd.4S, Vn.4S
#define ADDD2(n, d) WORD $(0x4E60D400 | n<<16 | d<<5 | d)  // FADD Vd.2D, Vd.2D, Vn.2D
#define F16LO(n, d) WORD $(0x0E217800 | n<<5 | d)          // FCVTL Vd.4S, Vn.4H
#define F16HI(n, d) WORD $(0x4E217800 | n<<5 | d)          // FCVTL2 Vd.4S, Vn.8H
#define BF16LO(n, d) WORD $(0x2E613800 | n<<5 | d)         // SHLL Vd.4S, Vn.4H, #16
#define BF16HI(n, d) WORD $(0x6E613800 | n<<5 | d)         // SHLL2 Vd.4S, Vn.8H, #16

#define WIDE 32
#define FMA(x, a) WORD $(0x4E20CC00 | 16<<16 | x<<5 | a)  // FMLA Va.4S, Vx.4S, V16.4S
#define JOIN(n, d) ADDS4(n, d)

#define NAME ·rowF32NEON
#define VALSIZE 4
#define TILE 128
#define BCAST VLD1R (R7), [V16.S4]
#define LOAD VLD1 (R11), [V17.S4, V18.S4]
#define LOADWIDE \
	VLD1.P 64(R11), [V17.S4, V18.S4, V19.S4, V20.S4] \
	VLD1   (R11), [V21.S4, V22.S4, V23.S4, V24.S4]
#include "row_arm64.h"

#define NAME ·rowF16NEON
#define VALSIZE 2
#define TILE 64
#define BCAST \
	VLD1R (R7), [V16.H4] \
	F16LO(16, 16)
#define LOAD \
	VLD1 (R11), [V25.H8] \
	F16LO(25, 17) \
	F16HI(25, 18)
#define LOADWIDE \
	VLD1 (R11), [V25.H8, V26.H8, V27.H8, V28.H8] \
	F16LO(25, 17) \
	F16HI(25, 18) \
	F16LO(26, 19) \
	F16HI(26, 20) \
	F16LO(27, 21) \
	F16HI(27, 22) \
	F16LO(28, 23) \
	F16HI(28, 24)
#include "row_arm64.h"

#define NAME ·rowBF16NEON
#define VALSIZE 2
#define TILE 64
#define BCAST \
	VLD1R (R7), [V16.H4] \
	BF16LO(16, 16)
#define LOAD \
	VLD1 (R11), [V25.H8] \
	BF16LO(25, 17) \
	BF16HI(25, 18)
#define LOADWIDE \
	VLD1 (R11), [V25.H8, V26.H8, V27.H8, V28.H8] \
	BF16LO(25, 17) \
	BF16HI(25, 18) \
	BF16LO(26, 19) \
	BF16HI(26, 20) \
	BF16LO(27, 21) \
	BF16HI(27, 22) \
	BF16LO(28, 23) \
	BF16HI(28, 24)
#include "row_arm64.h"

#undef WIDE
#undef FMA
#undef JOIN
#define WIDE 16
#define FMA(x, a) WORD $(0x4E60CC00 | 16<<16 | x<<5 | a)  // FMLA Va.2D, Vx.2D, V16.2D
#define JOIN(n, d) ADDD2(n, d)

#define NAME ·rowF64NEON
#define VALSIZE 8
#define TILE 128
#define BCAST VLD1R (R7), [V16.D2]
#define LOAD VLD1 (R11), [V17.D2, V18.D2]
#define LOADWIDE \
	VLD1.P 64(R11), [V17.D2, V18.D2, V19.D2, V20.D2] \
	VLD1   (R11), [V21.D2, V22.D2, V23.D2, V24.D2]
#include "row_arm64.h"
