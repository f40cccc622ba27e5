// Rows of sparse-dense products of integers with NEON: integer_arm64.h for each element type.

#include "textflag.h"
#include "sums_arm64.h"

// Instructions that Go's assembler lacks.
#define SMLAL(m, n, d) WORD $(0x0EA08000 | m<<16 | n<<5 | d)  // SMLAL Vd.2D, Vn.2S, Vm.2S
#define SMLAL2(m, n, d) WORD $(0x4EA08000 | m<<16 | n<<5 | d) // SMLAL2 Vd.2D, Vn.4S, Vm.4S
#define SXTL(n, d) WORD $(0x0F10A400 | n<<5 | d)              // SXTL Vd.4S, Vn.4H
#define SXTL2(n, d) WORD $(0x4F10A400 | n<<5 | d)             // SXTL2 Vd.4S, Vn.8H

#define NAME ·rowInt32NEON
#define TILE8 32
#define LOAD8 VLD1 (R11), [V17.S4, V18.S4]
#include "integer_arm64.h"

#define NAME ·rowInt16NEON
#define TILE8 16
#define LOAD8 \
	VLD1 (R11), [V19.H8] \
	SXTL(19, 17) \
	SXTL2(19, 18)
#include "integer_arm64.h"
