// Consecutive rows of sparse-dense products: rows_amd64.h for each instruction set and element type.

#include "go_asm.h"
#include "textflag.h"
#include "entry_amd64.h"

#define LINES1 PREFETCHT0 (R8)
#define LINES2 LINES1; PREFETCHT0 64(R8)
#define LINES4 LINES2; PREFETCHT0 128(R8); PREFETCHT0 192(R8)
#define LINES8 LINES4; PREFETCHT0 256(R8); PREFETCHT0 320(R8); PREFETCHT0 384(R8); PREFETCHT0 448(R8)

// AVX2 with FMA and F16C: eight float32 to a register. b is padded to whole registers, so that only stores need the mask.

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
#define S Y10
#define ZERO(a) VXORPS a, a, a
#define ADD(x, a) VADDPS x, a, a
#define SCALE(a) VMULPS S, a, a
#define STORE(a, mem) VMOVUPS a, mem
#define STREAM(a, mem) VMOVNTPS a, mem
#define STORELAST(a, mem) VMASKMOVPS a, Y11, mem
#define MASK(w) \
	MOVQ $0, R8; \
	CMPQ rowsJob_vectors(AX), $w; \
	CMOVQEQ rowsJob_missing(AX), R8; \
	SHLQ $2, R8; \
	LEAQ ·laneMasks(SB), CX; \
	VMOVUPS (CX)(R8*1), Y11;
#define ALPHA VBROADCASTSS rowsJob_alpha(AX), S

#define NAME ·rowsF32AVX2
#define VB 32
#define VALSIZE 4
#define BCAST(mem) VBROADCASTSS mem, V
#define MAC(mem, a) VFMADD231PS mem, V, a
#define MACLAST(mem, a) MAC(mem, a)
#define AHEAD8 LINES4
#define AHEAD4 LINES2
#define AHEAD2 LINES1
#include "rows_amd64.h"

#define NAME ·rowsF16AVX2
#define VB 16
#define VALSIZE 2
#define BCAST(mem) VPBROADCASTW mem, X8; VCVTPH2PS X8, V
#define MAC(mem, a) VCVTPH2PS mem, Y9; VFMADD231PS Y9, V, a
#define MACLAST(mem, a) MAC(mem, a)
#define AHEAD8 LINES2
#define AHEAD4 LINES1
#define AHEAD2 LINES1
#include "rows_amd64.h"

#define NAME ·rowsBF16AVX2
#define VB 16
#define VALSIZE 2
#define BCAST(mem) VPBROADCASTW mem, Y8; VPSLLD $16, Y8, V
#define MAC(mem, a) VPMOVZXWD mem, Y9; VPSLLD $16, Y9, Y9; VFMADD231PS Y9, V, a
#define MACLAST(mem, a) MAC(mem, a)
#define AHEAD8 LINES2
#define AHEAD4 LINES1
#define AHEAD2 LINES1
#include "rows_amd64.h"

// Float64: four to a register.

#undef VL
#undef ADD
#undef SCALE
#undef STORE
#undef STREAM
#undef STORELAST
#undef MASK
#undef ALPHA
#define VL 4
#define ADD(x, a) VADDPD x, a, a
#define SCALE(a) VMULPD S, a, a
#define STORE(a, mem) VMOVUPD a, mem
#define STREAM(a, mem) VMOVNTPD a, mem
#define STORELAST(a, mem) VMASKMOVPD a, Y11, mem
#define MASK(w) \
	MOVQ $0, R8; \
	CMPQ rowsJob_vectors(AX), $w; \
	CMOVQEQ rowsJob_missing(AX), R8; \
	SHLQ $3, R8; \
	LEAQ ·laneMasks(SB), CX; \
	VMOVUPS (CX)(R8*1), Y11;
#define ALPHA VBROADCASTSD rowsJob_alpha(AX), S

