// A peer of spmmrun bench: a kernel that its authors published for windows of rows on matrix units in tf32, from a
// checkout that the user has. One of DTC, ACC, VOLTRIX and HC is defined. published.sh builds it, and says which commit
// it is for.
//
// A is in CSR. Preparing it is timed, with the device's work for it where the code prepares there; launches are
// recorded as a CUDA graph. A and B are rounded to tf32 on the host, since a kernel may cut bits off.

#include "published.cuh"

const char *const peerPrecision = "tf32";

// Windows are groups of 16 rows with the columns that any of them has, in blocks of 8 columns.
struct Windows {
    static constexpr int height = 16, width = 8;
    std::vector<int> starts{0};         // of windows: their first blocks
    std::vector<int> window;            // of blocks
    std::vector<int> entries{0};        // of blocks: their first entries
    std::vector<int> columns;           // of blocks, as many as they are wide; 0 behind a window's last
    std::vector<unsigned char> places;  // of entries: 8·row + column in the block
    std::vector<float> values;          // of entries
    bool empty = false;                 // some window has no entries

    explicit Windows(const Product &p) {
        std::vector<int> columns, next;
        for (int first = 0; first < p.m; first += height) {
            const int last = std::min<int>(first + height, p.m), begin = p.starts[first], end = p.starts[last];
            columns.assign(p.columns.begin() + begin, p.columns.begin() + end);
            std::sort(columns.begin(), columns.end());
            columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
            const int blocks = (columns.size() + width - 1) / width, block = starts.back();
            auto place = [&](int e) {
                return int(std::lower_bound(columns.begin(), columns.end(), p.columns[e]) - columns.begin());
            };
            next.assign(blocks + 1, 0);
            for (int e = begin; e < end; e++) next[place(e) / width + 1]++;
            std::partial_sum(next.begin(), next.end(), next.begin());
            for (int b = 0; b < blocks; b++) window.push_back(first / height), entries.push_back(begin + next[b + 1]);
            starts.push_back(block + blocks);
            this->columns.insert(this->columns.end(), columns.begin(), columns.end());
            this->columns.resize((size_t)starts.back() * width);
            places.resize(end), values.resize(end);
            for (int i = first; i < last; i++)
                for (int e = p.starts[i]; e < p.starts[i + 1]; e++) {
                    const int c = place(e), at = begin + next[c / width]++;
                    places[at] = (i - first) * width + c % width, values[at] = p.values[e];
                }
            empty = empty || blocks == 0;
        }
    }
    int count() const { return starts.size() - 1; }
    int blocks() const { return starts.back(); }
};

// cleared has C cleared before a launch that adds to it, or leaves rows out.
static std::function<void()> cleared(Operands a, std::function<void()> launch) {
    return [=] {
        CHECK(cudaMemsetAsync(a->out(), 0, sizeof(float) * a->m * a->n, stream));
        launch();
    };
}

// onesAlone refuses values that a code for adjacency matrices does not keep.
[[maybe_unused]] static void onesAlone(const Product &p) {
    if (std::any_of(p.values.begin(), p.values.end(), [](float x) { return x != 1; }))
        throw std::runtime_error("values of 1 alone: it keeps which entries there are");
}

#ifdef DTC
// Fan, Wang and Chu: DTC-SpMM: Bridging the Gap in Accelerating General Sparse Matrix Multiplication with Tensor Cores,
// ASPLOS 2024.
#include "DTC-SpMM/dtc.cuh"

const char *const peerName = "dtc";

