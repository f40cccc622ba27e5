// What the peers of spmmrun bench share: requests, answers, and the product's file. internal/benchmark/peer.go has the
// protocol. A peer derives from Peer and calls serve.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// Product is C = A·B: A of m×k in compressed rows, B of k×n and C of m×n row-major.
struct Product {
    int64_t m = 0, k = 0, nnz = 0, n = 0;
    std::vector<int32_t> starts, columns; // starts has m+1
    std::vector<float> values, b;

    explicit Product(const std::string &name) {
        std::unique_ptr<FILE, int (*)(FILE *)> f(fopen(name.c_str(), "rb"), fclose);
        int64_t size[4];
        if (!f || fread(size, sizeof *size, 4, f.get()) != 4) throw std::runtime_error("the product's file cannot be read");
        m = size[0], k = size[1], nnz = size[2], n = size[3];
        take(f.get(), starts, m + 1), take(f.get(), columns, nnz), take(f.get(), values, nnz), take(f.get(), b, k * n);
    }

  private:
    template <class T> static void take(FILE *f, std::vector<T> &to, size_t n) {
        to.resize(n);
        if (n > 0 && fread(to.data(), sizeof(T), n, f) != n) throw std::runtime_error("the product's file ends early");
    }
};

// Algorithm is one way to compute a product.
struct Algorithm {
    std::string name;
    std::string rounded; // the type that C's elements are rounded to; "" is f32, or f64 in that precision
    double prepare = 0; // microseconds that preparing A for it took, copies to the device left out
};

// Peer computes products. Its functions throw std::exception with what the user is to read.
struct Peer {
    virtual ~Peer() = default;
    // prepare takes a product in place of the last one, f32, tf32, f16, bf16 or f64 being what A and B are rounded to, and returns
    // the ways to compute it.
    virtual std::vector<Algorithm> prepare(const Product &p, const std::string &precision) = 0;
    // run computes the product that many times back to back and returns the microseconds that one took on average.
    virtual double run(size_t algorithm, long times) = 0;
    // output computes it once and returns C; output64 does in f64.
    virtual std::vector<float> output(size_t algorithm) = 0;
    virtual std::vector<double> output64(size_t) { throw std::runtime_error("no f64"); }
    // close frees what was prepared.
    virtual void close() = 0;
};

// HostPeer is a library of the CPU that multiplies in f32.
struct HostPeer : Peer {
    virtual std::vector<Algorithm> prepare(const Product &p) = 0;
    virtual void multiply(size_t algorithm) = 0;
    // result is C, row-major, after multiply.
    virtual std::vector<float> result(size_t algorithm) = 0;

    std::vector<Algorithm> prepare(const Product &p, const std::string &precision) override {
        if (precision != "f32") throw std::runtime_error("f32 alone");
        return prepare(p);
    }

    double run(size_t algorithm, long times) override {
        auto start = std::chrono::steady_clock::now();
        for (long i = 0; i < times; i++) multiply(algorithm);
        std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        return took.count() / times;
    }

    std::vector<float> output(size_t algorithm) override {
        multiply(algorithm);
        return result(algorithm);
    }
};

// field returns the text of a member of a request, without quotes, "" if it is missing. Requests are flat objects.
inline std::string field(const std::string &line, const std::string &name) {
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

inline std::string quoted(const std::string &s) {
    std::string out = "\"";
    for (char c : s) {
        if (c == '"' || c == '\\') out += '\\';
        out += (unsigned char)c < 0x20 ? ' ' : c;
    }
    return out + '"';
}

// write writes C to a file.
template <class T> void write(const std::string &file, const std::vector<T> &c) {
    FILE *f = fopen(file.c_str(), "wb");
    bool ok = f && fwrite(c.data(), sizeof(T), c.size(), f) == c.size();
    ok = f && fclose(f) == 0 && ok;
    if (!ok) throw std::runtime_error("the output cannot be written");
}

// Prepared has a product that a peer was given.
struct Prepared {
    size_t algorithms = 0;
    bool f64 = false;
};

// reply does what a request says and returns the answer.
inline std::string reply(Peer &peer, const std::string &clock, Prepared &now, const std::string &line) {
    const std::string op = field(line, "op"), file = field(line, "file");
    const size_t algorithm = strtoul(field(line, "algorithm").c_str(), nullptr, 10);
    if (op == "prepare") {
        now.algorithms = 0, now.f64 = field(line, "precision") == "f64";
        auto all = peer.prepare(Product(file), field(line, "precision"));
        now.algorithms = all.size();
        std::string names, rounded, took;
        for (auto &a : all) {
            names += (names.empty() ? "" : ",") + quoted(a.name);
            rounded += (rounded.empty() ? "" : ",") + quoted(a.rounded);
            took += (took.empty() ? "" : ",") + std::to_string(a.prepare);
        }
        return "{\"algorithms\":[" + names + "],\"rounded\":[" + rounded + "],\"prepare_us\":[" + took + "]}";
    }
    if (op == "close") {
        now.algorithms = 0;
        peer.close();
        return "{}";
    }
    if (algorithm >= now.algorithms || (op != "run" && op != "output")) throw std::runtime_error("no such request now");
    if (op == "run") {
        double us = peer.run(algorithm, std::max(1l, atol(field(line, "times").c_str())));
        char text[64];
        snprintf(text, sizeof text, "{\"us\":%.4f,\"clock\":", us);
        return text + quoted(clock) + "}";
    }
    if (now.f64) write(file, peer.output64(algorithm));
    else write(file, peer.output(algorithm));
    return "{}";
}

// serve answers requests until their end. clock is device or host: whose the times are.
inline int serve(Peer &peer, const std::string &name, const std::string &description, const std::string &clock) {
    Prepared now;
    for (std::string line; std::getline(std::cin, line);) {
        std::string answer;
        try {
            if (field(line, "op") == "hello")
                answer = "{\"name\":" + quoted(name) + ",\"description\":" + quoted(description) + "}";
            else
                answer = reply(peer, clock, now, line);
        } catch (const std::exception &e) {
            answer = "{\"error\":" + quoted(e.what()) + "}";
        }
        puts(answer.c_str());
        fflush(stdout);
    }
    return 0;
}
