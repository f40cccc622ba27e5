// Conversions between float32 and 16-bit elements with AVX2 and F16C: convert_amd64.h for each.

#include "textflag.h"

#define FROM 16
#define TO 32

#define NAME ·widenF16AVX2
#define CONSTANTS
#define CONVERT VCVTPH2PS (SI), Y0; VMOVUPS Y0, (DI)
#include "convert_amd64.h"

#define NAME ·widenBF16AVX2
#define CONSTANTS
#define CONVERT VPMOVZXWD (SI), Y0; VPSLLD $16, Y0, Y0; VMOVUPS Y0, (DI)
#include "convert_amd64.h"

#undef FROM
#undef TO
#define FROM 32
#define TO 16

// To nearest even, whatever MXCSR says.
#define NAME ·narrowF16AVX2
#define CONSTANTS
#define CONVERT VMOVUPS (SI), Y0; VCVTPS2PH $0, Y0, (DI)
#include "convert_amd64.h"

// Adding 0x7fff, and 1 more where the kept part is odd, carries into it where it must be rounded
// up. NaNs, which that might make infinities or zeros, keep their upper half, made quiet.
//
// Y6 is 1, Y5 0x7fff, Y4 0x400000, the quiet bit; Y3 tells where a NaN is, which is unordered.
#define NAME ·narrowBF16AVX2
#define CONSTANTS \
	VPCMPEQD Y7, Y7, Y7; \
	VPSRLD $31, Y7, Y6; \
	VPSRLD $17, Y7, Y5; \
	VPSLLD $22, Y6, Y4
#define CONVERT \
	VMOVUPS (SI), Y0; \
	VPSRLD $16, Y0, Y1; \
	VPAND Y6, Y1, Y1; \
	VPADDD Y5, Y1, Y1; \
	VPADDD Y0, Y1, Y1; \
	VPOR Y4, Y0, Y2; \
	VCMPPS $3, Y0, Y0, Y3; \
	VBLENDVPS Y3, Y2, Y1, Y1; \
	VPSRLD $16, Y1, Y1; \
	VEXTRACTI128 $1, Y1, X2; \
	VPACKUSDW X2, X1, X1; \
	VMOVDQU X1, (DI)
#include "convert_amd64.h"