static std::vector<Way> published(const Product &p, Operands a) {
    if (a->n % 16 || a->n > 512) throw std::runtime_error("columns in multiples of 16, to 512");
    Clock clock;
    Windows w(p);
    const double took = clock.us();
    auto starts = copy(w.starts), window = copy(w.window), entries = copy(w.entries), columns = copy(w.columns);
    auto places = copy(w.places), values = copy(w.values);
    const int windows = w.count(), blocks = w.blocks(), warps = a->n / 16;
    const bool empty = w.empty;
    std::vector<Way> ways;
    auto rows = [&](const char *name, auto kernel, dim3 grid, dim3 threads) {
        std::function<void()> launch = [=] {
            kernel<<<grid, threads, 0, stream>>>((int *)starts->p, (uint8_t *)places->p, (int *)entries->p,
                                                 (int *)columns->p, (float *)values->p, a->k, a->nnz, a->n,
                                                 (float *)a->b->p, a->out());
        };
        ways.push_back({{name, "", took}, empty ? cleared(a, launch) : launch, {}});
    };
    auto balanced = [&](const char *name, auto kernel, int y, int each) {
        const dim3 grid((blocks + TCBLOCK_PER_WARP - 1) / TCBLOCK_PER_WARP, y), threads(32, each);
        ways.push_back({{name, "", took}, cleared(a, [=] {
                            if (blocks > 0)
                                kernel<<<grid, threads, 0, stream>>>((int *)window->p, (uint8_t *)places->p,
                                                                     (int *)entries->p, (int *)columns->p,
                                                                     (float *)values->p, blocks, a->k, a->nnz, a->n,
                                                                     (float *)a->b->p, a->out());
                        }), {}});
    };
    const dim3 whole(windows), all(32, warps), four(32, 4);
    rows("dtc float", spmm_forward_cuda_kernel_improved_ptx_1684_uint8_v1_with_value_double_buffer, whole, all);
    rows("dtc float2", spmm_forward_cuda_kernel_improved_ptx_1684_uint8_v1_with_value_double_buffer_float2, whole,
         all);
    balanced("dtc balanced", spmm_forward_cuda_kernel_improved_ptx_uint8_v1_strict_balance_withv, 1, warps);
    if (a->n % 64 == 0)
        rows("dtc float2 split",
             spmm_forward_cuda_kernel_improved_ptx_1684_uint8_v1_with_value_double_buffer_float2_split,
             dim3(windows, warps / 4), four);
    if (a->n % 32 == 0)
        rows("dtc float4", spmm_forward_cuda_kernel_improved_ptx_1684_uint8_v1_with_value_double_buffer_float4, whole,
             dim3(32, warps / 2));
    if (a->n % 128 == 0) {
        rows("dtc float4 split",
             spmm_forward_cuda_kernel_improved_ptx_1684_uint8_v1_with_value_double_buffer_float4_split,
             dim3(windows, warps / 8), four);
        balanced("dtc float4 split balanced",
                 spmm_forward_cuda_kernel_improved_ptx_1684_uint8_v1_with_value_double_buffer_float4_split_balance,
                 warps / 8, 4);
    }
    return ways;
}
#endif

#ifdef ACC
// Zhao and others: Acc-SpMM: Accelerating General-purpose Sparse Matrix-Matrix Multiplication with GPU Tensor Cores,
// PPoPP 2025. Its own classes prepare A; its reordering is not published.
#include "format.hpp"
#include "mma_tf32.cuh"

const char *const peerName = "acc";

// launched returns a kernel's launch as its TF32Compute has it, which keeps what its arguments point to: a CTA for each
// window, or group, and half or a quarter of the warps that the columns fill.
template <class Kernel, class... Args>
static std::function<void()> launched(Kernel kernel, int ctas, int warps, std::vector<Shared> kept, Args... args) {
    return [=, kept = std::move(kept)] {
        if (ctas > 0) kernel<<<dim3(ctas), dim3(32, warps), 0, stream>>>(args...);
    };
}

static std::vector<Way> published(const Product &p, Operands a) {
    if (a->n % 32 || (a->n > 128 && a->n % 64))
        throw std::runtime_error("columns in multiples of 32, from 128 on of 64");
    CSR<float> csr;
    csr.rows = p.m, csr.cols = p.k, csr.nnz = p.nnz;
    csr.row_ptr.assign(p.starts.begin(), p.starts.end()), csr.col_idx.assign(p.columns.begin(), p.columns.end());
    csr.data = p.values;
    std::vector<Way> ways;
    const vint k = p.k, n = p.n;
    auto at = [](const Shared &s) { return (const vint *)s->p; };
    {
        Clock clock;
        METCFBit<float> f;
        f.convertFromCSR(csr);
        const double took = clock.us();
        auto bits = copy(f.tcLocalBit);
        auto columns = copy(f.sparseA2B), starts = copy(f.rowWindowOffset), entries = copy(f.tcOffset);
        auto values = copy(f.data);
        const bool large = n > 512;
        auto launch = launched(large ? tf32_mma_g512_kernel : tf32_mma_kernel, f.rowWindowOffset.size() - 1,
                               n / (large ? 64 : 32), {bits, columns, starts, entries, values},
                               (const TCLOCAL_TYPE *)bits->p, at(columns), (const float *)values->p, at(starts),
                               at(entries), a->in(), a->out(), k, n);
        ways.push_back({{"acc", "", took}, cleared(a, launch), {}});
    }
    Clock clock;
    AdpBME<float> f;
    f.CSR2AdpBME(csr, 3, 1, 2);
    const double took = clock.us();
    auto bits = copy(f.tcLocalBit);
    auto columns = copy(f.sparseA2B), starts = copy(f.groupOffset), entries = copy(f.tcOffset);
    auto rows = copy(f.rowIndices);
    auto values = copy(f.data);
    const bool large = n > 128;
    auto launch = launched(large ? tf32_mma_balance_g128_kernel : tf32_mma_balance_kernel, f.groupOffset.size() - 1,
                           n / (large ? 64 : 32), {bits, columns, starts, entries, rows, values}, at(starts),
                           at(entries), at(rows), (const TCLOCAL_TYPE *)bits->p, at(columns), (const float *)values->p,
                           a->in(), a->out(), k, n);
    ways.push_back({{"acc balanced", "", took}, cleared(a, launch), {}});
    return ways;
}
#endif

