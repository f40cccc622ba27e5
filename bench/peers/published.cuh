// What the peers of published graph kernels share: the matrix on the device, and the peer that serves a code's ways.
// A program includes it and defines published, peerName and peerPrecision.

#pragma once

#include <cstring>
#include <numeric>

#include "device.cuh"

// Stream is the stream that all launches go to.
static cudaStream_t stream;

// Matrix is A on the device, with B and C, or of a sampled product the pattern with X, Y and S. There is memory for
// whole windows of 16 rows of C.
struct Matrix {
    int m, k, n, nnz;
    Shared starts, columns, values, x, b, c;

    Matrix(const Product &p, size_t outputs)
        : m(p.m), k(p.k), n(p.n), nnz(p.nnz), starts(copy(p.starts)), columns(copy(p.columns)), values(copy(p.values)),
          x(copy(p.x)), b(copy(p.b)), c(empty(sizeof(float) * outputs)) {}
    const int *ptr() const { return (const int *)starts->p; }
    const int *idx() const { return (const int *)columns->p; }
    const float *val() const { return (const float *)values->p; }
    const float *left() const { return (const float *)x->p; }
    const float *in() const { return (const float *)b->p; }
    float *out() const { return (float *)c->p; }
};
using Operands = std::shared_ptr<Matrix>;

// published returns the ways of a code to compute a product.
static std::vector<Way> published(const Product &p, Operands a);
// sampled returns those to compute a sampled product, of a pattern whose values are 1.
#ifdef SAMPLED
static std::vector<Way> sampled(const Product &p, Operands a);
#else
static std::vector<Way> sampled(const Product &, Operands) { throw std::runtime_error("no sampled products"); }
#endif
extern const char *const peerName, *const peerPrecision;

// toTF32 rounds to the nearest number of tf32, ties to even, so that matrix units need not cut bits off.
static void toTF32(std::vector<float> &all) {
    for (float &x : all) {
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if ((bits & 0x7f800000) == 0x7f800000) continue; // infinite, or no number
        bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
        memcpy(&x, &bits, sizeof bits);
    }
}

struct PublishedPeer : Peer {
    Operands operands;
    std::vector<Way> ways;
    size_t outputs = 0;

    std::vector<Algorithm> prepare(const Product &given, const std::string &precision) override {
        Product p = given;
        if (precision == "tf32") toTF32(p.values), toTF32(p.b);
        return begin(p, precision, p.m * p.n, (p.m + 15) / 16 * 16 * p.n, published);
    }

    std::vector<Algorithm> sample(const Product &given, const std::string &precision) override {
        Product p = given;
        p.values.assign(p.nnz, 1);
        return begin(p, precision, p.nnz, p.nnz, sampled);
    }

    // begin takes a product in place of the last one. It has that many outputs, in memory for `room`.
    std::vector<Algorithm> begin(const Product &p, const std::string &precision, size_t count, size_t room,
                                 std::vector<Way> (*all_ways)(const Product &, Operands)) {
        if (precision != peerPrecision) throw std::runtime_error(std::string(peerPrecision) + " alone");
        close();
        operands = std::make_shared<Matrix>(p, room), outputs = count;
        ways = all_ways(p, operands);
        std::vector<Algorithm> all;
        for (auto &w : ways) all.push_back(w.algorithm);
        return all;
    }

    double run(size_t algorithm, long times) override { return timed(ways[algorithm], stream, times); }

    std::vector<float> output(size_t algorithm) override {
        return written(ways[algorithm], stream, operands->out(), outputs);
    }

    void close() override { ways.clear(), operands.reset(); }
};

int main() { return servePublished<PublishedPeer>(stream, peerName, COMMIT); }
