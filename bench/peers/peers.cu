// What vendor libraries reach on this GPU, measured as bench measures spmmrun: random data, warm-up,
// the median of batches of launches back to back. Prints one JSON object.
//
//	nvcc -O3 -arch=native -o peers peers.cu -lcublas
//	peers gemm M K N      cuBLAS: f16 in, f32 sums and f32 out, row-major C[M×N] = A[M×K]·B[K×N]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        int status = (int)(call);                                                \
        if (status != 0) {                                                       \
            fprintf(stderr, "peers: %s: status %d\n", #call, status);            \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static const int WARMUP = 20, BATCHES = 15, BATCH = 20;

// measure returns the median of BATCHES mean times, in microseconds.
static double measure(const std::function<void()> &launch) {
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    for (int i = 0; i < WARMUP; i++) launch();
    std::vector<float> times(BATCHES);
    for (float &t : times) {
        CHECK(cudaEventRecord(from));
        for (int i = 0; i < BATCH; i++) launch();
        CHECK(cudaEventRecord(to));
        CHECK(cudaEventSynchronize(to));
        CHECK(cudaEventElapsedTime(&t, from, to));
    }
    CHECK(cudaGetLastError());
    std::sort(times.begin(), times.end());
    return times[BATCHES / 2] * 1e3 / BATCH;
}

// random fills a matrix on the device with values about a unit wide; zeros would run faster.
static __half *random_halves(size_t n, unsigned seed) {
    std::vector<__half> host(n);
    unsigned long long s = seed * 0x9e3779b97f4a7c15ull + 1;
    for (__half &x : host) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        x = __float2half((int)(s >> 40) * (2.0f / (1 << 24)) - 1);
    }
    __half *d;
    CHECK(cudaMalloc(&d, n * sizeof(__half)));
    CHECK(cudaMemcpy(d, host.data(), n * sizeof(__half), cudaMemcpyHostToDevice));
    return d;
}

static int gemm(long m, long k, long n) {
    __half *a = random_halves(m * k, 1), *b = random_halves(k * n, 2);
    float *c, one = 1, zero = 0;
    CHECK(cudaMalloc(&c, m * n * sizeof(float)));
    cublasHandle_t h;
    CHECK(cublasCreate(&h));
    // Row-major C = A·B is column-major Cᵀ = Bᵀ·Aᵀ.
    double us = measure([&] {
        CHECK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, CUDA_R_16F, n, a, CUDA_R_16F, k, &zero, c, CUDA_R_32F, n,
                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    });
    printf("{\"name\":\"cublas\",\"m\":%ld,\"k\":%ld,\"n\":%ld,\"us\":%.3f}\n", m, k, n, us);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "gemm")) {
        long m = atol(argv[2]), k = atol(argv[3]), n = atol(argv[4]);
        if (m > 0 && k > 0 && n > 0) return gemm(m, k, n);
    }
    fprintf(stderr, "usage: peers gemm M K N\n");
    return 2;
}
