// A peer of spmmrun bench: NVIDIA's cuSPARSE, cuBLAS (A with its zeros, as A·B and as X·Aᵀ) and cuSPARSELt (where A is
// 2:4 and f16) on the first GPU. It samples products, too, by cuSPARSE.
//
//	make -C bench/peers cuda        # LT= without cuSPARSELt
//	bin/spmmrun bench --backend cuda --peer bin/peers/cuda
//
// Sums are of f32, or of f64 in that precision. In tf32 cuBLAS rounds operands itself, and cuSPARSE, which has no
// such product, computes in f32. cuSPARSELt writes C in f16 and picks its kernel by its own search. Launches are
// recorded as a CUDA graph, with PEER_CALLS=1 they are calls.

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cusparse.h>
#ifdef LT
#include <cusparseLt.h>
#endif

#include <cstring>

#include "device.cuh"

// rounded returns values on the device, as type has them.
static Shared rounded(const std::vector<float> &v, cudaDataType type) {
    if (type == CUDA_R_32F) return copy(v);
    if (type == CUDA_R_64F) return copy(std::vector<double>(v.begin(), v.end()));
    std::vector<uint16_t> out(v.size());
    for (size_t i = 0; i < v.size(); i++) {
        __half h = __float2half(v[i]);
        __nv_bfloat16 b = __float2bfloat16(v[i]);
        memcpy(&out[i], type == CUDA_R_16F ? (void *)&h : (void *)&b, 2);
    }
    return copy(out);
}

static cudaDataType typeOf(const std::string &precision) {
    return precision == "f16" ? CUDA_R_16F
           : precision == "bf16" ? CUDA_R_16BF
           : precision == "f64" ? CUDA_R_64F : CUDA_R_32F;
}

// LINEAR is Y = X·Aᵀ as a network's linear layer computes it: X, Bᵀ, and Y are row-major and of A's type of 16 bits.
static const char *const LINEAR = "cublas linear";

struct CUDAPeer : Peer {
    cublasHandle_t blas;
    cusparseHandle_t sparse;
    cudaStream_t stream;
    int64_t m = 0, n = 0;
    std::vector<Way> ways;
    Shared b, c;
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    const void *one = &one32, *zero = &zero32; // of the type of sums
    cudaDataType sums = CUDA_R_32F;

    CUDAPeer() {
        CHECK(cublasCreate(&blas));
        CHECK(cusparseCreate(&sparse));
        CHECK(cudaStreamCreate(&stream));
        CHECK(cublasSetStream(blas, stream));
        CHECK(cusparseSetStream(sparse, stream));
    }

    std::vector<Algorithm> prepare(const Product &p, const std::string &precision) override {
        const cudaDataType type = begin(precision, p.m, p.n);
        b = rounded(p.b, type);
        addSparse(p, type);
        if (n == 1) addVector(p, type);
        addDense(p, type, precision == "tf32");
        if (type == CUDA_R_16F || type == CUDA_R_16BF) addLinear(p, type, precision);
#ifdef LT
        if (type == CUDA_R_16F) addStructured(p);
#endif
        return algorithms();
    }

    std::vector<Algorithm> sample(const Product &p, const std::string &precision) override {
        const cudaDataType type = begin(precision, 1, p.nnz);
        b = rounded(p.b, type);
        addSampled(p, type);
        return algorithms();
    }

    // begin takes a product of m×n outputs in place of the last one, and returns the type of its operands.
    cudaDataType begin(const std::string &precision, int64_t rows, int64_t cols) {
        close();
        const cudaDataType type = typeOf(precision);
        const bool wide = type == CUDA_R_64F;
        sums = wide ? CUDA_R_64F : CUDA_R_32F;
        one = wide ? (const void *)&one64 : &one32, zero = wide ? (const void *)&zero64 : &zero32;
        m = rows, n = cols, c = empty((wide ? sizeof(double) : sizeof(float)) * m * n);
        return type;
    }

    std::vector<Algorithm> algorithms() const {
        std::vector<Algorithm> all;
        for (auto &w : ways) all.push_back(w.algorithm);
        return all;
    }

    double run(size_t algorithm, long times) override { return timed(ways[algorithm], stream, times); }

