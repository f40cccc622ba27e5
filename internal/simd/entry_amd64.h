// What row_amd64.h and rows_amd64.h do with an entry of A, by the macros that these are included with.
//
// SI its value, DX its column; R9 b at the tile's first column, R10 ldb in bytes; R8 the entry's row of b.

// ENTRY finds the row of b of entry u from DX on, and broadcasts its value.
#define ENTRY(u) \
	MOVL (4*u)(DX), R8; \
	IMULQ R10, R8; \
	ADDQ R9, R8; \
	BCAST((VALSIZE*u)(SI))

// MACn adds the product with n registers of columns to sums. MAC8's are A0 to A7.
#define MAC1(a) \
	MAC(0(R8), a)
#define MAC2(a, b) \
	MAC(0(R8), a); MAC((VB)(R8), b)
#define MAC4(a, b, c, d) \
	MAC2(a, b); MAC((2*VB)(R8), c); MAC((3*VB)(R8), d)
#define MAC8 \
	MAC4(A0, A1, A2, A3); MAC((4*VB)(R8), A4); MAC((5*VB)(R8), A5); MAC((6*VB)(R8), A6); MAC((7*VB)(R8), A7)
