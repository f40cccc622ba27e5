// A peer of spmmrun bench: Eigen on the CPU, all cores.
// The Makefile here says how peers are built and measured.
//
// Algorithms are Eigen's product of a row-major sparse matrix by a row-major and by a column-major
// dense one; Eigen shares rows out over OpenMP's threads itself.

#include <Eigen/Sparse>

#include "peer.hpp"

using Sparse = Eigen::SparseMatrix<float, Eigen::RowMajor, int32_t>;
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Cols = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

struct EigenPeer : HostPeer {
    std::unique_ptr<Product> p;
    Rows b, c;
    Cols b2, c2;

    std::vector<Algorithm> prepare(const Product &product) override {
        p.reset(new Product(product));
        b = Eigen::Map<const Rows>(p->b.data(), p->k, p->n);
        b2 = b;
        c.resize(p->m, p->n), c2.resize(p->m, p->n);
        return {{"rows", ""}, {"columns", ""}};
    }

    void multiply(size_t algorithm) override {
        Eigen::Map<const Sparse> a(p->m, p->k, p->nnz, p->starts.data(), p->columns.data(), p->values.data());
        if (algorithm == 1)
            c2.noalias() = a * b2;
        else
            c.noalias() = a * b;
    }

    std::vector<float> result(size_t algorithm) override {
        if (algorithm == 1) c = c2;
        return {c.data(), c.data() + c.size()};
    }

    void close() override { p.reset(); }
};

int main() {
    char text[80];
    snprintf(text, sizeof text, "Eigen %d.%d.%d, %d threads", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
        EIGEN_MINOR_VERSION, Eigen::nbThreads());
    EigenPeer peer;
    return serve(peer, "eigen", text, "host");
}
