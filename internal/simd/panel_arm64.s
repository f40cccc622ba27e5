// Panels of sparse-dense products with NEON: panel_arm64.h for each element type, and widening.

#include "textflag.h"
#include "half_arm64.h"

// FMLA Vd.4S, Vn.4S, Vm.S[2·h+l], m from 16 on
#define FMLA(n, m, h, l, d) WORD $(0x4F801000 | l<<21 | m<<16 | h<<11 | n<<5 | d)

#define NAME ·panelF32NEON
#define LOADB VLD1 (R8), [V16.S4, V17.S4]
#include "panel_arm64.h"

#define HALVES(lo, hi) \
	VLD1 (R8), [V20.H8] \
	lo(20, 16) \
	hi(20, 17)

#define NAME ·panelF16NEON
#define LOADB HALVES(F16LO, F16HI)
#include "panel_arm64.h"

#define NAME ·panelBF16NEON
#define LOADB HALVES(BF16LO, BF16HI)
#include "panel_arm64.h"

#define NAME ·widenF16NEON
#define LO(n, d) F16LO(n, d)
#define HI(n, d) F16HI(n, d)
#include "widen_arm64.h"

#define NAME ·widenBF16NEON
#define LO(n, d) BF16LO(n, d)
#define HI(n, d) BF16HI(n, d)
#include "widen_arm64.h"
