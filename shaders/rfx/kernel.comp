// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS), A (rows × cols) in CSR, B
// quantised (rfx.go).
// Tile: a row or row segment × a tile of columns, as csr/kernel.comp; an invocation has four columns, in vectors.
// Data movement: A's integers and rows of B straight from memory to registers.
// Bound by: integer arithmetic. Sums of products of digits (lowest first) have 32 bits and are added to 128-bit totals
// before they can overflow.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "store.glsl"

layout(local_size_x = 128) in;

#if BITS == 15
#define NA 2 // digits of A
#define NB 1 // of B: all its 16 bits
#define DIGIT 8
#else
#if BITS == 23
#define NA 2
#elif BITS == 31
#define NA 3
#else
#define NA 4
#endif
#define NB NA
#define DIGIT 12
#endif
#define SUMS (NA + NB - 1)
#define BURST 124u // entries whose products a 32-bit sum has room for, whatever their digits

// A 128-bit integer for each of four columns: word w of all in w[w], the lowest first.
struct Wide {
    uvec4 w[4];
};

shared uvec4 parts[4][gl_WorkGroupSize.x];

ivec4 sums[SUMS];
Wide total;

uvec4 add(uvec4 a, uvec4 b, inout uvec4 carry) {
    uvec4 c, d, s = uaddCarry(uaddCarry(a, b, c), carry, d);
    carry = c | d;
    return s;
}

Wide add_wide(Wide a, Wide b) {
    uvec4 carry = uvec4(0);
    [[unroll]] for (int i = 0; i < 4; i++)
        a.w[i] = add(a.w[i], b.w[i], carry);
    return a;
}

// settle adds the 32-bit sums to the totals, and starts them anew.
void settle() {
    Wide more = Wide(uvec4[4](uvec4(0), uvec4(0), uvec4(0), uvec4(0)));
    [[unroll]] for (int d = SUMS - 1; d >= 0; d--) {
        [[unroll]] for (int i = 3; i > 0; i--)
            more.w[i] = (more.w[i] << DIGIT) | (more.w[i - 1] >> (32 - DIGIT));
        more.w[0] <<= DIGIT;
        uvec4 carry = uvec4(0), sign = uvec4(sums[d] >> 31);
        more.w[0] = add(more.w[0], uvec4(sums[d]), carry);
        [[unroll]] for (int i = 1; i < 4; i++)
            more.w[i] = add(more.w[i], sign, carry);
        sums[d] = ivec4(0);
    }
    total = add_wide(total, more);
}

int low(int x) { return (x << 20) >> 20; }
ivec4 low(ivec4 x) { return (x << 20) >> 20; }

// cut returns an integer of A as digits.
int[NA] cut(uvec2 x) {
    int a[NA];
#if BITS == 15
    a[0] = int(x.x << 24) >> 24;
    a[1] = (int(x.x) - a[0]) >> 8;
#else
    int y = int(x.x);
    a[0] = low(y);
    a[1] = (y - a[0]) >> 12;
#if BITS == 31
    y = a[1];
    a[1] = low(y);
    a[2] = (y - a[1]) >> 12;
#elif BITS == 47
    y = int(x.y);
    a[2] = low(y);
    a[3] = (y - a[2]) >> 12;
#endif
#endif
    return a;
}

// Quad is four columns of a row of q.
struct Quad {
#if BITS == 15
    uvec2 x;
#else
    uvec4 x;
#endif
#if BITS == 47
    uvec4 y;
#endif
};

// fetch returns the lane's columns of a row of q, x quads into it.
Quad fetch(uint row, uint x) {
    uint ld = p.ldq / 4;
    uvec2 rows = at(uvec2(p.q), p.first, 4);
#if BITS == 15
    return Quad(Words2(rows).v[row * ld + x]);
#elif BITS == 47
    uint w = row * 2 * ld + x;
    return Quad(Words4(rows).v[w], Words4(rows).v[w + ld]);
#else
    return Quad(Words4(rows).v[row * ld + x]);
#endif
}

// accumulate adds the products of an integer of A and four columns.
void accumulate(int a[NA], Quad q) {
    ivec4 b[NB];
#if BITS == 15
    b[0] = ivec4(q.x.x << 16, q.x.x, q.x.y << 16, q.x.y) >> 16;
#else
    ivec4 y = ivec4(q.x);
    b[0] = low(y);
    b[1] = (y - b[0]) >> 12;
#if BITS == 31
    y = b[1];
    b[1] = low(y);
    b[2] = (y - b[1]) >> 12;
#elif BITS == 47
    y = ivec4(q.y);
    b[2] = low(y);
    b[3] = (y - b[2]) >> 12;
#endif
#endif
    [[unroll]] for (int i = 0; i < NA; i++)
        [[unroll]] for (int j = 0; j < NB; j++) sums[i + j] += a[i] * b[j];
}

