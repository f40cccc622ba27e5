// A peer of spmmrun bench: oneMKL on the CPU, all cores. The Makefile here says how peers are built and measured.
//
// Algorithms are mkl_sparse_s_mm with row-major and with column-major dense matrices, after mkl_sparse_optimize for as
// many products as are measured.

#include <mkl.h>

#include "peer.hpp"

static_assert(sizeof(MKL_INT) == sizeof(int32_t), "the interface with indices of 32 bits");

static void check(sparse_status_t status) {
    if (status != SPARSE_STATUS_SUCCESS) throw std::runtime_error("MKL's status is " + std::to_string(status));
}

// transposed returns the columns of a matrix as rows.
static std::vector<float> transposed(const std::vector<float> &x, int64_t rows, int64_t cols) {
    std::vector<float> y(x.size());
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) y[j * rows + i] = x[i * cols + j];
    return y;
}

struct MKLPeer : HostPeer {
    std::unique_ptr<Product> p;
    sparse_matrix_t a[2] = {};
    std::vector<float> b2, c; // of columns; rows, or columns
    const matrix_descr general = {SPARSE_MATRIX_TYPE_GENERAL, SPARSE_FILL_MODE_LOWER, SPARSE_DIAG_NON_UNIT};

    std::vector<Algorithm> prepare(const Product &product) override {
        close();
        p.reset(new Product(product));
        std::vector<Algorithm> all{{"rows", ""}, {"columns", ""}};
        for (int i = 0; i < 2; i++) {
            auto start = std::chrono::steady_clock::now();
            check(mkl_sparse_s_create_csr(&a[i], SPARSE_INDEX_BASE_ZERO, p->m, p->k, p->starts.data(),
                                          p->starts.data() + 1, p->columns.data(), p->values.data()));
            const auto layout = i ? SPARSE_LAYOUT_COLUMN_MAJOR : SPARSE_LAYOUT_ROW_MAJOR;
            check(mkl_sparse_set_mm_hint(a[i], SPARSE_OPERATION_NON_TRANSPOSE, general, layout, p->n, 1000));
            check(mkl_sparse_optimize(a[i]));
            const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
            all[i].prepare = took.count();
        }
        b2 = transposed(p->b, p->k, p->n);
        c.assign(p->m * p->n, 0);
        return all;
    }

    void multiply(size_t algorithm) override {
        if (algorithm == 1)
            check(mkl_sparse_s_mm(SPARSE_OPERATION_NON_TRANSPOSE, 1, a[1], general, SPARSE_LAYOUT_COLUMN_MAJOR,
                                  b2.data(), p->n, p->k, 0, c.data(), p->m));
        else
            check(mkl_sparse_s_mm(SPARSE_OPERATION_NON_TRANSPOSE, 1, a[0], general, SPARSE_LAYOUT_ROW_MAJOR,
                                  p->b.data(), p->n, p->n, 0, c.data(), p->n));
    }

    std::vector<float> result(size_t algorithm) override { return algorithm == 1 ? transposed(c, p->n, p->m) : c; }

    void close() override {
        for (auto &x : a) {
            if (x) mkl_sparse_destroy(x);
            x = nullptr;
        }
        p.reset();
    }
};

int main() {
    MKLVersion v;
    mkl_get_version(&v);
    char text[100];
    snprintf(text, sizeof text, "oneMKL %d.%d.%d, %d threads", v.MajorVersion, v.MinorVersion, v.UpdateVersion,
             mkl_get_max_threads());
    MKLPeer peer;
    return serve(peer, "mkl", text, "host");
}
