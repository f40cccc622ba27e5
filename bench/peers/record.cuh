// Launches in a row, recorded as a CUDA graph as spmmrun's sequences are, so that what the host takes for a call
// (about 10 µs in cuBLAS and cuSPARSE) is not in the time of a short product. With PEER_CALLS=1 in the environment
// each launch is a call; so are those that cannot be recorded.

#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

class Repeated {
  public:
    // launch puts its work into the stream, which nothing else uses meanwhile.
    Repeated(cudaStream_t stream, std::function<void()> launch) : stream(stream), launch(std::move(launch)) {
        const char *calls = getenv("PEER_CALLS");
        recordable = !(calls && !strcmp(calls, "1"));
    }
    Repeated(const Repeated &) = delete;
    ~Repeated() {
        for (auto &g : graphs) cudaGraphExecDestroy(g.second);
    }

    // time returns the microseconds of one of about that many launches, or a negative number if the device fails.
    double time(long times) {
        const long each = std::min(times, mostRecorded);
        cudaGraphExec_t graph = recorded(each);
        const long replays = graph ? (times + each - 1) / each : 1, launches = graph ? replays * each : times;
        cudaEvent_t from, to;
        float ms = 0;
        bool ok = cudaEventCreate(&from) == cudaSuccess && cudaEventCreate(&to) == cudaSuccess &&
            cudaEventRecord(from, stream) == cudaSuccess;
        for (long i = 0; ok && i < (graph ? replays : launches); i++) {
            if (graph) ok = cudaGraphLaunch(graph, stream) == cudaSuccess;
            else launch();
        }
        ok = ok && cudaEventRecord(to, stream) == cudaSuccess && cudaEventSynchronize(to) == cudaSuccess &&
            cudaEventElapsedTime(&ms, from, to) == cudaSuccess;
        ok = cudaGetLastError() == cudaSuccess && ok;
        cudaEventDestroy(from), cudaEventDestroy(to);
        return ok ? ms * 1e3 / launches : -1;
    }

  private:
    static constexpr long mostRecorded = 32;

    // recorded returns a graph of that many launches, null if there can be none.
    cudaGraphExec_t recorded(long times) {
        auto known = graphs.find(times);
        if (known != graphs.end()) return known->second;
        if (!recordable) return nullptr;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        recordable = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
        if (!recordable) return nullptr;
        try {
            for (long i = 0; i < times; i++) launch();
        } catch (const std::exception &) {
            recordable = false;
        }
        recordable = cudaStreamEndCapture(stream, &graph) == cudaSuccess && recordable;
        recordable = recordable && cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess &&
            cudaGraphLaunch(exec, stream) == cudaSuccess;
        if (graph) cudaGraphDestroy(graph);
        cudaGetLastError();
        if (recordable) graphs[times] = exec;
        return recordable ? exec : nullptr;
    }

    cudaStream_t stream;
    std::function<void()> launch;
    bool recordable;
    std::map<long, cudaGraphExec_t> graphs;
};
