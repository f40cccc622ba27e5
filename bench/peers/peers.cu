// What vendor libraries reach on this GPU, measured as bench measures spmmrun: random data, warm-up,
// the median of batches of launches back to back, recorded as a CUDA graph (PEER_CALLS=1: called one by one). Prints a JSON object for each product.
//
//	nvcc -O3 -arch=native -o peers peers.cu -lcublas -lcusparse [-DLT -lcusparseLt]
//	peers gemm M K N…        cuBLAS: f16 in, f32 sums and f32 out, row-major C[M×N] = A[M×K]·B[K×N]
//	peers 24 M K N…          cuSPARSELt, A being 2:4, C in f16 (it has no f32 here); its own search picks
//	                         the algorithm
//	peers csr N TYPE FILE…   cuSPARSE, the best of its three algorithms for CSR, where N is 1 of those for vectors too. TYPE is f32,
//	                         f16 (sums and C in f32) or f64. A file has rows, columns, entries (64 bits), row starts, columns (32
//	                         bits); no values

#include <cstdio>
#include <vector>

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cusparse.h>
#ifdef LT
#include <cusparseLt.h>
#endif

#include "record.cuh"

#define CHECK(call)                                                              \
    do {                                                                         \
        int status = (int)(call);                                                \
        if (status != 0) {                                                       \
            fprintf(stderr, "peers: %s: status %d\n", #call, status);            \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static const int WARMUP = 20, BATCHES = 15, BATCH = 20;

static cudaStream_t stream;

// measure returns the median of BATCHES mean times, in microseconds, of what launch puts into the stream.
static double measure(const std::function<void()> &launch) {
    for (int i = 0; i < WARMUP; i++) launch();
    CHECK(cudaStreamSynchronize(stream));
    Repeated repeated(stream, launch);
    std::vector<double> times(BATCHES);
    for (double &t : times) CHECK((t = repeated.time(BATCH)) < 0);
    std::sort(times.begin(), times.end());
    return times[BATCHES / 2];
}

// uniform returns the next of a sequence of values about a unit wide; zeros would run faster.
static float uniform(unsigned long long &s) {
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    return (int)(s >> 40) * (2.0f / (1 << 24)) - 1;
}

template <class T> static T *on_device(const std::vector<T> &host) {
    T *d;
    CHECK(cudaMalloc(&d, host.size() * sizeof(T) + 16));
    CHECK(cudaMemcpy(d, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return d;
}

// random fills a matrix on the device.
template <class T> static T *random(size_t n, unsigned seed) {
    std::vector<T> host(n);
    unsigned long long s = seed * 0x9e3779b97f4a7c15ull + 1;
    for (T &x : host) x = (T)uniform(s);
    return on_device(host);
}

static float *zeros(size_t n) {
    float *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    CHECK(cudaMemset(d, 0, n * sizeof(float)));
    return d;
}

static void print(const char *name, long m, long k, long n, double us) {
    printf("{\"name\":\"%s\",\"m\":%ld,\"k\":%ld,\"n\":%ld,\"us\":%.3f}\n", name, m, k, n, us);
}

static int gemm(long m, long k, const std::vector<long> &columns) {
    __half *a = random<__half>(m * k, 1);
    float one = 1, zero = 0;
    cublasHandle_t h;
    CHECK(cublasCreate(&h));
    CHECK(cublasSetStream(h, stream));
    for (long n : columns) {
        __half *b = random<__half>(k * n, 2);
        float *c = zeros(m * n);
        // Row-major C = A·B is column-major Cᵀ = Bᵀ·Aᵀ.
        print("cublas", m, k, n, measure([&] {
            CHECK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, CUDA_R_16F, n, a, CUDA_R_16F, k, &zero, c, CUDA_R_32F, n,
                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
        }));
        CHECK(cudaFree(b));
        CHECK(cudaFree(c));
    }
    return 0;
}

static int sparse24(long m, long k, long n) {
#ifdef LT
    std::vector<__half> host(m * k);
    unsigned long long s = 7;
    for (long i = 0; i + 4 <= m * k; i += 4) { // k is a multiple of 4
        unsigned first = s >> 40 & 3, second = (first + 1 + (s >> 50) % 3) & 3;
        host[i + first] = uniform(s);
        host[i + second] = uniform(s);
    }
    __half *a = on_device(host), *b = random<__half>(k * n, 2);
    float *c = zeros(m * n), one = 1, zero = 0;
    cusparseLtHandle_t h;
    cusparseLtMatDescriptor_t da, db, dc;
    cusparseLtMatmulDescriptor_t d;
    cusparseLtMatmulAlgSelection_t alg;
    cusparseLtMatmulPlan_t plan;
    const auto no = CUSPARSE_OPERATION_NON_TRANSPOSE;
    CHECK(cusparseLtInit(&h));
    CHECK(cusparseLtStructuredDescriptorInit(&h, &da, m, k, k, 16, CUDA_R_16F, CUSPARSE_ORDER_ROW, CUSPARSELT_SPARSITY_50_PERCENT));
    CHECK(cusparseLtDenseDescriptorInit(&h, &db, k, n, n, 16, CUDA_R_16F, CUSPARSE_ORDER_ROW));
    CHECK(cusparseLtDenseDescriptorInit(&h, &dc, m, n, n, 16, CUDA_R_16F, CUSPARSE_ORDER_ROW));
    CHECK(cusparseLtMatmulDescriptorInit(&h, &d, no, no, &da, &db, &dc, &dc, CUSPARSE_COMPUTE_32F));
    CHECK(cusparseLtMatmulAlgSelectionInit(&h, &alg, &d, CUSPARSELT_MATMUL_ALG_DEFAULT));
    CHECK(cusparseLtMatmulPlanInit(&h, &plan, &d, &alg));
    size_t size, temporary, work;
    CHECK(cusparseLtSpMMACompressedSize(&h, &plan, &size, &temporary));
    void *packed = zeros(size / 4 + 4), *space = zeros(temporary / 4 + 4);
    CHECK(cusparseLtSpMMACompress(&h, &plan, a, packed, space, 0));
    CHECK(cusparseLtMatmulSearch(&h, &plan, &one, packed, b, &zero, c, c, nullptr, nullptr, 0));
    CHECK(cusparseLtMatmulGetWorkspace(&h, &plan, &work));
    void *workspace = zeros(work / 4 + 4);
    print("cusparselt", m, k, n, measure([&] { CHECK(cusparseLtMatmul(&h, &plan, &one, packed, b, &zero, c, c, workspace, &stream, 1)); }));
    return 0;
#else
    fprintf(stderr, "peers: built without cuSPARSELt\n");
    return 1;
#endif
}

template <class T> static std::vector<T> read(FILE *f, size_t n) {
    std::vector<T> v(n);
    if (fread(v.data(), sizeof(T), n, f) != n) {
        fprintf(stderr, "peers: the file ends early\n");
        exit(1);
    }
    return v;
}

// csr measures a product of elements of T, with sums and C of S.
template <class T, class S> static int csr(const char *file, long n, cudaDataType type, cudaDataType sums) {
    FILE *f = fopen(file, "rb");
    if (!f) {
        perror(file);
        return 1;
    }
    auto size = read<long long>(f, 3);
    long m = size[0], k = size[1], nnz = size[2];
    int *rows = on_device(read<int>(f, m + 1)), *cols = on_device(read<int>(f, nnz));
    T *a = random<T>(nnz, 1), *b = random<T>(k * n, 2);
    float *c = zeros(m * n * (sizeof(S) / 4));
    S one = 1, zero = 0;
    fclose(f);
    cusparseHandle_t h;
    cusparseSpMatDescr_t da;
    cusparseDnMatDescr_t db, dc;
    const auto no = CUSPARSE_OPERATION_NON_TRANSPOSE;
    CHECK(cusparseCreate(&h));
    CHECK(cusparseSetStream(h, stream));
    CHECK(cusparseCreateCsr(&da, m, k, nnz, rows, cols, a, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type));
    CHECK(cusparseCreateDnMat(&db, k, n, n, b, type, CUSPARSE_ORDER_ROW));
    CHECK(cusparseCreateDnMat(&dc, m, n, n, c, sums, CUSPARSE_ORDER_ROW));
    double best = 0;
    for (auto alg : {CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3}) {
        size_t work;
        if (cusparseSpMM_bufferSize(h, no, no, &one, da, db, &zero, dc, sums, alg, &work)) continue; // not for this type
        void *space = zeros(work / 4 + 4);
        cusparseSpMM_preprocess(h, no, no, &one, da, db, &zero, dc, sums, alg, space);
        auto launch = [&] { return cusparseSpMM(h, no, no, &one, da, db, &zero, dc, sums, alg, space); };
        if (launch()) continue;
        double us = measure([&] { CHECK(launch()); });
        if (best == 0 || us < best) best = us;
    }
    cusparseDnVecDescr_t vb, vc;
    CHECK(cusparseCreateDnVec(&vb, k, b, type));
    CHECK(cusparseCreateDnVec(&vc, m, c, sums));
    for (auto alg : {CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2}) {
        size_t work;
        if (n > 1 || cusparseSpMV_bufferSize(h, no, &one, da, vb, &zero, vc, sums, alg, &work)) continue;
        void *space = zeros(work / 4 + 4);
        cusparseSpMV_preprocess(h, no, &one, da, vb, &zero, vc, sums, alg, space);
        auto launch = [&] { return cusparseSpMV(h, no, &one, da, vb, &zero, vc, sums, alg, space); };
        if (launch()) continue;
        double us = measure([&] { CHECK(launch()); });
        if (best == 0 || us < best) best = us;
    }
    if (best == 0) {
        fprintf(stderr, "peers: cuSPARSE has no algorithm for this\n");
        return 1;
    }
    print("cusparse", m, k, n, best);
    for (void *d : {(void *)rows, (void *)cols, (void *)a, (void *)b, (void *)c}) CHECK(cudaFree(d));
    CHECK(cusparseDestroy(h));
    return 0;
}

int main(int argc, char **argv) {
    auto is = [&](const char *name, int args) { return argc >= args && !strcmp(argv[1], name); };
    auto number = [&](int i) { return atol(argv[i]); };
    CHECK(cudaStreamCreate(&stream));
    if ((is("gemm", 5) || (is("24", 5) && number(3) % 4 == 0)) && number(2) > 0 && number(3) > 0 && number(4) > 0) {
        std::vector<long> columns;
        for (int i = 4; i < argc && number(i) > 0; i++) columns.push_back(number(i));
        if (is("gemm", 5)) return gemm(number(2), number(3), columns);
        int bad = 0;
        for (long n : columns) bad = bad ? bad : sparse24(number(2), number(3), n);
        return bad;
    }
    if (is("csr", 5) && number(2) > 0 && (!strcmp(argv[3], "f32") || !strcmp(argv[3], "f16") || !strcmp(argv[3], "f64"))) {
        int bad = 0;
        for (int i = 4; i < argc; i++)
            bad |= !strcmp(argv[3], "f32")   ? csr<float, float>(argv[i], number(2), CUDA_R_32F, CUDA_R_32F)
                   : !strcmp(argv[3], "f64") ? csr<double, double>(argv[i], number(2), CUDA_R_64F, CUDA_R_64F)
                                             : csr<__half, float>(argv[i], number(2), CUDA_R_16F, CUDA_R_32F);
        return bad;
    }
    fprintf(stderr, "usage: peers gemm|24 M K N… (24: K a multiple of 4), or peers csr N f32|f16|f64 FILE…\n");
    return 2;
}
