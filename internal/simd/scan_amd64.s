// Scanning columns: scan_amd64.h and largest_amd64.h for each instruction set.

#include "textflag.h"

#define SCAN ·scanColumnsAVX2
#define MOV VMOVDQU
#define AND VPAND
#define ANDN VPANDN
#define OR VPOR
#define XOR VPXOR
#define X Y0
#define T Y1
#define U Y2
#define W Y3
#define LARGEST Y4
#define LOWEST Y5
#define SPECIAL Y6
#define ABS Y8
#define IMPLICIT Y9
#define ONE Y10
#define ZERO Y11
#define ONES Y12
#define XONES X12
#include "scan_amd64.h"

#define LARGEST1 ·largestColumnsAVX2
#define LARGESTMANY ·largest32ColumnsAVX2
#define VB 32
#define ALLONES VPCMPEQD ABS, ABS, ABS
#define EACH(do) do(0, Y4, Y5); do(1, Y6, Y7); do(2, Y10, Y11); do(3, Y12, Y13)
#include "largest_amd64.h"

#undef SCAN
#undef MOV
#undef AND
#undef ANDN
#undef OR
#undef XOR
#undef X
#undef T
#undef U
#undef W
#undef LARGEST
#undef LOWEST
#undef SPECIAL
#undef ABS
#undef IMPLICIT
#undef ONE
#undef ZERO
#undef ONES
#undef LARGEST1
#undef LARGESTMANY
#undef VB
#undef ALLONES
#undef EACH

#define SCAN ·scanColumnsAVX512
#define MOV VMOVDQU32
#define AND VPANDD
#define ANDN VPANDND
#define OR VPORD
#define XOR VPXORD
#define X Z0
#define T Z1
#define U Z2
#define W Z3
#define LARGEST Z4
#define LOWEST Z5
#define SPECIAL Z6
#define ABS Z8
#define IMPLICIT Z9
#define ONE Z10
#define ZERO Z11
#define ONES Z12
#include "scan_amd64.h"

#define LARGEST1 ·largestColumnsAVX512
#define LARGESTMANY ·largest128ColumnsAVX512
#define VB 64
#define ALLONES VPTERNLOGD $0xff, ABS, ABS, ABS
#define EACH(do) \
	do(0, Z4, Z5); do(1, Z6, Z7); do(2, Z10, Z11); do(3, Z12, Z13); \
	do(4, Z14, Z15); do(5, Z16, Z17); do(6, Z18, Z19); do(7, Z20, Z21)
#include "largest_amd64.h"
