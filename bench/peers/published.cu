// A peer of spmmrun bench: a kernel that its authors published, from a checkout that the user has. One of RODE,
// SPUTNIK, GESPMM and FLASHSPARSE is defined. published.sh builds it, and says which commit it is for.
//
// A is in CSR. Preparing it is timed on the host; launches are recorded as a CUDA graph.

#include "published.cuh"

#ifdef RODE
// Gong, Zhu, Chen and others: A Row Decomposition-based Approach for Sparse Matrix Multiplication on GPUs, PPoPP 2024.
#include "RoDeSddmm.h"
#include "RoDeSpmm.h"

const char *const peerName = "rode";

// Segments are rows cut as RoDe's SparseMatrix::RowDivide2Segment cuts them: multiples of 32 entries, and residues.
struct Segments {
    std::vector<int> rows, starts, residues;

    Segments(const Product &p, int longest, int vector, int block) {
        for (int i = 0; i < p.m; i++) {
            int at = p.starts[i];
            const int padding = at % vector;
            int count = p.starts[i + 1] - at + padding;
            for (bool first = true; count > longest; first = false) {
                rows.push_back(i), starts.push_back(at);
                at += longest - (first ? padding : 0);
                count -= longest;
            }
            if (count >= block) rows.push_back(i), starts.push_back(at);
            if (count > 0 && count % block) residues.push_back(i);
        }
        starts.push_back(p.starts[p.m]);
    }
};

// Second is its second stream, which joins the first.
struct Second {
    cudaStream_t stream;
    cudaEvent_t from, to;
    Second() {
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&from, cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&to, cudaEventDisableTiming));
    }
    ~Second() { cudaStreamDestroy(stream), cudaEventDestroy(from), cudaEventDestroy(to); }

    // both has launches go into both streams.
    void both(const std::function<void()> &launch) const {
        CHECK(cudaEventRecord(from, ::stream));
        CHECK(cudaStreamWaitEvent(stream, from, 0));
        launch();
        CHECK(cudaEventRecord(to, stream));
        CHECK(cudaStreamWaitEvent(::stream, to, 0));
    }
};

// Segmented is a matrix in segments of up to `longest` entries on the device.
struct Segmented {
    Shared rows, starts, residues;
    int blocks, rest;
    double took;
    Second second;

    Segmented(const Product &p, int longest) {
        Clock clock;
        Segments s(p, longest, 4, 32);
        took = clock.us();
        rows = copy(s.rows), starts = copy(s.starts), residues = copy(s.residues);
        blocks = s.rows.size(), rest = s.residues.size();
    }
};

static std::vector<Way> published(const Product &p, Operands a) {
    if (a->n % 32) throw std::runtime_error("columns in multiples of 32 alone");
    auto s = std::make_shared<Segmented>(p, 512);
    auto with = [=](auto kernel) {
        return [=] {
            // It adds to C, and leaves empty rows out.
            CHECK(cudaMemsetAsync(a->out(), 0, sizeof(float) * a->m * a->n, stream));
            if (s->blocks + s->rest == 0) return;
            s->second.both([&] {
                kernel(s->blocks, s->rest, a->k, a->n, a->val(), a->idx(), a->ptr(), (int *)s->rows->p,
                       (int *)s->residues->p, (int *)s->starts->p, a->in(), a->out(), stream, s->second.stream);
            });
        };
    };
    using Kernel = void (*)(int, int, int, int, const float *, const int *, const int *, const int *, const int *,
                            const int *, const float *, float *, cudaStream_t, cudaStream_t);
    std::vector<Way> ways{{{"rode n32", "", s->took}, with((Kernel)RoDeSpmm_n32), {}}};
    if (a->n % 64 == 0) ways.push_back({{"rode n128", "", s->took}, with((Kernel)RoDeSpmm_n128), {}});
    return ways;
}

static std::vector<Way> sampled(const Product &p, Operands a) {
    if (a->n != 32 && a->n != 128) throw std::runtime_error("sampled products of 32 or 128 columns alone");
    auto s = std::make_shared<Segmented>(p, a->n == 32 ? 512 : 32);
    const auto kernel = a->n == 32 ? RoDeSDDMM_n32 : RoDeSDDMM_n128;
    return {{{"rode sddmm", "", s->took}, [=] {
                 s->second.both([&] {
                     kernel(s->blocks, s->rest, a->k, a->n, (int *)s->rows->p, (int *)s->residues->p,
                            (int *)s->starts->p, a->ptr(), a->idx(), a->val(), a->left(), a->in(), a->out(), stream,
                            s->second.stream);
                 });
             }, {}}};
}
#endif

#ifdef SPUTNIK
// Gale, Zaharia, Young and Elsen: Sparse GPU Kernels for Deep Learning, SC 2020.
#include "sputnik/sddmm/cuda_sddmm.h"
#include "sputnik/spmm/cuda_spmm.h"

const char *const peerName = "sputnik";

// Ordered has a matrix's rows on the device, the longest first.
struct Ordered {
    Shared rows;
    double took;

    explicit Ordered(const Product &p) {
        Clock clock;
        std::vector<int> order(p.m);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
            return p.starts[x + 1] - p.starts[x] > p.starts[y + 1] - p.starts[y];
        });
        took = clock.us(), rows = copy(order);
    }
};

