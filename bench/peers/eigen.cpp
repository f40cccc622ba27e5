// A peer of spmmrun bench: Eigen on the CPU, all cores. internal/benchmark/peer.go says what it reads and answers.
//
//	apt-get install libeigen3-dev
//	g++ -O3 -march=native -fopenmp -I/usr/include/eigen3 -o eigen bench/peers/eigen.cpp
//	bin/spmmrun bench --backend cpu --peer ./eigen
//
// Precision is f32. Algorithms are Eigen's product of a row-major sparse matrix by a row-major and by a column-major
// dense one; Eigen shares rows out over OpenMP's threads itself.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <Eigen/Sparse>
#ifdef _OPENMP
#include <omp.h>
#endif

using Sparse = Eigen::SparseMatrix<float, Eigen::RowMajor, int32_t>;
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Cols = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

// field returns the text of a member of a request, without quotes, "" if it is missing. Requests are flat objects.
static std::string field(const std::string &line, const std::string &name) {
    size_t at = line.find("\"" + name + "\":");
    if (at == std::string::npos) return "";
    at += name.size() + 3;
    if (line[at] != '"') return line.substr(at, line.find_first_of(",}", at) - at);
    std::string text;
    for (at++; at < line.size() && line[at] != '"'; at++) {
        if (line[at] == '\\') at++;
        text += line[at];
    }
    return text;
}

template <class T> static bool fill(FILE *f, T *to, size_t n) { return fread(to, sizeof(T), n, f) == n; }

struct Product {
    int64_t m = 0, k = 0, nnz = 0, n = 0;
    std::vector<int32_t> starts, columns;
    std::vector<float> values;
    Rows b, c;
    Cols b2, c2;

    bool read(const std::string &name) {
        std::unique_ptr<FILE, int (*)(FILE *)> f(fopen(name.c_str(), "rb"), fclose);
        int64_t size[4];
        if (!f || !fill(f.get(), size, 4)) return false;
        m = size[0], k = size[1], nnz = size[2], n = size[3];
        starts.resize(m + 1), columns.resize(nnz), values.resize(nnz), b.resize(k, n);
        if (!fill(f.get(), starts.data(), m + 1) || !fill(f.get(), columns.data(), nnz) || !fill(f.get(), values.data(), nnz)) return false;
        if (!fill(f.get(), b.data(), k * n)) return false;
        b2 = b;
        c.resize(m, n), c2.resize(m, n);
        return true;
    }

    void multiply(bool byColumns) {
        Eigen::Map<const Sparse> a(m, k, nnz, starts.data(), columns.data(), values.data());
        if (byColumns)
            c2.noalias() = a * b2;
        else
            c.noalias() = a * b;
    }
};

int main() {
    std::unique_ptr<Product> p;
    for (std::string line; std::getline(std::cin, line);) {
        std::string op = field(line, "op"), file = field(line, "file");
        bool byColumns = field(line, "algorithm") == "1";
        if (op == "hello") {
            printf("{\"name\":\"eigen\",\"description\":\"Eigen %d.%d.%d, %d threads\"}\n", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION, Eigen::nbThreads());
        } else if (op == "close") {
            p.reset();
            printf("{}\n");
        } else if (op == "prepare" && field(line, "precision") != "f32") {
            printf("{\"error\":\"f32 alone\"}\n");
        } else if (op == "prepare") {
            p.reset(new Product);
            if (p->read(file)) {
                printf("{\"algorithms\":[\"rows\",\"columns\"]}\n");
            } else {
                p.reset();
                printf("{\"error\":\"the product's file cannot be read\"}\n");
            }
        } else if (op == "run" && p) {
            long times = std::max(1l, atol(field(line, "times").c_str()));
            auto start = std::chrono::steady_clock::now();
            for (long i = 0; i < times; i++) p->multiply(byColumns);
            std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
            printf("{\"us\":%.4f,\"clock\":\"host\"}\n", took.count() / times);
        } else if (op == "output" && p) {
            p->multiply(byColumns);
            if (byColumns) p->c = p->c2;
            FILE *f = fopen(file.c_str(), "wb");
            size_t n = p->c.size();
            bool ok = f && fwrite(p->c.data(), sizeof(float), n, f) == n;
            ok = f && fclose(f) == 0 && ok;
            printf(ok ? "{}\n" : "{\"error\":\"the output cannot be written\"}\n");
        } else {
            printf("{\"error\":\"no such request now\"}\n");
        }
        fflush(stdout);
    }
}
