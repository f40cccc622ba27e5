// Rows of sparse-dense products with NEON: row_arm64.h for each element type.

#include "textflag.h"
#include "half_arm64.h"
#include "sums_arm64.h"

// Instructions that Go's assembler lacks.
#define ADDS4(n, d) WORD $(0x4E20D400 | n<<16 | d<<5 | d)  // FADD Vd.4S, Vd.4S, Vn.4S
#define ADDD2(n, d) WORD $(0x4E60D400 | n<<16 | d<<5 | d)  // FADD Vd.2D, Vd.2D, Vn.2D

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

// 16-bit elements: one at R7; 8 or 32 at R11.
#define SPREADHALF(lo) \
	VLD1R (R7), [V16.H4] \
	lo(16, 16)
#define LOADHALVES(lo, hi) \
	VLD1 (R11), [V25.H8] \
	lo(25, 17) \
	hi(25, 18)
#define LOADALL(lo, hi) \
	VLD1 (R11), [V25.H8, V26.H8, V27.H8, V28.H8] \
	lo(25, 17) \
	hi(25, 18) \
	lo(26, 19) \
	hi(26, 20) \
	lo(27, 21) \
	hi(27, 22) \
	lo(28, 23) \
	hi(28, 24)

#define NAME ·rowF16NEON
#define VALSIZE 2
#define TILE 64
#define BCAST SPREADHALF(F16LO)
#define LOAD LOADHALVES(F16LO, F16HI)
#define LOADWIDE LOADALL(F16LO, F16HI)
#include "row_arm64.h"

#define NAME ·rowBF16NEON
#define VALSIZE 2
#define TILE 64
#define BCAST SPREADHALF(BF16LO)
#define LOAD LOADHALVES(BF16LO, BF16HI)
#define LOADWIDE LOADALL(BF16LO, BF16HI)
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

// Integers, which become float64: those of 32 bits in V25 to V28, those of 16 bits in V29 and V30.
#define SXTL(n, d) WORD $(0x0F20A400 | n<<5 | d)    // SXTL Vd.2D, Vn.2S
#define SXTL2(n, d) WORD $(0x4F20A400 | n<<5 | d)   // SXTL2 Vd.2D, Vn.4S
#define SXTLH(n, d) WORD $(0x0F10A400 | n<<5 | d)   // SXTL Vd.4S, Vn.4H
#define SXTLH2(n, d) WORD $(0x4F10A400 | n<<5 | d)  // SXTL2 Vd.4S, Vn.8H
#define SCVTF(n) WORD $(0x4E61D800 | n<<5 | n)      // SCVTF Vn.2D, Vn.2D
#define FLOATS(n, c, d) \
	SXTL(n, c) \
	SXTL2(n, d) \
	SCVTF(c) \
	SCVTF(d)
#define ALLFLOATS \
	FLOATS(25, 17, 18) \
	FLOATS(26, 19, 20) \
	FLOATS(27, 21, 22) \
	FLOATS(28, 23, 24)

#define NAME ·rowInt32NEON
#define VALSIZE 8
#define TILE 64
#define BCAST VLD1R (R7), [V16.D2]
#define LOAD \
	VLD1 (R11), [V25.S4] \
	FLOATS(25, 17, 18)
#define LOADWIDE \
	VLD1 (R11), [V25.S4, V26.S4, V27.S4, V28.S4] \
	ALLFLOATS
#include "row_arm64.h"

#define NAME ·rowInt16NEON
#define VALSIZE 8
#define TILE 32
#define BCAST VLD1R (R7), [V16.D2]
#define LOAD \
	VLD1 (R11), [V29.H4] \
	SXTLH(29, 25) \
	FLOATS(25, 17, 18)
#define LOADWIDE \
	VLD1 (R11), [V29.H8, V30.H8] \
	SXTLH(29, 25) \
	SXTLH2(29, 26) \
	SXTLH(30, 27) \
	SXTLH2(30, 28) \
	ALLFLOATS
#include "row_arm64.h"
