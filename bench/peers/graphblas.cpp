// A peer of spmmrun bench: SuiteSparse:GraphBLAS on the CPU, all cores. The Makefile here says how peers are
// built and measured.
//
// Algorithms are C = A·B by GrB_mxm, and C += A·B into a full C that was set to zero before, for which GraphBLAS has
// a kernel of its own. Both are over the semiring plus-times; matrices are held by row, B as a full one.

#include <complex>

extern "C" { // which the header does not say
#include <GraphBLAS.h>
}

#include "peer.hpp"

static void check(GrB_Info info) {
    if (info != GrB_SUCCESS) throw std::runtime_error("GraphBLAS returns " + std::to_string(info));
}

struct GraphBLASPeer : HostPeer {
    GrB_Matrix a = nullptr, b = nullptr, c = nullptr, full = nullptr;
    int64_t m = 0, n = 0;

    std::vector<Algorithm> prepare(const Product &p) override {
        close();
        m = p.m, n = p.n;
        if (m == 0 || p.k == 0 || n == 0) throw std::runtime_error("no rows or columns");
        std::vector<GrB_Index> rows(std::max(p.nnz, int64_t(1))), columns(p.columns.begin(), p.columns.end());
        columns.resize(rows.size()); // no pointer may be null
        for (int64_t i = 0; i < m; i++) std::fill(rows.begin() + p.starts[i], rows.begin() + p.starts[i + 1],
            GrB_Index(i));
        check(GrB_Matrix_new(&a, GrB_FP32, m, p.k));
        check(GrB_Matrix_new(&b, GrB_FP32, p.k, n));
        check(GrB_Matrix_new(&c, GrB_FP32, m, n));
        check(GrB_Matrix_new(&full, GrB_FP32, m, n));
        check(GrB_Matrix_build_FP32(a, rows.data(), columns.data(), p.values.data(), p.nnz, GrB_PLUS_FP32));
        void *values = malloc(p.b.size() * sizeof(float)); // which the matrix frees
        if (!values) throw std::bad_alloc();
        std::copy(p.b.begin(), p.b.end(), static_cast<float *>(values));
        check(GxB_Matrix_pack_FullR(b, &values, p.b.size() * sizeof(float), false, nullptr));
        check(GrB_Matrix_wait(a, GrB_MATERIALIZE));
        return {{"mxm", ""}, {"mxm-full", ""}};
    }

    void multiply(size_t algorithm) override {
        GrB_Matrix to = algorithm == 1 ? full : c;
        if (algorithm == 1) check(GrB_Matrix_assign_FP32(to, nullptr, nullptr, 0.0f, GrB_ALL, m, GrB_ALL, n, nullptr));
        check(GrB_mxm(to, nullptr, algorithm == 1 ? GrB_PLUS_FP32 : nullptr, GrB_PLUS_TIMES_SEMIRING_FP32, a, b,
            nullptr));
        check(GrB_Matrix_wait(to, GrB_COMPLETE));
    }

    std::vector<float> result(size_t algorithm) override {
        GrB_Matrix from = algorithm == 1 ? full : c;
        GrB_Index count = 0;
        check(GrB_Matrix_nvals(&count, from));
        std::vector<GrB_Index> rows(count), columns(count);
        std::vector<float> values(count), out(m * n, 0.0f);
        check(GrB_Matrix_extractTuples_FP32(rows.data(), columns.data(), values.data(), &count, from));
        for (GrB_Index i = 0; i < count; i++) out[rows[i] * n + columns[i]] = values[i];
        return out;
    }

    void close() override {
        for (GrB_Matrix *x : {&a, &b, &c, &full})
            if (*x) GrB_Matrix_free(x);
    }
};

int main() {
    GrB_init(GrB_NONBLOCKING);
    GxB_Global_Option_set(GxB_FORMAT, GxB_BY_ROW);
    int version[3], threads = 0;
    GxB_Global_Option_get(GxB_LIBRARY_VERSION, version);
    GxB_Global_Option_get(GxB_GLOBAL_NTHREADS, &threads);
    char text[100];
    snprintf(text, sizeof text, "SuiteSparse:GraphBLAS %d.%d.%d, %d threads", version[0], version[1], version[2],
        threads);
    GraphBLASPeer peer;
    int code = serve(peer, "graphblas", text, "host");
    peer.close();
    GrB_finalize();
    return code;
}
