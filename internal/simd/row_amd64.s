// Rows of sparse-dense products: row_amd64.h for each instruction set and element type.

#include "textflag.h"
#include "entry_amd64.h"

// AVX2 with FMA and F16C: eight float32 to a register.

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
#define ZERO(a) VXORPS a, a, a
#define ADD(x, a) VADDPS x, a, a
#define STORE(a, mem) VMOVUPS a, mem

#define NAME ·rowF32AVX2
#define VB 32
#define VALSIZE 4
#define BCAST(mem) VBROADCASTSS mem, V
#define MAC(mem, a) VFMADD231PS mem, V, a
#include "row_amd64.h"

#define NAME ·rowF16AVX2
#define VB 16
#define VALSIZE 2
#define BCAST(mem) VPBROADCASTW mem, X8; VCVTPH2PS X8, V
#define MAC(mem, a) VCVTPH2PS mem, Y9; VFMADD231PS Y9, V, a
#include "row_amd64.h"

#define NAME ·rowBF16AVX2
#define VB 16
#define VALSIZE 2
#define BCAST(mem) VPBROADCASTW mem, Y8; VPSLLD $16, Y8, V
#define MAC(mem, a) VPMOVZXWD mem, Y9; VPSLLD $16, Y9, Y9; VFMADD231PS Y9, V, a
#include "row_amd64.h"

// Float64: four to a register.

#undef VL
#undef ADD
#undef STORE
#define VL 4
#define ADD(x, a) VADDPD x, a, a
#define STORE(a, mem) VMOVUPD a, mem

#define NAME ·rowF64AVX2
#define VB 32
#define VALSIZE 8
#define BCAST(mem) VBROADCASTSD mem, V
#define MAC(mem, a) VFMADD231PD mem, V, a
#include "row_amd64.h"

#undef VL
#undef AB
#undef ADD
#undef STORE
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

// AVX-512: sixteen to a register.

#define VL 16
#define AB 64
#define ADD(x, a) VADDPS x, a, a
#define STORE(a, mem) VMOVUPS a, mem
#define A0 Z0
#define A1 Z1
#define A2 Z2
#define A3 Z3
#define A4 Z4
#define A5 Z5
#define A6 Z6
#define A7 Z7
#define V Z8
#define ZERO(a) VPXORD a, a, a

#define NAME ·rowF32AVX512
#define VB 64
#define VALSIZE 4
#define BCAST(mem) VBROADCASTSS mem, V
#define MAC(mem, a) VFMADD231PS mem, V, a
#include "row_amd64.h"

#define NAME ·rowF16AVX512
#define VB 32
#define VALSIZE 2
#define BCAST(mem) VPBROADCASTW mem, Y8; VCVTPH2PS Y8, V
#define MAC(mem, a) VCVTPH2PS mem, Z9; VFMADD231PS Z9, V, a
#include "row_amd64.h"

#define NAME ·rowBF16AVX512
#define VB 32
#define VALSIZE 2
#define BCAST(mem) VPBROADCASTW mem, V; VPSLLD $16, V, V
#define MAC(mem, a) VPMOVZXWD mem, Z9; VPSLLD $16, Z9, Z9; VFMADD231PS Z9, V, a
#include "row_amd64.h"

// Float64: eight to a register.

#undef VL
#undef ADD
#undef STORE
#define VL 8
#define ADD(x, a) VADDPD x, a, a
#define STORE(a, mem) VMOVUPD a, mem

#define NAME ·rowF64AVX512
#define VB 64
#define VALSIZE 8
#define BCAST(mem) VBROADCASTSD mem, V
#define MAC(mem, a) VFMADD231PD mem, V, a
#include "row_amd64.h"

// func axpbyAVX2(c, x *float32, n int, alpha, beta float32)
// n is a positive multiple of eight; c is not read where beta is ±0.
TEXT ·axpbyAVX2(SB), NOSPLIT, $0-32
	MOVQ c+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS alpha+24(FP), Y0
	VBROADCASTSS beta+28(FP), Y1
	MOVL beta+28(FP), AX
	SHLL $1, AX
	JZ   scale

both:
	VMULPS (DI), Y1, Y2
	VFMADD231PS (SI), Y0, Y2
	VMOVUPS Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  both
	VZEROUPPER
	RET

scale:
	VMULPS (SI), Y0, Y2
	VMOVUPS Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  scale
	VZEROUPPER
	RET
