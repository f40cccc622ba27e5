// A peer of spmmrun bench: a kernel for f32 that its authors published, from a checkout that the user has. One of
// RODE, SPUTNIK and GESPMM is defined. published.sh builds it, and says which commit it is for.
//
// A is in CSR. Preparing it is timed on the host; launches are recorded as a CUDA graph.

#include <numeric>

#include "device.cuh"

// Stream is the stream that all launches go to.
static cudaStream_t stream;

// Matrix is A on the device, with B and C.
struct Matrix {
    int m, k, n, nnz;
    Shared starts, columns, values, b, c;

    explicit Matrix(const Product &p)
        : m(p.m), k(p.k), n(p.n), nnz(p.nnz), starts(copy(p.starts)), columns(copy(p.columns)), values(copy(p.values)),
          b(copy(p.b)), c(empty(sizeof(float) * p.m * p.n)) {}
    const int *ptr() const { return (const int *)starts->p; }
    const int *idx() const { return (const int *)columns->p; }
    const float *val() const { return (const float *)values->p; }
    const float *in() const { return (const float *)b->p; }
    float *out() const { return (float *)c->p; }
};
using Operands = std::shared_ptr<Matrix>;

// Clock measures preparation in microseconds.
struct Clock {
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    double us() const {
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    }
};

#ifdef RODE
// Gong, Zhu, Chen and others: A Row Decomposition-based Approach for Sparse Matrix Multiplication on GPUs, PPoPP 2024.
#include "RoDeSpmm.h"

static const char *const peerName = "rode";

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

static std::vector<Way> published(const Product &p, Operands a) {
    if (a->n % 32) throw std::runtime_error("columns in multiples of 32 alone");
    Clock clock;
    Segments s(p, 512, 4, 32);
    const double took = clock.us();
    auto rows = copy(s.rows), starts = copy(s.starts), residues = copy(s.residues);
    const int m1 = s.rows.size(), m2 = s.residues.size();
    struct Second { // its second stream, which joins the first
        cudaStream_t stream;
        cudaEvent_t from, to;
        Second() {
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            CHECK(cudaEventCreateWithFlags(&from, cudaEventDisableTiming));
            CHECK(cudaEventCreateWithFlags(&to, cudaEventDisableTiming));
        }
        ~Second() { cudaStreamDestroy(stream), cudaEventDestroy(from), cudaEventDestroy(to); }
    };
    auto second = std::make_shared<Second>();
    auto with = [=](auto kernel) {
        return [=] {
            // It adds to C, and leaves empty rows out.
            CHECK(cudaMemsetAsync(a->out(), 0, sizeof(float) * a->m * a->n, stream));
            CHECK(cudaEventRecord(second->from, stream));
            CHECK(cudaStreamWaitEvent(second->stream, second->from, 0));
            if (m1 + m2 > 0)
                kernel(m1, m2, a->k, a->n, a->val(), a->idx(), a->ptr(), (int *)rows->p, (int *)residues->p,
                       (int *)starts->p, a->in(), a->out(), stream, second->stream);
            CHECK(cudaEventRecord(second->to, second->stream));
            CHECK(cudaStreamWaitEvent(stream, second->to, 0));
        };
    };
    using Kernel = void (*)(int, int, int, int, const float *, const int *, const int *, const int *, const int *,
                            const int *, const float *, float *, cudaStream_t, cudaStream_t);
    std::vector<Way> ways{{{"rode n32", "", took}, with((Kernel)RoDeSpmm_n32), {}}};
    if (a->n % 64 == 0) ways.push_back({{"rode n128", "", took}, with((Kernel)RoDeSpmm_n128), {}});
    return ways;
}
#endif

#ifdef SPUTNIK
// Gale, Zaharia, Young and Elsen: Sparse GPU Kernels for Deep Learning, SC 2020.
#include "sputnik/spmm/cuda_spmm.h"

static const char *const peerName = "sputnik";

static std::vector<Way> published(const Product &p, Operands a) {
    Clock clock;
    std::vector<int> order(p.m); // rows, the longest first
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
        return p.starts[x + 1] - p.starts[x] > p.starts[y + 1] - p.starts[y];
    });
    const double took = clock.us();
    auto rows = copy(order);
    return {{{"sputnik", "", took}, [=] {
                 CHECK(sputnik::CudaSpmm(a->m, a->k, a->n, a->nnz, (int *)rows->p, a->val(), a->ptr(), a->idx(),
                                         a->in(), a->out(), stream));
             }, {}}};
}
#endif

#ifdef GESPMM
// Huang, Dai, Wang and Yang: GE-SpMM: General-purpose Sparse Matrix-Matrix Multiplication on GPUs for Graph Neural
// Networks, SC 2020. Its wrapper launches into peerStream, which published.sh puts in place of the default stream.
#define peerStream stream
#include "gespmm.cuh"

static const char *const peerName = "gespmm";

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

struct PublishedPeer : Peer {
    Operands operands;
    std::vector<Way> ways;

    std::vector<Algorithm> prepare(const Product &p, const std::string &precision) override {
        if (precision != "f32") throw std::runtime_error("f32 alone");
        close();
        operands = std::make_shared<Matrix>(p);
        ways = published(p, operands);
        std::vector<Algorithm> all;
        for (auto &w : ways) all.push_back(w.algorithm);
        return all;
    }

    double run(size_t algorithm, long times) override { return timed(ways[algorithm], stream, times); }

    std::vector<float> output(size_t algorithm) override {
        std::vector<float> out((size_t)operands->m * operands->n);
        CHECK(cudaMemset(operands->out(), 0xff, sizeof(float) * out.size())); // NaN shows what is not written
        ways[algorithm].launch();
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(out.data(), operands->out(), sizeof(float) * out.size(), cudaMemcpyDeviceToHost));
        return out;
    }

    void close() override { ways.clear(), operands.reset(); }
};

int main() {
    try {
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        PublishedPeer peer;
        return serve(peer, peerName, std::string(peerName) + " " COMMIT " on " + device.name, "device");
    } catch (const std::exception &e) {
        fprintf(stderr, "peer %s: %s\n", peerName, e.what());
        return 1;
    }
}
