// Taking values from a stage buffer in shared memory where a mask has bits.

#pragma once
#include "../include/units.cuh"

// TAKE: if MASK has BIT, load the value at the address in register CHAIN into TO and advance CHAIN by a row. LABEL is
// its label. (Because of the branches, ptxas makes seven predicates of the mask with one instruction.)
#define TAKE(LABEL, MASK, BIT, CHAIN, TO) \
    "and.b32 t, " MASK ", " BIT "; setp.eq.u32 none, t, 0; @none bra " LABEL "; ld.shared.u16 " TO ", [" CHAIN \
    "]; add.u32 " CHAIN ", " CHAIN ", 128; " LABEL ":\n"

// BITS are asm operands: the eight bits of byte BYTE of a mask.
#define BITS(BYTE) \
    "n"(1u << (8 * BYTE)), "n"(2u << (8 * BYTE)), "n"(4u << (8 * BYTE)), "n"(8u << (8 * BYTE)), \
        "n"(16u << (8 * BYTE)), "n"(32u << (8 * BYTE)), "n"(64u << (8 * BYTE)), "n"(128u << (8 * BYTE))

// take reads the 4 registers of A for a 16×16 tile. Bit 2r + h of byte BYTE of the mask says that half h of register r
// takes the next value of chain h, whose address in shared memory is next[h]. x[r] becomes the lower half, x[4 + r] the
// upper half, each in the lower 16 bits.
template <int BYTE> __device__ __forceinline__ void take(u32 mask, u32 (&next)[2], u32 (&x)[8]) {
    // clang-format off
    asm volatile("{.reg .pred none; .reg .b32 t;\n"
                 "mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
                 "mov.b32 %4, 0; mov.b32 %5, 0; mov.b32 %6, 0; mov.b32 %7, 0;\n"
                 TAKE("L0", "%10", "%11", "%8", "%0") TAKE("L1", "%10", "%12", "%9", "%4")
                 TAKE("L2", "%10", "%13", "%8", "%1") TAKE("L3", "%10", "%14", "%9", "%5")
                 TAKE("L4", "%10", "%15", "%8", "%2") TAKE("L5", "%10", "%16", "%9", "%6")
                 TAKE("L6", "%10", "%17", "%8", "%3") TAKE("L7", "%10", "%18", "%9", "%7")
                 "}\n"
                 : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "=&r"(x[4]), "=&r"(x[5]), "=&r"(x[6]),
                   "=&r"(x[7]), "+&r"(next[0]), "+&r"(next[1])
                 : "r"(mask), BITS(BYTE)
                 : "memory");
    // clang-format on
}

// take_at is take with offsets from base. Values of chain 1 lie 2 bytes behind those of chain 0. A half that takes no
// value becomes NONE.
#define TAKE_AT(LABEL, BIT, CHAIN, OFF, TO) \
    "and.b32 t, %10, " BIT "; setp.eq.u32 none, t, 0; @none bra " LABEL "; add.u32 a, " CHAIN \
    ", %19; ld.shared.u16 " TO ", [a" OFF "]; add.u32 " CHAIN ", " CHAIN ", 128; " LABEL ":\n"
template <int BYTE, u32 NONE = 0>
__device__ __forceinline__ void take_at(u32 mask, u32 base, u32 (&next)[2], u32 (&x)[8]) {
    // clang-format off
    asm volatile("{.reg .pred none; .reg .b32 t, a;\n"
                 "mov.b32 %0, %20; mov.b32 %1, %20; mov.b32 %2, %20; mov.b32 %3, %20; "
                 "mov.b32 %4, %20; mov.b32 %5, %20; mov.b32 %6, %20; mov.b32 %7, %20;\n"
                 TAKE_AT("L0", "%11", "%8", "+0", "%0") TAKE_AT("L1", "%12", "%9", "+2", "%4")
                 TAKE_AT("L2", "%13", "%8", "+0", "%1") TAKE_AT("L3", "%14", "%9", "+2", "%5")
                 TAKE_AT("L4", "%15", "%8", "+0", "%2") TAKE_AT("L5", "%16", "%9", "+2", "%6")
                 TAKE_AT("L6", "%17", "%8", "+0", "%3") TAKE_AT("L7", "%18", "%9", "+2", "%7")
                 "}\n"
                 : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "=&r"(x[4]), "=&r"(x[5]), "=&r"(x[6]),
                   "=&r"(x[7]), "+&r"(next[0]), "+&r"(next[1])
                 : "r"(mask), BITS(BYTE), "r"(base), "n"(NONE));
    // clang-format on
}
#undef TAKE_AT

// take_word takes the values of a mask word, for four tiles, and calls warp.add(i, x, b) to multiply each by b. The
// offsets of the chains are warp.next; at the buffer's end they go back by wrap.
template <u32 NONE, class W, class B>
__device__ __forceinline__ void take_word(W &warp, u32 mask, u32 base, u32 wrap, const B &b) {
    u32(&next)[2] = warp.next;
    u32 x[2][8];
    take_at<0, NONE>(mask, base, next, x[0]);
    take_at<1, NONE>(mask, base, next, x[1]);
    warp.add(0, x[0], b);
    take_at<2, NONE>(mask, base, next, x[0]);
    warp.add(1, x[1], b);
    take_at<3, NONE>(mask, base, next, x[1]);
    warp.add(2, x[0], b);
    warp.add(3, x[1], b);
#pragma unroll
    for (int h = 0; h < 2; h++) next[h] = __viaddmin_u32(next[h], 0u - wrap, next[h]);
}