#define NAME ·rowsF64AVX2
#define VB 32
#define VALSIZE 8
#define BCAST(mem) VBROADCASTSD mem, V
#define MAC(mem, a) VFMADD231PD mem, V, a
#define MACLAST(mem, a) MAC(mem, a)
#define AHEAD8 LINES4
#define AHEAD4 LINES2
#define AHEAD2 LINES1
#include "rows_amd64.h"

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
#undef S
#undef ZERO
#undef ADD
#undef SCALE
#undef STORE
#undef STREAM
#undef STORELAST
#undef MASK
#undef ALPHA

// AVX-512: sixteen to a register, K1 is the mask.

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
#define S Z10
#define ZERO(a) VPXORD a, a, a
#define ADD(x, a) VADDPS x, a, a
#define SCALE(a) VMULPS S, a, a
#define STORE(a, mem) VMOVUPS a, mem
#define STREAM(a, mem) VMOVNTPS a, mem
#define STORELAST(a, mem) VMOVUPS a, K1, mem
#define MASK(w) \
	MOVQ $0, CX; \
	CMPQ rowsJob_vectors(AX), $w; \
	CMOVQEQ rowsJob_missing(AX), CX; \
	MOVL $0xffff, R8; \
	SHRL CX, R8; \
	KMOVW R8, K1;
#define ALPHA VBROADCASTSS rowsJob_alpha(AX), S

#define NAME ·rowsF32AVX512
#define VB 64
#define VALSIZE 4
#define BCAST(mem) VBROADCASTSS mem, V
#define MAC(mem, a) VFMADD231PS mem, V, a
#define MACLAST(mem, a) VFMADD231PS mem, V, K1, a
#define AHEAD8 LINES8
#define AHEAD4 LINES4
#define AHEAD2 LINES2
#include "rows_amd64.h"

#define NAME ·rowsF16AVX512
#define VB 32
#define VALSIZE 2
#define BCAST(mem) VPBROADCASTW mem, Y8; VCVTPH2PS Y8, V
#define MAC(mem, a) VCVTPH2PS mem, Z9; VFMADD231PS Z9, V, a
#define MACLAST(mem, a) VCVTPH2PS.Z mem, K1, Z9; VFMADD231PS Z9, V, a
#define AHEAD8 LINES4
#define AHEAD4 LINES2
#define AHEAD2 LINES1
#include "rows_amd64.h"

#define NAME ·rowsBF16AVX512
#define VB 32
#define VALSIZE 2
#define BCAST(mem) VPBROADCASTW mem, V; VPSLLD $16, V, V
#define MAC(mem, a) VPMOVZXWD mem, Z9; VPSLLD $16, Z9, Z9; VFMADD231PS Z9, V, a
#define MACLAST(mem, a) VPMOVZXWD.Z mem, K1, Z9; VPSLLD $16, Z9, Z9; VFMADD231PS Z9, V, a
#define AHEAD8 LINES4
#define AHEAD4 LINES2
#define AHEAD2 LINES1
#include "rows_amd64.h"

// Float64: eight to a register.

#undef VL
#undef ADD
#undef SCALE
#undef STORE
#undef STREAM
#undef STORELAST
#undef MASK
#undef ALPHA
#define VL 8
#define ADD(x, a) VADDPD x, a, a
#define SCALE(a) VMULPD S, a, a
#define STORE(a, mem) VMOVUPD a, mem
#define STREAM(a, mem) VMOVNTPD a, mem
#define STORELAST(a, mem) VMOVUPD a, K1, mem
#define MASK(w) \
	MOVQ $0, CX; \
	CMPQ rowsJob_vectors(AX), $w; \
	CMOVQEQ rowsJob_missing(AX), CX; \
	MOVL $0xff, R8; \
	SHRL CX, R8; \
	KMOVW R8, K1;
#define ALPHA VBROADCASTSD rowsJob_alpha(AX), S

#define NAME ·rowsF64AVX512
#define VB 64
#define VALSIZE 8
#define BCAST(mem) VBROADCASTSD mem, V
#define MAC(mem, a) VFMADD231PD mem, V, a
#define MACLAST(mem, a) VFMADD231PD mem, V, K1, a
#define AHEAD8 LINES8
#define AHEAD4 LINES4
#define AHEAD2 LINES2
#include "rows_amd64.h"