#ifdef VOLTRIX
// Xia and others: Voltrix-SpMM: Sparse Matrix-Matrix Multiplication on Tensor Cores with Asynchronous and Balanced
// Kernel Optimization, USENIX ATC 2025. For compute capability 9.0.
#include "voltrix/bmat_kernels.cuh"
#include "voltrix/spmm_kernels.cuh"

const char *const peerName = "voltrix";

static std::vector<Way> published(const Product &p, Operands a) {
    onesAlone(p);
    if (a->n % 16) throw std::runtime_error("columns in multiples of 16 alone");
    Clock clock;
    Windows w(p);
    std::vector<float> ones((size_t)w.blocks() * Windows::height * Windows::width);
    for (int b = 0; b < w.blocks(); b++)
        for (int e = w.entries[b]; e < w.entries[b + 1]; e++)
            ones[(size_t)b * Windows::height * Windows::width + w.places[e]] = 1;
    auto starts = copy(w.starts), columns = copy(w.columns), tiles = copy(ones);
    auto packed = empty(ones.size() / 8);
    voltrix::hmat_packed_swizzle_cuda(w.count(), (int *)starts->p, (float *)tiles->p, (uint32_t *)packed->p);
    CHECK(cudaDeviceSynchronize());
    const double took = clock.us();
    const int rows = w.count() * Windows::height; // it leaves out rows behind the last whole window
    std::vector<Way> ways;
    for (int model = 0; model < 3; model++) // its tuner takes the fastest
        ways.push_back({{"voltrix " + std::to_string(model), "", took}, [=] {
                            voltrix::voltrix_spmm_forward_cuda((int *)starts->p, (uint32_t *)packed->p,
                                                               (int *)columns->p, rows, a->nnz, a->n, a->in(), a->out(),
                                                               model, stream);
                        }, {}});
    return ways;
}
#endif

#ifdef HC
// Li and others: HC-SpMM: Accelerating Sparse Matrix-Matrix Multiplication for Graphs with Hybrid GPU Cores, ICDE 2025.
#include "hybrid_kernel/hc.cuh"

const char *const peerName = "hc";

static std::vector<Way> published(const Product &p, Operands a) {
    onesAlone(p);
    if (p.m != p.k || a->n % 16) throw std::runtime_error("square matrices and columns in multiples of 16 alone");
    Clock clock;
    std::vector<int> sorted = p.columns; // window by window
    const int windows = (p.m + BLK_H - 1) / BLK_H;
    for (int i = 0; i < windows; i++) {
        const int begin = p.starts[i * BLK_H], end = p.starts[std::min<int64_t>((i + 1) * BLK_H, p.m)];
        if (end - begin > S_SIZE) throw std::runtime_error("at most " + std::to_string(S_SIZE) + " entries in 16 rows");
        std::sort(sorted.begin() + begin, sorted.begin() + end);
    }
    auto ints = [](size_t n) { return copy(std::vector<int>(n)); };
    auto edges = copy(sorted), column = ints(p.nnz), row = ints(p.nnz), blocks = ints(windows), kind = ints(windows);
    auto count = ints(1);
    fill_edgeToRow_cuda((int *)row->p, (int *)a->ptr(), p.m);
    generate_edgetocolumn_cuda((int *)a->ptr(), (int *)a->idx(), (int *)edges->p, (int *)column->p, (int *)blocks->p,
                               (int *)count->p, BLK_H, BLK_W, p.m, (int *)kind->p);
    CHECK(cudaDeviceSynchronize());
    const double took = clock.us();
    const size_t shared = (size_t)(a->n / BLK_H) * BLK_W * BLK_H * sizeof(float);
    std::vector<Way> ways;
    auto add = [&](const char *name, auto kernel, int warps) {
        ways.push_back({{name, "", took}, cleared(a, [=] {
                            kernel<<<dim3(windows), dim3(32, warps), shared, stream>>>(
                                a->ptr(), a->idx(), (int *)blocks->p, (int *)column->p, (int *)row->p, a->m, a->nnz,
                                a->n, a->in(), a->out(), (int *)kind->p, (int *)count->p, (int *)count->p);
                        }), {}});
    };
    add("hc", spmm_forward_cuda_kernel_arbi_warps_hybrid_adaptive, WPB);
    add("hc more", spmm_forward_cuda_kernel_arbi_warps_hybrid_adaptive_more, WPBMore);
    if (a->n == 32) add("hc 32", spmm_forward_cuda_kernel_arbi_warps_hybrid_32, WPB);
    if (a->n == 64) add("hc 64", spmm_forward_cuda_kernel_arbi_warps_hybrid_64, WPB);
    return ways;
}
#endif
