// What the peers that compute on a GPU share: memory, and ways to compute a product whose launches are recorded.

#pragma once

#include <cuda_runtime.h>

#include <chrono>

#include "peer.hpp"
#include "record.cuh"

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int status = (int)(call);                                                                                      \
        if (status != 0) throw std::runtime_error(#call " returns " + std::to_string(status));                         \
    } while (0)

// Memory is device memory that is freed with it.
struct Memory {
    void *p = nullptr;
    explicit Memory(size_t bytes) { CHECK(cudaMalloc(&p, bytes + 16)); }
    Memory(const void *host, size_t bytes) : Memory(bytes) {
        CHECK(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize()); // streams that do not block do not wait for it
    }
    Memory(const Memory &) = delete;
    ~Memory() { cudaFree(p); }
};
using Shared = std::shared_ptr<Memory>;

inline Shared empty(size_t bytes) { return std::make_shared<Memory>(bytes); }
template <class T> Shared copy(const std::vector<T> &v) {
    return std::make_shared<Memory>(v.data(), v.size() * sizeof(T));
}

// Way computes the product by launch, which keeps what it needs.
struct Way {
    Algorithm algorithm;
    std::function<void()> launch;
    std::shared_ptr<Repeated> repeated;
};

// timed returns the microseconds of one of that many products back to back.
inline double timed(Way &way, cudaStream_t stream, long times) {
    if (!way.repeated) way.repeated = std::make_shared<Repeated>(stream, way.launch);
    double us = way.repeated->time(times);
    if (us < 0) throw std::runtime_error("the device failed");
    return us;
}

// Clock measures preparation in microseconds.
struct Clock {
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    double us() const {
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    }
};

// written returns the elements that a way writes to c; NaN shows what is not written.
template <class T> std::vector<T> written(const Way &way, cudaStream_t stream, T *c, size_t count) {
    std::vector<T> out(count);
    CHECK(cudaMemsetAsync(c, 0xff, sizeof(T) * count, stream));
    way.launch();
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), c, sizeof(T) * count, cudaMemcpyDeviceToHost));
    return out;
}

// servePublished serves a peer of published code, whose launches go to the stream that it makes.
template <class P> int servePublished(cudaStream_t &stream, const std::string &name, const std::string &commit) {
    try {
        cudaDeviceProp device;
        CHECK(cudaGetDeviceProperties(&device, 0));
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        P peer;
        return serve(peer, name, name + " " + commit + " on " + device.name, "device");
    } catch (const std::exception &e) {
        fprintf(stderr, "peer %s: %s\n", name.c_str(), e.what());
        return 1;
    }
}
