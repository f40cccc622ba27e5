// Rows of sparse-dense products of integers: row_amd64.h with sums of 64 bits. VL counts 32-bit words.

#include "textflag.h"
#include "entry_amd64.h"

#define BCAST(mem) VPBROADCASTD mem, V
#define VALSIZE 4
#define ADD(x, a) VPADDQ x, a, a

// AVX2: four sums to a register.

#define VL 8
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
#define ZERO(a) VPXOR a, a, a
#define STORE(a, mem) VMOVDQU a, mem

#define NAME ·rowInt16AVX2
#define VB 8
#define MAC(mem, a) VPMOVSXWQ mem, Y9; VPMULDQ Y9, V, Y9; VPADDQ Y9, a, a
#include "row_amd64.h"

#define BCAST(mem) VPBROADCASTD mem, V
#define VALSIZE 4
#define NAME ·rowInt32AVX2
#define VB 16
#define MAC(mem, a) VPMOVSXDQ mem, Y9; VPMULDQ Y9, V, Y9; VPADDQ Y9, a, a
#include "row_amd64.h"

#undef VL
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
#undef ZERO
#undef STORE

// AVX-512: eight to a register.

#define VL 16
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
#define ZERO(a) VPXORQ a, a, a
#define STORE(a, mem) VMOVDQU64 a, mem

#define BCAST(mem) VPBROADCASTD mem, V
#define VALSIZE 4
#define NAME ·rowInt16AVX512
#define VB 16
#define MAC(mem, a) VPMOVSXWQ mem, Z9; VPMULDQ Z9, V, Z9; VPADDQ Z9, a, a
#include "row_amd64.h"

#define BCAST(mem) VPBROADCASTD mem, V
#define VALSIZE 4
#define NAME ·rowInt32AVX512
#define VB 32
#define MAC(mem, a) VPMOVSXDQ mem, Z9; VPMULDQ Z9, V, Z9; VPADDQ Z9, a, a
#include "row_amd64.h"
