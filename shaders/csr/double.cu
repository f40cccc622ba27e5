// Computes: C (rows × n) = alpha·A·B + beta·C in f64, A (rows × cols) in CSR, B (cols × n) row-major.
// Tile: as kernel.cu. A lane has CHUNKS pairs of columns, p.across pairs apart, so that neighbouring lanes load
// neighbouring 16 bytes of a row of B.
// Data movement: A's entries and rows of B go straight from memory to registers. Shared memory holds only the sums that
// the warps of a CTA exchange.
// Bound by: gathers of rows of B, twice the bytes of f32.
// Constants: ENTRY, CHUNKS, BLOCKS (CTAs on a multiprocessor), TEAMS and OVERLAP (rows.cuh).

#define DOUBLE
#include "rows.cuh"
#include "../include/f64.cuh"

// Sums holds a lane's partial sums of one row of C: pairs of columns col + 2·i·across and the next, if C has them.
struct Sums {
    typedef double2 Values;
    typedef double2 Columns;
    typedef double Sum;
    static const int SHARED = 32 * 2 * CHUNKS; // sums of a warp

    double2 x[CHUNKS];
    bool in[CHUNKS];
    u32 col;

    __device__ __forceinline__ Sums(u32 lane, const Params &p) : col(2 * (blockIdx.y * CHUNKS * p.across + lane)) {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            x[i] = make_double2(0, 0);
            in[i] = col + 2 * i * p.across < p.n;
        }
    }
    __device__ __forceinline__ bool inside(const Params &p) const { return in[0]; }

    // entries adds the products of a lane group's share of the entries begin to end - 1, in the order of kernel.cu. The
    // loop loads the next four entries before the rows of B of the current four. Entries that belong to a neighbouring
    // row are replaced by zeros.
    __device__ __forceinline__ void entries(u32 begin, u32 end, u32 group, u32 along, const uint4 *__restrict__ colidx,
                                            const double2 *__restrict__ values, const double2 *__restrict__ b,
                                            const Params &p) {
        u32 k = (begin & ~3u) + 4 * group, step = 4 * along, ld = p.ldb / 2;
        b += col / 2;
        uint4 cols = {};
        double2 vals[2] = {};
        if (k < end) cols = __ldg(colidx + k / 4), vals[0] = __ldg(values + k / 2);
        if (k + 2 < end) vals[1] = __ldg(values + k / 2 + 1); // there may be no memory past the last entry
        launches_before();
        launches_after();
        while (k < end) {
            u32 next = k + step;
            uint4 next_cols;
            double2 next_vals[2];
            if (next < end) {
                next_cols = __ldg(colidx + next / 4);
                next_vals[0] = __ldg(values + next / 2);
                if (next + 2 < end) next_vals[1] = __ldg(values + next / 2 + 1);
            }
            double2 y[4][CHUNKS];
            double v[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                bool mine = k + i >= begin && k + i < end;
                v[i] = mine ? (i & 1 ? vals[i / 2].y : vals[i / 2].x) : 0.0;
                const double2 *row = b + (size_t)word(cols, i) * ld;
#pragma unroll
                for (int c = 0; c < CHUNKS; c++) y[i][c] = load(row + c * p.across, mine && in[c]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int c = 0; c < CHUNKS; c++) {
                    x[c].x = fma(v[i], y[i][c].x, x[c].x);
                    x[c].y = fma(v[i], y[i][c].y, x[c].y);
                }
            k = next;
            cols = next_cols;
            vals[0] = next_vals[0];
            vals[1] = next_vals[1];
        }
    }

    // slots adds the partial sums in rows first to last - 1 of the workspace, every along-th row from its group's on.
    __device__ __forceinline__ void slots(u32 first, u32 last, u32 group, const double *part, const Params &p) {
#pragma unroll 4
        for (u32 i = first + group; i < last; i += p.along)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
                if (in[c]) take(c, part + (size_t)i * p.ldp + col + 2 * c * p.across);
    }
    __device__ __forceinline__ void take(int c, const double *from) {
        double2 y = *(const double2 *)from;
        x[c].x += y.x;
        x[c].y += y.y;
    }

    // join adds the sums of the lane groups, which have d lanes each, among `lanes` neighbouring lanes of the warp.
    __device__ __forceinline__ void join(u32 d, u32 lanes) {
        for (; d < lanes; d *= 2)
#pragma unroll
            for (int i = 0; i < CHUNKS; i++) {
                x[i].x += __shfl_xor_sync(ALL, x[i].x, d);
                x[i].y += __shfl_xor_sync(ALL, x[i].y, d);
            }
    }

    // share writes the sums to the shared memory of this warp, and add adds the sums of another warp.
    __device__ __forceinline__ void share(double *warp, u32 lane) const {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) ((double2 *)warp)[32 * i + lane] = x[i];
    }
    __device__ __forceinline__ void add(const double *warp, u32 lane) {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++)
            if (in[i]) take(i, warp + 2 * (32 * i + lane));
    }
    // store_partial writes the sums to a row of the workspace.
    __device__ __forceinline__ void store_partial(double *part, const Params &p) const {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++)
            if (in[i]) *(double2 *)(part + col + 2 * i * p.across) = x[i];
    }
    // store writes the sums to C: alpha·x + beta·c, with the epilogue if there is one.
    __device__ __forceinline__ void store(void *c, const double *bias, u32 row, const Params &p) const {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++)
            if (in[i]) store_pair((double *)c, bias, x[i], row, col + 2 * i * p.across, p);
    }
    // store_pair does so for columns at and at + 1 of a row.
    static __device__ __forceinline__ void store_pair(double *c, const double *bias, double2 s, u32 row, u32 at,
                                                      const Params &p) {
        double alpha = alpha_of(p), beta = beta_of(p);
        double y[2] = {alpha * s.x, alpha * s.y};
        c += (size_t)row * p.ldc + at;
        bool both = at + 1 < p.n;
        if (beta != 0) {
            y[0] = fma(beta, c[0], y[0]);
            if (both) y[1] = fma(beta, c[1], y[1]);
        }
        if (has_epilogue(p.store)) {
            y[0] = epilogue64(y[0], p.store, bias, row, at);
            if (both) y[1] = epilogue64(y[1], p.store, bias, row, at + 1);
        }
        if (both && p.ldc % 2 == 0) {
            *(double2 *)c = make_double2(y[0], y[1]);
            return;
        }
        c[0] = y[0];
        if (both) c[1] = y[1];
    }
};

extern "C" __global__ void __launch_bounds__(128, BLOCKS)
    csr(const u32 *__restrict__ rowptr, const uint4 *__restrict__ colidx, const double2 *__restrict__ values,
        const u32 *__restrict__ heavy, const double2 *__restrict__ b, const double *__restrict__ bias,
        void *__restrict__ c, double *part, const Params p) {
    multiply<Sums>(rowptr, colidx, values, heavy, b, bias, c, part, p);
}
