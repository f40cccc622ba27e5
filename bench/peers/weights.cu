// A peer of spmmrun bench for pruned weights in f16: a kernel that its authors published, from a checkout that the user
// has. MACKO or SPINFER is defined. published.sh builds it, and says which commit it is for.
//
// Both pack a dense A on the host, which is timed, and write C in f16, column-major. They read B column-major.

#include <cuda_fp16.h>

#include "device.cuh"

#ifdef MACKO
#include "cpu_compressor.cuh"
#include "kernels.cuh"

static const char *const peerName = "macko";
#else
#include "csrc/SpMM_API.cu"

static const char *const peerName = "spinfer";
#endif

// Stream is the stream that all launches go to.
static cudaStream_t stream;

// Matrix is A, dense on the host, with B and C on the device.
struct Matrix {
    int m, k, n;
    std::vector<__half> a;
    Shared b, c;

    explicit Matrix(const Product &p)
        : m(p.m), k(p.k), n(p.n), a((size_t)p.m * p.k), c(empty(sizeof(__half) * p.m * p.n)) {
        for (int i = 0; i < m; i++)
            for (int e = p.starts[i]; e < p.starts[i + 1]; e++) a[(size_t)i * k + p.columns[e]] = p.values[e];
        std::vector<__half> columns((size_t)k * n);
        for (int i = 0; i < k; i++)
            for (int j = 0; j < n; j++) columns[(size_t)j * k + i] = p.b[(size_t)i * n + j];
        b = copy(columns);
    }
    const __half *in() const { return (const __half *)b->p; }
    __half *out() const { return (__half *)c->p; }
};
using Operands = std::shared_ptr<Matrix>;

// taken copies an array that was allocated by malloc to the device, and frees it.
template <class T> static Shared taken(T *array, size_t count) {
    auto on = std::make_shared<Memory>(array, count * sizeof(T));
    free(array);
    return on;
}

#ifdef MACKO
// Macko and Boža: MACKO: Sparse Matrix-Vector Multiplication for Low Sparsity, 2025. One column alone.
static std::vector<Way> published(Operands a) {
    if (a->n != 1) throw std::runtime_error("one column alone");
    if (a->m % BLOCK_SIZE) throw std::runtime_error("rows in multiples of 32 alone");
    Clock clock;
    int *rows, count, padded;
    unsigned char *deltas;
    __half *values;
    compress_rows_cpu(a->a.data(), a->m, a->k, &rows, &deltas, &values, &count, &padded);
    const double took = clock.us();
    auto r = taken(rows, a->m + 1), d = taken(deltas, padded / 2), v = taken(values, padded);
    return {{{"macko", "f16", took}, [=] {
                 macko_spmv<false><<<a->m / BLOCK_SIZE, dim3(WARP_SIZE, BLOCK_SIZE), 0, stream>>>(
                     (__half *)v->p, (unsigned char *)d->p, (int *)r->p, a->in(), a->m, a->k, 1, 0, a->out());
             }, {}}};
}
#else
// Fan, Yu, Hou and others: SpInfer: Leveraging Low-Level Sparsity for Efficient Large Language Model Inference on GPUs,
// EuroSys 2025. Its split-K is the caller's choice.
static std::vector<Way> published(Operands a) {
    const int n = a->n;
    if (n != 8 && n != 16 && n != 32 && n != 64 && n % 128) throw std::runtime_error("8, 16, 32, 64 or 128·i columns");
    if (a->m % 64 || a->k % 64) throw std::runtime_error("rows and columns of A in multiples of 64 alone");
    Clock clock;
    __half *values;
    int *tiles, *medians, *globals, most = 0;
    uint64_t *bitmap;
    const int count = InitSparseMatrixA_bitmap(a->a.data(), a->m, a->k, 8, 16, 64, 8, 64, 64, &values, &tiles, &medians,
                                               &globals, &bitmap, most);
    if (count < 0) throw std::runtime_error("no memory to pack A");
    const double took = clock.us();
    free(tiles);
    const size_t entries = globals[count];
    auto v = taken(values, entries), g = taken(globals, count + 1), d = taken(medians, (size_t)4 * count);
    auto bits = taken(bitmap, (size_t)64 * count);
    if (most > 2304) throw std::runtime_error("at most 2304 entries in a tile of 64×64"); // its shared memory
    auto longest = copy(std::vector<int>{(most + 63) / 64 * 64});
    std::vector<Way> ways;
    for (int split : {1, 2, 4, 8}) {
        if (a->k / 64 < split) break;
        auto sums = empty(sizeof(__half) * a->m * n * split);
        ways.push_back({{"spinfer split" + std::to_string(split), "f16", took}, [=] {
                            CHECK(SpMM_SplitK_API_bitmap_v3(
                                stream, nullptr, (__half *)v->p, (int *)g->p, (int *)d->p, (uint64_t *)bits->p,
                                (int *)longest->p, a->in(), a->out(), a->m, n, a->k, (__half *)sums->p, split));
                        }, {}});
    }
    return ways;
}
#endif

struct WeightsPeer : Peer {
    Operands operands;
    std::vector<Way> ways;

    std::vector<Algorithm> prepare(const Product &p, const std::string &precision) override {
        if (precision != "f16") throw std::runtime_error("f16 alone");
        close();
        if ((size_t)p.m * p.k >= 1u << 31) throw std::runtime_error("fewer than 2^31 elements of A alone");
        operands = std::make_shared<Matrix>(p);
        ways = published(operands);
        std::vector<Algorithm> all;
        for (auto &w : ways) all.push_back(w.algorithm);
        return all;
    }

    double run(size_t algorithm, long times) override { return timed(ways[algorithm], stream, times); }

    std::vector<float> output(size_t algorithm) override {
        const size_t m = operands->m, n = operands->n;
        const auto half = written(ways[algorithm], stream, operands->out(), m * n);
        std::vector<float> out(m * n);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++) out[i * n + j] = half[j * m + i];
        return out;
    }

    void close() override { ways.clear(), operands.reset(); }
};

int main() { return servePublished<WeightsPeer>(stream, peerName, COMMIT); }
