// Rows of sparse-dense products, one and many: elements_amd64.h and integers_amd64.h for each instruction set.

#include "go_asm.h"
#include "textflag.h"
#include "entry_amd64.h"

#define LINES1 PREFETCHT0 (R8)
#define LINES2 LINES1; PREFETCHT0 64(R8)
#define LINES4 LINES2; PREFETCHT0 128(R8); PREFETCHT0 192(R8)
#define LINES8 LINES4; PREFETCHT0 256(R8); PREFETCHT0 320(R8); PREFETCHT0 384(R8); PREFETCHT0 448(R8)

#include "avx2_amd64.h"
#define ROWF64 ·rowF64AVX2
#define ROWSF64 ·rowsF64AVX2
#define ROWF32 ·rowF32AVX2
#define ROWSF32 ·rowsF32AVX2
#define ROWF16 ·rowF16AVX2
#define ROWSF16 ·rowsF16AVX2
#define ROWBF16 ·rowBF16AVX2
#define ROWSBF16 ·rowsBF16AVX2
#include "elements_amd64.h"
#define ROWSINT16 ·rowsInt16AVX2
#define ROWSINT32 ·rowsInt32AVX2
#define PAIRSINT32 ·pairsInt32AVX2
#include "integers_amd64.h"

#include "avx512_amd64.h"
#define ROWF64 ·rowF64AVX512
#define ROWSF64 ·rowsF64AVX512
#define ROWF32 ·rowF32AVX512
#define ROWSF32 ·rowsF32AVX512
#define ROWF16 ·rowF16AVX512
#define ROWSF16 ·rowsF16AVX512
#define ROWBF16 ·rowBF16AVX512
#define ROWSBF16 ·rowsBF16AVX512
#include "elements_amd64.h"
#define ROWSINT16 ·rowsInt16AVX512
#define ROWSINT32 ·rowsInt32AVX512
#define PAIRSINT32 ·pairsInt32AVX512
#include "integers_amd64.h"
