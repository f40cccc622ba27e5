// Chains of values to vectors: expanding loads with AVX-512, a table of permutations with AVX2.

#include "textflag.h"

// The places of two chains' values in vectors: those of rows 0 to 7 of each chain at k = 0. At k = 1 they are 2 further
// on.
DATA ·firstPlaces+0(SB)/4, $0
DATA ·firstPlaces+4(SB)/4, $1
DATA ·firstPlaces+8(SB)/4, $4
DATA ·firstPlaces+12(SB)/4, $5
DATA ·firstPlaces+16(SB)/4, $8
DATA ·firstPlaces+20(SB)/4, $9
DATA ·firstPlaces+24(SB)/4, $12
DATA ·firstPlaces+28(SB)/4, $13
DATA ·firstPlaces+32(SB)/4, $16
DATA ·firstPlaces+36(SB)/4, $17
DATA ·firstPlaces+40(SB)/4, $20
DATA ·firstPlaces+44(SB)/4, $21
DATA ·firstPlaces+48(SB)/4, $24
DATA ·firstPlaces+52(SB)/4, $25
DATA ·firstPlaces+56(SB)/4, $28
DATA ·firstPlaces+60(SB)/4, $29
GLOBL ·firstPlaces(SB), RODATA|NOPTR, $64

// Chain AX is expanded together with chain AX + 8. AX = 2·q + h.
//
// SI mask, R8 values, R9 ld, R10 next; R11 and R12 the chains' next values, R13 their mask words, DX their vectors, BX
// the bits of half h, CX steps left.

#define ARGUMENTS \
	MOVQ mask+8(FP), SI; \
	MOVQ values+24(FP), R8; \
	MOVQ ld+32(FP), R9; \
	MOVQ next+40(FP), R10

#define BEGIN \
	MOVQ  AX, R11; \
	IMULQ R9, R11; \
	ADDQ  R8, R11; \
	LEAQ  (R11)(R9*8), R12; \
	MOVQ  (R10)(AX*8), DX; \
	LEAQ  (R11)(DX*4), R11; \
	MOVQ  64(R10)(AX*8), DX; \
	LEAQ  (R12)(DX*4), R12; \
	MOVQ  AX, R13; \
	SHRQ  $1, R13; \
	MOVQ  R13, DX; \
	LEAQ  (SI)(R13*8), R13; \
	MOVL  $0x55555555, BX; \
	BTQ   $0, AX; \
	JCC   half0; \
	ADDQ  $4, DX; \
	ADDL  BX, BX; \
half0: \
	SHLQ  $6, DX; \
	ADDQ  dst+0(FP), DX; \
	MOVQ  steps+16(FP), CX

#define END \
	ADDQ  $256, R13; \
	ADDQ  $2048, DX; \
	DECQ  CX; \
	JNZ   step; \
	MOVQ  AX, DX; \
	IMULQ R9, DX; \
	ADDQ  R8, DX; \
	SUBQ  DX, R11; \
	LEAQ  (DX)(R9*8), DX; \
	SUBQ  DX, R12; \
	SHRQ  $2, R11; \
	SHRQ  $2, R12; \
	MOVQ  R11, (R10)(AX*8); \
	MOVQ  R12, 64(R10)(AX*8); \
	INCQ  AX; \
	CMPQ  AX, $8; \
	JNE   chain; \
	VZEROUPPER

#define WORD512(w) \
	MOVL    (4*w)(R13), DI; \
	PEXTL   BX, DI, DI; \
	KMOVW   DI, K1; \
	VMOVUPS (R11), Z0; \
	VEXPANDPS.Z Z0, K1, Z0; \
	POPCNTL DI, DI; \
	LEAQ    (R11)(DI*4), R11; \
	MOVL    (4*w+32)(R13), DI; \
	PEXTL   BX, DI, DI; \
	KMOVW   DI, K2; \
	VMOVUPS (R12), Z1; \
	VEXPANDPS.Z Z1, K2, Z1; \
	POPCNTL DI, DI; \
	LEAQ    (R12)(DI*4), R12; \
	VMOVAPS Z0, Z2; \
	VPERMT2PS Z1, Z16, Z0; \
	VPERMT2PS Z1, Z17, Z2; \
	VMOVUPS Z0, (1024*w)(DX); \
	VMOVUPS Z2, (1024*w+512)(DX)

// func expandChainsAVX512(dst *float32, mask *uint32, steps int, values *float32, ld int, next *[16]int)
TEXT ·expandChainsAVX512(SB), NOSPLIT, $0-48
	ARGUMENTS
	VMOVDQU32 ·firstPlaces(SB), Z16
	VPTERNLOGD $0xff, Z17, Z17, Z17
	VPADDD Z17, Z17, Z17 // −2
	VPSUBD Z17, Z16, Z17
	XORL AX, AX

chain:
	BEGIN

step:
	WORD512(0)
	WORD512(1)
	END
	RET

// A chain's word, with its next values at from and its mask at m(R13), to the half at to(DX) of the vectors. R15 has
// the table.

#define CHAIN256(m, from, to) \
	MOVL    m(R13), DI; \
	PEXTL   BX, DI, DI; \
	MOVBLZX DI, R15; \
	SHLQ    $5, R15; \
	VMOVDQU (R14)(R15*1), Y2; \
	POPCNTL R15, R15; \
	VPERMPS (from), Y2, Y0; \
	VPSRAD  $31, Y2, Y2; \
	VPANDN  Y0, Y2, Y0; \
	LEAQ    (from)(R15*4), from; \
	SHRL    $8, DI; \
	MOVQ    DI, R15; \
	SHLQ    $5, R15; \
	VMOVDQU (R14)(R15*1), Y3; \
	POPCNTL DI, DI; \
	VPERMPS (from), Y3, Y1; \
	VPSRAD  $31, Y3, Y3; \
	VPANDN  Y1, Y3, Y1; \
	LEAQ    (from)(DI*4), from; \
	VUNPCKLPD Y1, Y0, Y2; \
	VUNPCKHPD Y1, Y0, Y3; \
	VPERMPD $0xd8, Y2, Y2; \
	VPERMPD $0xd8, Y3, Y3; \
	VMOVUPS Y2, (to)(DX); \
	VMOVUPS Y3, (to+512)(DX)

// func expandChainsAVX2(dst *float32, mask *uint32, steps int, values *float32, ld int, next *[16]int, lanes
// *[256][8]uint32)
TEXT ·expandChainsAVX2(SB), NOSPLIT, $0-56
	ARGUMENTS
	MOVQ lanes+48(FP), R14
	XORL AX, AX

chain:
	BEGIN

step:
	CHAIN256(0, R11, 0)
	CHAIN256(32, R12, 32)
	CHAIN256(4, R11, 1024)
	CHAIN256(36, R12, 1056)
	END
	RET
