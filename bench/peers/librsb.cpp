// A peer of spmmrun bench: librsb on the CPU, all cores. The Makefile here says how peers are built and measured.
//
// Algorithms are rsb_spmm with row-major and with column-major dense matrices.

#include <rsb.h>

#include "peer.hpp"

// transposed returns the columns of a matrix as rows.
static std::vector<float> transposed(const std::vector<float> &x, int64_t rows, int64_t cols) {
    std::vector<float> y(x.size());
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) y[j * rows + i] = x[i * cols + j];
    return y;
}

static void check(rsb_err_t error) {
    if (error == RSB_ERR_NO_ERROR) return;
    char text[200] = "";
    rsb_strerror_r(error, text, sizeof text);
    throw std::runtime_error(text);
}

struct RSBPeer : HostPeer {
    std::unique_ptr<Product> p;
    rsb_mtx_t *a = nullptr;
    std::vector<float> b2, c, c2; // of columns, rows, columns

    std::vector<Algorithm> prepare(const Product &product) override {
        close();
        if (product.nnz == 0) throw std::runtime_error("no entries");
        p.reset(new Product(product));
        rsb_err_t error = RSB_ERR_NO_ERROR;
        a = rsb_mtx_alloc_from_csr_const(p->values.data(), p->starts.data(), p->columns.data(), p->nnz,
            RSB_NUMERICAL_TYPE_FLOAT, p->m, p->k,
                                         RSB_DEFAULT_ROW_BLOCKING, RSB_DEFAULT_COL_BLOCKING, RSB_FLAG_NOFLAGS, &error);
        check(error);
        b2 = transposed(p->b, p->k, p->n);
        c.assign(p->m * p->n, 0), c2.assign(p->m * p->n, 0);
        return {{"rows", ""}, {"columns", ""}};
    }

    void multiply(size_t algorithm) override {
        const float one = 1, zero = 0;
        if (algorithm == 1)
            check(rsb_spmm(RSB_TRANSPOSITION_N, &one, a, p->n, RSB_FLAG_WANT_COLUMN_MAJOR_ORDER, b2.data(), p->k, &zero,
                c2.data(), p->m));
        else
            check(rsb_spmm(RSB_TRANSPOSITION_N, &one, a, p->n, RSB_FLAG_WANT_ROW_MAJOR_ORDER, p->b.data(), p->n, &zero,
                c.data(), p->n));
    }

    std::vector<float> result(size_t algorithm) override { return algorithm == 1 ? transposed(c2, p->n, p->m) : c; }

    void close() override {
        if (a) rsb_mtx_free(a);
        a = nullptr;
        p.reset();
    }
};

int main() {
    rsb_int_t threads = 0;
    check(rsb_lib_init(RSB_NULL_INIT_OPTIONS));
    rsb_lib_get_opt(RSB_IO_WANT_EXECUTING_THREADS, &threads);
    char text[80];
    snprintf(text, sizeof text, "librsb %d.%d.%d, %d threads", RSB_LIBRSB_VER / 10000, RSB_LIBRSB_VER / 100 % 100,
        RSB_LIBRSB_VER % 100, int(threads));
    RSBPeer peer;
    return serve(peer, "librsb", text, "host");
}
