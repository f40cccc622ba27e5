// What row_amd64.h and rows_amd64.h do with an entry of A and with sums, by the macros that these are included with.
//
// SI its value, DX its column; R9 b at the tile's first column, R10 ldb in bytes; R8 the entry's row of b; DI where the
// sums go.

// ROWOF finds the row of b of entry u from DX on, and ENTRY broadcasts its value, too.
#define ROWOF(u) \
	MOVL (4*u)(DX), R8; \
	IMULQ R10, R8; \
	ADDQ R9, R8
#define ENTRY(u) \
	ROWOF(u); BCAST((VALSIZE*u)(SI))

// FIRST and SECOND do ENTRY for two entries one after the other. Elements of 16 bits are broadcast two at a time, which
// takes one load and no shuffle; to widen one alone takes more operations than to multiply by it.
#define FIRST(u) ENTRY(u)
#define SECOND(u) ENTRY(u)

// Two registers of columns are multiplied one after the other. Where an element type has a faster way, it replaces
// these three: MACPAIR adds the products with the columns at R8 + at to sums a and b, JOIN puts the sums of such a pair
// into the order of the columns, and PREPARE sets the registers that both need.
#define MACPAIR(at, a, b) \
	MAC((at)(R8), a); MAC((at+VB)(R8), b)
#define JOIN(a, b)
#define PREPARE

// MACn adds the product with n registers of columns to sums. MAC8's are A0 to A7.
#define MAC2(a, b) \
	MACPAIR(0, a, b)
#define MAC4(a, b, c, d) \
	MAC2(a, b); MACPAIR(2*VB, c, d)
#define MAC8 \
	MAC4(A0, A1, A2, A3); MACPAIR(4*VB, A4, A5); MACPAIR(6*VB, A6, A7)

// JOINn does JOIN for n registers.
#define JOIN2 JOIN(A0, A1)
#define JOIN4 JOIN2; JOIN(A2, A3)
#define JOIN8 JOIN4; JOIN(A4, A5); JOIN(A6, A7)

// TWO, FOUR and EIGHT do 2, 4 and 8 entries, each with sums of its own: in a tile of 4 registers, of 2, and of 1, by
// mac.
#define TWO \
	FIRST(0); MAC4(A0, A1, A2, A3); \
	SECOND(1); MAC4(A4, A5, A6, A7)
#define FOUR \
	FIRST(0); MAC2(A0, A1); \
	SECOND(1); MAC2(A2, A3); \
	FIRST(2); MAC2(A4, A5); \
	SECOND(3); MAC2(A6, A7)
#define EIGHT(mac) \
	FIRST(0); mac(0(R8), A0); \
	SECOND(1); mac(0(R8), A1); \
	FIRST(2); mac(0(R8), A2); \
	SECOND(3); mac(0(R8), A3); \
	FIRST(4); mac(0(R8), A4); \
	SECOND(5); mac(0(R8), A5); \
	FIRST(6); mac(0(R8), A6); \
	SECOND(7); mac(0(R8), A7)

// SUMn adds up the sums of those entries: n registers are left.
#define SUM4 \
	ADD(A4, A0); ADD(A5, A1); ADD(A6, A2); ADD(A7, A3)
#define SUM2 \
	ADD(A2, A0); ADD(A6, A4); ADD(A3, A1); ADD(A7, A5); ADD(A4, A0); ADD(A5, A1)
#define SUM1 \
	ADD(A1, A0); ADD(A3, A2); ADD(A5, A4); ADD(A7, A6); ADD(A2, A0); ADD(A6, A4); ADD(A4, A0)

// EACHn does the same with n registers.
#define EACH1(do) do(A0)
#define EACH2(do) EACH1(do); do(A1)
#define EACH4(do) EACH2(do); do(A2); do(A3)
#define EACH8(do) EACH4(do); do(A4); do(A5); do(A6); do(A7)

// PUTn stores n registers, the last by another way than those before.
#define PUT1(last) last(A0, 0(DI))
#define PUT2(store, last) store(A0, 0(DI)); last(A1, (AB)(DI))
#define PUT4(store, last) PUT2(store, store); store(A2, (2*AB)(DI)); last(A3, (3*AB)(DI))
#define PUT8(store, last) \
	PUT4(store, store); store(A4, (4*AB)(DI)); store(A5, (5*AB)(DI)); store(A6, (6*AB)(DI)); last(A7, (7*AB)(DI))