static std::vector<Way> published(const Product &p, Operands a) {
    const Ordered o(p);
    return {{{"sputnik", "", o.took}, [=] {
                 CHECK(sputnik::CudaSpmm(a->m, a->k, a->n, a->nnz, (int *)o.rows->p, a->val(), a->ptr(), a->idx(),
                                         a->in(), a->out(), stream));
             }, {}}};
}

static std::vector<Way> sampled(const Product &p, Operands a) {
    const Ordered o(p);
    return {{{"sputnik sddmm", "", o.took}, [=] {
                 CHECK(sputnik::CudaSddmm(a->m, a->n, a->k, a->nnz, (int *)o.rows->p, a->ptr(), a->idx(), a->left(),
                                          a->in(), a->out(), stream));
             }, {}}};
}
#endif

#ifdef GESPMM
// Huang, Dai, Wang and Yang: GE-SpMM: General-purpose Sparse Matrix-Matrix Multiplication on GPUs for Graph Neural
// Networks, SC 2020. Its wrapper launches into peerStream, which published.sh puts in place of the default stream.
#define peerStream stream
#include "gespmm.cuh"

const char *const peerName = "gespmm";

static std::vector<Way> published(const Product &, Operands a) {
    std::vector<Way> ways;
    for (int method = 1; method <= 4; method++) {
        if (method > 1 && a->n <= 16 << (method - 1)) break; // most of its columns would be idle
        ways.push_back({{"gespmm " + std::to_string(method), ""}, [=] {
                            spmmWrapper(method, 4, a->m, a->n, (int *)a->ptr(), (int *)a->idx(), (float *)a->val(),
                                        (float *)a->in(), a->out());
                        }, {}});
    }
    return ways;
}
#endif

#ifdef FLASHSPARSE
// Shi, Li, Xu and others: FlashSparse: Minimizing Computation Redundancy for Fast Sparse Matrix Multiplications on
// Tensor Cores, PPoPP 2025. In tf32, with windows of 8 rows and blocks of 4 columns.
#include "FlashSparse/SpMM/src/spmmKernel.cu"

const char *const peerName = "flashsparse", *const peerPrecision = "tf32";

// Windows are groups of 8 rows with the columns that any of them has. Each block of 4 such columns has its values row
// by row, the last one with as many columns as are left. Parts are up to `most` blocks of a window.
struct Windows {
    static constexpr int height = 8, width = 4;
    std::vector<int> starts{0}, columns, window, shared;
    std::vector<float> values;
    bool empty = false; // some window has no entries

    Windows(const Product &p, int most) {
        for (int first = 0, w = 0; first < p.m; first += height, w++) {
            const int last = std::min<int>(first + height, p.m), begin = columns.size();
            columns.insert(columns.end(), p.columns.begin() + p.starts[first], p.columns.begin() + p.starts[last]);
            std::sort(columns.begin() + begin, columns.end());
            columns.erase(std::unique(columns.begin() + begin, columns.end()), columns.end());
            const int count = columns.size() - begin;
            const size_t base = values.size();
            values.resize(base + (size_t)count * height);
            for (int i = first; i < last; i++)
                for (int e = p.starts[i]; e < p.starts[i + 1]; e++) {
                    const int at = std::lower_bound(columns.begin() + begin, columns.end(), p.columns[e]) -
                        columns.begin() - begin;
                    const int block = at / width, wide = std::min(width, count - block * width);
                    values[base + (size_t)block * height * width + (i - first) * wide + at % width] = p.values[e];
                }
            const int longest = most * width;
            empty = empty || count == 0;
            for (int at = 0; at == 0 || at < count; at += longest) {
                starts.push_back(starts.back() + std::min(longest, count - at));
                window.push_back(w), shared.push_back(count > longest);
            }
        }
    }
};

static std::vector<Way> published(const Product &p, Operands a) {
    if (a->n % 16) throw std::runtime_error("columns in multiples of 16 alone");
    std::vector<Way> ways;
    for (int most : {1 << 20, 32}) { // whole windows, and balanced parts
        Clock clock;
        Windows w(p, most);
        const double took = clock.us();
        auto starts = copy(w.starts), columns = copy(w.columns), window = copy(w.window), shared = copy(w.shared);
        auto values = copy(w.values);
        const int parts = w.window.size(), n = a->n, across = (n + 63) / 64;
        const int split = most == 32 ? parts < 500000 ? 8 : (parts / 1250000 + 1) * 20 : 200;
        const bool clear = most == 32 || w.empty; // parts add to C, and empty windows are left out
        const dim3 grid(across, split, parts / split + 1);
        ways.push_back({{most == 32 ? "flashsparse balanced" : "flashsparse", "", took}, [=] {
                            if (clear) CHECK(cudaMemsetAsync(a->out(), 0, sizeof(float) * a->m * n, stream));
                            auto s = (int *)starts->p, c = (int *)columns->p;
                            auto v = (float *)values->p;
                            if (most == 32)
                                spmm_forward_cuda_kernel_tf32_balance<64><<<grid, 128, 0, stream>>>(
                                    s, c, v, (int *)window->p, (int *)shared->p, a->in(), a->out(), n, parts, n, a->m,
                                    split);
                            else
                                spmm_forward_cuda_kernel_tf32<64><<<grid, 128, 0, stream>>>(
                                    s, c, v, a->in(), a->out(), n, parts, n, a->m);
                        }, {}});
    }
    return ways;
}
#else
const char *const peerPrecision = "f32";
#endif