// entries adds up the entries from begin to end that are the lane's: every along-th four of them,
// counted from multiples of four, so that columns and integers come in whole vectors. Entries of the
// neighbouring rows count as zero times what their own columns hold.
void entries(uint begin, uint end, uint group, uint along, uint x) {
    Words4 columns = Words4(colidx());
    uint burst = 0;
    for (uint k = (begin & ~3u) + 4 * group; k < end; k += 4 * along) {
        uvec4 cols = columns.v[k / 4];
        Quad q[4];
        [[unroll]] for (int i = 0; i < 4; i++)
            q[i] = fetch(cols[i], x); // all loads before the first sum
#if BITS == 15
        uvec2 w = Words2(p.ints).v[k / 4];
        ivec4 ints = ivec4(w.x << 16, w.x, w.y << 16, w.y) >> 16;
#else
        uvec4 ints = Words4(p.ints).v[BITS == 47 ? k / 2 : k / 4];
#endif
#if BITS == 47
        uvec4 more = Words4(p.ints).v[k / 2 + 1];
        uvec2 a[4] = uvec2[4](ints.xy, ints.zw, more.xy, more.zw);
#else
        uvec2 a[4] = uvec2[4](uvec2(ints.x, 0), uvec2(ints.y, 0), uvec2(ints.z, 0), uvec2(ints.w, 0));
#endif
        [[unroll]] for (uint i = 0; i < 4; i++)
            accumulate(cut(k + i >= begin && k + i < end ? a[i] : uvec2(0)), q[i]);
        burst += 4;
        if (burst == BURST) {
            settle();
            burst = 0;
        }
    }
    settle();
}

// segments adds up the lane's share of segments first to last.
void segments(uint first, uint last, uint group, uint along, uint col) {
    for (uint i = first + group; i < last; i += along) {
        Words4 row = Words4(at(uvec2(p.part), i, 16 * p.ldq));
        Wide more;
        [[unroll]] for (uint c = 0; c < 4; c++) {
            uvec4 t = row.v[col + c];
            [[unroll]] for (int w = 0; w < 4; w++)
                more.w[w][c] = t[w];
        }
        total = add_wide(total, more);
    }
}

// reduce adds the totals of the item's groups of lanes to those of its first.
void reduce(uint group, uint across, uint along) {
    uint i = gl_LocalInvocationIndex;
    for (uint d = along / 2; d > 0; d /= 2) {
        [[unroll]] for (int w = 0; w < 4; w++)
            parts[w][i] = total.w[w];
        barrier();
        if (group < d) {
            Wide more;
            [[unroll]] for (int w = 0; w < 4; w++)
                more.w[w] = parts[w][i + d * across];
            total = add_wide(total, more);
        }
        barrier();
    }
}

void main() {
    uint across = across_of(), along = along_of();
    uint group = gl_LocalInvocationID.x / across; // of the workgroup's
    uint lane = gl_LocalInvocationID.x % across;
    uint item = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * p.per + group / along;
    group %= along; // of the item's
    uint x = gl_WorkGroupID.y * across + lane, col = 4 * x;
    for (int d = 0; d < SUMS; d++) sums[d] = ivec4(0);
    for (int w = 0; w < 4; w++) total.w[w] = uvec4(0);

    bool busy = item < p.items && col < p.n;
    bool segment = phase_of() == 0 && item < p.segments;
    uint row = 0;
    if (busy && phase_of() == 1) {
        uint r = p.heavy + 2 * p.segments + 3 * item;
        row = p.rows.v[r];
        segments(p.rows.v[r + 1], p.rows.v[r + 2], group, along, col);
    } else if (busy) {
        row = item - p.segments;
        uint r = p.heavy + 2 * item;
        uint begin = segment ? p.rows.v[r] : p.rows.v[2 * row];
        uint end = segment ? p.rows.v[r + 1] : p.rows.v[2 * row + 2];
        busy = segment || end - begin <= p.longest; // else it is done in segments
        if (busy) entries(begin, end, group, along, x);
    }
    reduce(group, across, along);
    if (!busy || group != 0) return;
    for (uint c = 0; c < 4; c++) {
        uvec4 sum = uvec4(total.w[0][c], total.w[1][c], total.w[2][c], total.w[3][c]);
        if (segment) Out4(at(uvec2(p.part), item, 16 * p.ldq)).v[col + c] = sum;
        else if (col + c < p.n) store(row, col + c, sum);
    }
}