    std::vector<float> output(size_t algorithm) override {
        ways[algorithm].launch();
        std::vector<float> out(m * n);
        const Algorithm &x = ways[algorithm].algorithm;
        if (x.rounded != "") {
            std::vector<uint16_t> half(m * n);
            CHECK(cudaMemcpy(half.data(), c->p, 2 * half.size(), cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < half.size(); i++) {
                const uint16_t word = half[x.name == LINEAR ? i % n * m + i / n : i];
                __half h;
                __nv_bfloat16 b;
                memcpy(&h, &word, 2), memcpy(&b, &word, 2);
                out[i] = x.rounded == "f16" ? __half2float(h) : __bfloat162float(b);
            }
        } else {
            CHECK(cudaMemcpy(out.data(), c->p, sizeof(float) * out.size(), cudaMemcpyDeviceToHost));
        }
        return out;
    }

    std::vector<double> output64(size_t algorithm) override {
        ways[algorithm].launch();
        std::vector<double> out(m * n);
        CHECK(cudaMemcpy(out.data(), c->p, sizeof(double) * out.size(), cudaMemcpyDeviceToHost));
        return out;
    }

    void close() override { ways.clear(), b.reset(), c.reset(); }

    void addSparse(const Product &p, cudaDataType type) {
        auto starts = copy(p.starts), columns = copy(p.columns), values = rounded(p.values, type);
        struct Matrices {
            cusparseSpMatDescr_t a = nullptr;
            cusparseDnMatDescr_t b = nullptr, c = nullptr;
            ~Matrices() { cusparseDestroySpMat(a), cusparseDestroyDnMat(b), cusparseDestroyDnMat(c); }
        };
        auto x = std::make_shared<Matrices>();
        const auto no = CUSPARSE_OPERATION_NON_TRANSPOSE;
        CHECK(cusparseCreateCsr(&x->a, m, p.k, p.nnz, starts->p, columns->p, values->p, CUSPARSE_INDEX_32I,
            CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_BASE_ZERO, type));
        CHECK(cusparseCreateDnMat(&x->b, p.k, n, n, b->p, type, CUSPARSE_ORDER_ROW));
        CHECK(cusparseCreateDnMat(&x->c, m, n, n, c->p, sums, CUSPARSE_ORDER_ROW));
        const struct {
            cusparseSpMMAlg_t id;
            const char *name;
        } all[] = {{CUSPARSE_SPMM_CSR_ALG1, "cusparse csr 1"}, {CUSPARSE_SPMM_CSR_ALG2, "cusparse csr 2"},
            {CUSPARSE_SPMM_CSR_ALG3, "cusparse csr 3"}};
        for (auto &a : all) {
            size_t bytes = 0;
            // not for this type
            if (cusparseSpMM_bufferSize(sparse, no, no, one, x->a, x->b, zero, x->c, sums, a.id, &bytes)) continue;
            Shared work = empty(bytes);
            if (cusparseSpMM_preprocess(sparse, no, no, one, x->a, x->b, zero, x->c, sums, a.id, work->p)) continue;
            auto launch = [=] {
                CHECK(cusparseSpMM(sparse, no, no, one, x->a, x->b, zero, x->c, sums, a.id, work->p));
            };
            try {
                launch();
            } catch (const std::exception &) {
                continue;
            }
            ways.push_back({{a.name, ""}, [launch, starts, columns, values] { launch(); }, {}});
        }
    }

    // addSampled writes the values of a matrix that has the pattern.
    void addSampled(const Product &p, cudaDataType type) {
        auto starts = copy(p.starts), columns = copy(p.columns), x = rounded(p.x, type);
        struct Matrices {
            cusparseDnMatDescr_t x = nullptr, y = nullptr;
            cusparseSpMatDescr_t s = nullptr;
            ~Matrices() { cusparseDestroyDnMat(x), cusparseDestroyDnMat(y), cusparseDestroySpMat(s); }
        };
        auto a = std::make_shared<Matrices>();
        const auto no = CUSPARSE_OPERATION_NON_TRANSPOSE, yes = CUSPARSE_OPERATION_TRANSPOSE;
        const auto id = CUSPARSE_SDDMM_ALG_DEFAULT;
        CHECK(cusparseCreateDnMat(&a->x, p.m, p.n, p.n, x->p, type, CUSPARSE_ORDER_ROW));
        CHECK(cusparseCreateDnMat(&a->y, p.k, p.n, p.n, b->p, type, CUSPARSE_ORDER_ROW));
        CHECK(cusparseCreateCsr(&a->s, p.m, p.k, p.nnz, starts->p, columns->p, c->p, CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, sums));
        size_t bytes = 0;
        CHECK(cusparseSDDMM_bufferSize(sparse, no, yes, one, a->x, a->y, zero, a->s, sums, id, &bytes));
        Shared work = empty(bytes);
        CHECK(cusparseSDDMM_preprocess(sparse, no, yes, one, a->x, a->y, zero, a->s, sums, id, work->p));
        ways.push_back({{"cusparse sddmm", ""}, [=] {
                            (void)starts, (void)columns, (void)x; // which the matrices lie in
                            CHECK(cusparseSDDMM(sparse, no, yes, one, a->x, a->y, zero, a->s, sums, id, work->p));
                        }, {}});
    }

    // addVector takes B and C of one column for vectors.
    void addVector(const Product &p, cudaDataType type) {
        auto starts = copy(p.starts), columns = copy(p.columns), values = rounded(p.values, type);
        struct Operands {
            cusparseSpMatDescr_t a = nullptr;
            cusparseDnVecDescr_t b = nullptr, c = nullptr;
            ~Operands() { cusparseDestroySpMat(a), cusparseDestroyDnVec(b), cusparseDestroyDnVec(c); }
        };
        auto x = std::make_shared<Operands>();
        const auto no = CUSPARSE_OPERATION_NON_TRANSPOSE;
        CHECK(cusparseCreateCsr(&x->a, m, p.k, p.nnz, starts->p, columns->p, values->p, CUSPARSE_INDEX_32I,
            CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_BASE_ZERO, type));
        CHECK(cusparseCreateDnVec(&x->b, p.k, b->p, type));
        CHECK(cusparseCreateDnVec(&x->c, m, c->p, sums));
        const struct {
            cusparseSpMVAlg_t id;
            const char *name;
        } all[] = {{CUSPARSE_SPMV_CSR_ALG1, "cusparse spmv 1"}, {CUSPARSE_SPMV_CSR_ALG2, "cusparse spmv 2"}};
        for (auto &a : all) {
            size_t bytes = 0;
            // not for this type
            if (cusparseSpMV_bufferSize(sparse, no, one, x->a, x->b, zero, x->c, sums, a.id, &bytes)) continue;
            Shared work = empty(bytes);
            if (cusparseSpMV_preprocess(sparse, no, one, x->a, x->b, zero, x->c, sums, a.id, work->p)) continue;
            auto launch = [=] { CHECK(cusparseSpMV(sparse, no, one, x->a, x->b, zero, x->c, sums, a.id, work->p)); };
            try {
                launch();
            } catch (const std::exception &) {
                continue;
            }
            ways.push_back({{a.name, ""}, [launch, starts, columns, values] { launch(); }, {}});
        }
    }

    // addDense multiplies by A with its zeros, where that fits and A has an entry in 64.
    void addDense(const Product &p, cudaDataType type, bool tf32) {
        size_t elements = (size_t)m * p.k, free = 0, total = 0;
        CHECK(cudaMemGetInfo(&free, &total));
        if (p.values.size() < elements / 64) return;
        if (elements > (size_t(1) << 31) || elements * (type == CUDA_R_64F ? 8 : 4) > free / 2) return;
        auto full = std::make_shared<std::vector<float>>(expanded(p));
        auto a = rounded(*full, type);
        const auto compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                             : type == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
        const int rows = m, inner = p.k, cols = n;
        // Row-major C = A·B is column-major Cᵀ = Bᵀ·Aᵀ.
        ways.push_back({{"cublas dense", ""}, [=] {
                            CHECK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, cols, rows, inner, one, b->p, type, cols,
                                a->p, type, inner, zero,
                                               c->p, sums, cols, compute, CUBLAS_GEMM_DEFAULT));
                        }, {}});
    }

    void addLinear(const Product &p, cudaDataType type, const std::string &precision) {
        if ((size_t)m * p.k > (size_t(1) << 31)) return;
        std::vector<float> turned(p.b.size());
        for (int64_t i = 0; i < p.k; i++)
            for (int64_t j = 0; j < n; j++) turned[j * p.k + i] = p.b[i * n + j];
        auto a = rounded(expanded(p), type), x = rounded(turned, type);
        const int rows = m, inner = p.k, cols = n;
        ways.push_back({{LINEAR, precision}, [=] {
                            CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, rows, cols, inner, one, a->p, type,
                                inner, x->p, type, inner, zero, c->p, type, rows, CUBLAS_COMPUTE_32F,
                                CUBLAS_GEMM_DEFAULT));
                        }, {}});
    }

    static std::vector<float> expanded(const Product &p) {
        std::vector<float> full((size_t)p.m * p.k);
        for (int64_t i = 0; i < p.m; i++)
            for (int32_t e = p.starts[i]; e < p.starts[i + 1]; e++) full[i * p.k + p.columns[e]] = p.values[e];
        return full;
    }

