// Wide tiles of rows of integers: wide_amd64.h for one product and for two.

#include "go_asm.h"
#include "textflag.h"

#define ZERO8(a, b, c, d, e, f, g, h) \
	VPXORD a, a, a; VPXORD b, b, b; VPXORD c, c, c; VPXORD d, d, d; \
	VPXORD e, e, e; VPXORD f, f, f; VPXORD g, g, g; VPXORD h, h, h
#define LINES4(at) PREFETCHT0 at(R8); PREFETCHT0 (at+64)(R8); PREFETCHT0 (at+128)(R8); PREFETCHT0 (at+192)(R8)
#define PUT8(at, to, a, b, c, d, e, f, g, h) \
	VMOVUPD a, at(to); VMOVUPD b, (at+64)(to); VMOVUPD c, (at+128)(to); VMOVUPD d, (at+192)(to); \
	VMOVUPD e, (at+256)(to); VMOVUPD f, (at+320)(to); VMOVUPD g, (at+384)(to); VMOVUPD h, (at+448)(to)

// One product is of integers: they are multiplied as they are, and sums of 64 bits converted at the end, which is less
// work than to convert B. e has the sums of even columns, o those of odd ones.
#define MAC(at, e, o) \
	VMOVDQU32 (64*at)(R8), Z9; \
	VPMULDQ Z9, Z8, Z11; \
	VPSRLQ $32, Z9, Z9; \
	VPMULDQ Z9, Z8, Z12; \
	VPADDQ Z11, e, e; \
	VPADDQ Z12, o, o
#define PUT(at, e, o) \
	VCVTQQ2PD e, e; \
	VCVTQQ2PD o, o; \
	VMOVAPD e, Z9; \
	VPERMT2PD o, Z24, Z9; \
	VPERMT2PD o, Z25, e; \
	VMOVUPD Z9, (128*at)(DI); \
	VMOVUPD e, (128*at+64)(DI)
#define BEFORE VMOVDQU64 ·interleaved64(SB), Z24; VMOVDQU64 ·interleaved64+64(SB), Z25
#define WIDE ·rowsInt32Wide
#define W 16
#define BCAST VBROADCASTSD (SI), Z8; VCVTPD2QQ Z8, Z8
#define MACS \
	MAC(0, Z0, Z16); MAC(1, Z1, Z17); MAC(2, Z2, Z18); MAC(3, Z3, Z19); \
	MAC(4, Z4, Z20); MAC(5, Z5, Z21); MAC(6, Z6, Z22); MAC(7, Z7, Z23)
#define LINES LINES4(0); LINES4(256)
#define PUTS \
	PUT(0, Z0, Z16); PUT(1, Z1, Z17); PUT(2, Z2, Z18); PUT(3, Z3, Z19); \
	PUT(4, Z4, Z20); PUT(5, Z5, Z21); PUT(6, Z6, Z22); PUT(7, Z7, Z23)
#define DOWN ADDQ R12, DI
#include "wide_amd64.h"

#define BOTH(at, a, b) VCVTDQ2PD (32*at)(R8), Z9; VFMADD231PD Z9, Z8, a; VFMADD231PD Z9, Z10, b
#define BEFORE
#define WIDE ·pairsInt32Wide
#define W 8
#define BCAST VBROADCASTSD (SI), Z8; VBROADCASTSD (SI)(R15*1), Z10
#define MACS \
	BOTH(0, Z0, Z16); BOTH(1, Z1, Z17); BOTH(2, Z2, Z18); BOTH(3, Z3, Z19); \
	BOTH(4, Z4, Z20); BOTH(5, Z5, Z21); BOTH(6, Z6, Z22); BOTH(7, Z7, Z23)
#define LINES LINES4(0)
#define PUTS \
	PUT8(0, DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7); \
	LEAQ (DI)(R12*1), R8; \
	PUT8(0, R8, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)
#define DOWN LEAQ (DI)(R12*2), DI
#include "wide_amd64.h"
