// Rows of sparse-dense products of integers: row_amd64.h with sums of 64 bits. VL counts 32-bit words.

#include "textflag.h"
#include "entry_amd64.h"

#define VL (AB/4)
#define VALSIZE 4
#define BCAST(mem) VPBROADCASTD mem, V
#define ADD(x, a) VPADDQ x, a, a
#define STORE(a, mem) VMOVUPS a, mem

// INTEGERS adds to a the product of V and integers, which load widens to 64 bits.
#define INTEGERS(load, mem, a) load mem, T; VPMULDQ T, V, T; VPADDQ T, a, a

#include "avx2_amd64.h"

#define ROW ·rowInt16AVX2
#define VB (AB/4)
#define MAC(mem, a) INTEGERS(VPMOVSXWQ, mem, a)
#include "row_amd64.h"

#undef VB
#undef MAC
#define ROW ·rowInt32AVX2
#define VB (AB/2)
#define MAC(mem, a) INTEGERS(VPMOVSXDQ, mem, a)
#include "row_amd64.h"

#include "avx512_amd64.h"

#define ROW ·rowInt32AVX512
#include "row_amd64.h"

#undef VB
#undef MAC
#define ROW ·rowInt16AVX512
#define VB (AB/4)
#define MAC(mem, a) INTEGERS(VPMOVSXWQ, mem, a)
#include "row_amd64.h"