#ifdef LT
    // addStructured takes a matrix with at most two nonzeros in four neighbours.
    void addStructured(const Product &p) {
        const int64_t k = p.k;
        if (k % 16 != 0 || m % 16 != 0 || n % 8 != 0 || (size_t)m * k > (size_t(1) << 31)) return;
        for (int64_t i = 0; i < m; i++) {
            int32_t group = -1, many = 0;
            for (int32_t e = p.starts[i]; e < p.starts[i + 1]; e++) {
                many = p.columns[e] / 4 == group ? many + 1 : 1;
                group = p.columns[e] / 4;
                if (many > 2) return;
            }
        }
        auto a = rounded(expanded(p), CUDA_R_16F);
        const auto no = CUSPARSE_OPERATION_NON_TRANSPOSE;
        struct Plan {
            cusparseLtHandle_t h;
            cusparseLtMatDescriptor_t da, db, dc;
            cusparseLtMatmulDescriptor_t d;
            cusparseLtMatmulAlgSelection_t alg;
            cusparseLtMatmulPlan_t plan;
        };
        auto x = std::make_shared<Plan>();
        CHECK(cusparseLtInit(&x->h));
        CHECK(cusparseLtStructuredDescriptorInit(&x->h, &x->da, m, k, k, 16, CUDA_R_16F, CUSPARSE_ORDER_ROW,
            CUSPARSELT_SPARSITY_50_PERCENT));
        CHECK(cusparseLtDenseDescriptorInit(&x->h, &x->db, k, n, n, 16, CUDA_R_16F, CUSPARSE_ORDER_ROW));
        CHECK(cusparseLtDenseDescriptorInit(&x->h, &x->dc, m, n, n, 16, CUDA_R_16F, CUSPARSE_ORDER_ROW));
        CHECK(cusparseLtMatmulDescriptorInit(&x->h, &x->d, no, no, &x->da, &x->db, &x->dc, &x->dc,
            CUSPARSE_COMPUTE_32F));
        CHECK(cusparseLtMatmulAlgSelectionInit(&x->h, &x->alg, &x->d, CUSPARSELT_MATMUL_ALG_DEFAULT));
        CHECK(cusparseLtMatmulPlanInit(&x->h, &x->plan, &x->d, &x->alg));
        size_t bytes, temporary, work;
        CHECK(cusparseLtSpMMACompressedSize(&x->h, &x->plan, &bytes, &temporary));
        Shared packed = empty(bytes), space = empty(temporary);
        CHECK(cusparseLtSpMMACompress(&x->h, &x->plan, a->p, packed->p, space->p, 0));
        CHECK(cusparseLtMatmulSearch(&x->h, &x->plan, one, packed->p, b->p, zero, c->p, c->p, nullptr, nullptr, 0));
        CHECK(cusparseLtMatmulGetWorkspace(&x->h, &x->plan, &work));
        Shared workspace = empty(work);
        ways.push_back({{"cusparselt 2:4", "f16"}, [=, to = stream]() mutable {
                            CHECK(cusparseLtMatmul(&x->h, &x->plan, one, packed->p, b->p, zero, c->p, c->p,
                                workspace->p, &to, 1));
                        }, {}});
    }
#endif
};

int main() {
    try {
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        CUDAPeer peer;
        int version;
        CHECK(cusparseGetVersion(peer.sparse, &version));
        return serve(peer, "nvidia", "cuSPARSE " + std::to_string(version) + ", cuBLAS on " + device.name, "device");
    } catch (const std::exception &e) {
        fprintf(stderr, "peer cuda: %s\n", e.what());
        return 1;
    }
}
