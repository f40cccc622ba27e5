// Chains of values to vectors with NEON: four places at a time, by a table of permutations.

#include "textflag.h"

// Four positions of a word, those of byte t, which are rows 2·t and 2·t+1 at k = 0 and then at k = 1. R10 is the word,
// R11 the chain's next values, R12 its vectors; R7 has the table.

#define FOUR(t) \
	UBFX $(8*t), R10, $7, R13 \
	ADD  R13<<5, R7, R13 \
	VLD1 (R13), [V1.B16] \
	VLD1 (R11), [V0.B16] \
	MOVD 16(R13), R13 \
	ADD  R13, R11, R11 \
	VTBL V1.B16, [V0.B16], V2.B16 \
	ADD  $(8*t), R14, R15 \
	VST1 V2.D[0], (R15) \
	ADD  $512, R15, R15 \
	VST1 V2.D[1], (R15)

// func expandChainsNEON(dst *float32, mask *uint32, steps int, values *float32, ld int, next *[16]int, spread
// *[128]spreading)
//
// R0 dst, R1 mask, R2 steps, R3 values, R4 ld, R5 next; R6 chain, 8·e + 2·q + h; R8 its mask words, R9 steps left.
TEXT ·expandChainsNEON(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R0
	MOVD mask+8(FP), R1
	MOVD steps+16(FP), R2
	MOVD values+24(FP), R3
	MOVD ld+32(FP), R4
	MOVD next+40(FP), R5
	MOVD spread+48(FP), R7
	MOVD $0x55555555, R17
	MOVD $0, R6

chain:
	MOVD (R5)(R6<<3), R11
	MUL  R4, R6, R12
	ADD  R3, R12, R12
	ADD  R11<<2, R12, R11
	LSR  $1, R6, R8
	ADD  R8<<3, R1, R8
	UBFX $1, R6, $2, R12  // q
	AND  $1, R6, R16      // h
	ADD  R16<<2, R12, R12
	LSL  $6, R12, R12
	LSR  $3, R6, R13      // e
	ADD  R13<<5, R12, R12
	ADD  R0, R12, R12
	MOVD R2, R9

step:
	MOVWU (R8), R10
	LSR   R16, R10, R10
	AND   R17, R10, R10
	MOVD  R12, R14
	FOUR(0)
	FOUR(1)
	FOUR(2)
	FOUR(3)
	MOVWU 4(R8), R10
	LSR   R16, R10, R10
	AND   R17, R10, R10
	ADD   $1024, R12, R14
	FOUR(0)
	FOUR(1)
	FOUR(2)
	FOUR(3)
	ADD   $256, R8
	ADD   $2048, R12
	SUBS  $1, R9
	BNE   step

	MUL  R4, R6, R13
	ADD  R3, R13, R13
	SUB  R13, R11, R11
	LSR  $2, R11, R11
	MOVD R11, (R5)(R6<<3)
	ADD  $1, R6
	CMP  $16, R6
	BNE  chain
	RET
