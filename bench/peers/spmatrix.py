#!/usr/bin/python3
"""A peer of spmmrun bench: SciPy's sparse matrices by row, times a dense one; it runs on one core.

internal/benchmark/peer.go says which requests it reads and what it answers.
"""

import json
import sys
import time

import numpy
import scipy
import scipy.sparse


class Product:
    def __init__(self, name):
        with open(name, "rb") as f:
            m, k, nnz, n = numpy.fromfile(f, numpy.int64, 4)
            starts = numpy.fromfile(f, numpy.int32, m + 1)
            columns = numpy.fromfile(f, numpy.int32, nnz)
            values = numpy.fromfile(f, numpy.float32, nnz)
            self.a = scipy.sparse.csr_matrix((values, columns, starts), shape=(m, k))
            self.b = numpy.fromfile(f, numpy.float32, k * n).reshape(k, n)


def answer(request, product):
    """Returns the answer and what is prepared from now on."""
    op = request.get("op")
    if op == "hello":
        return {"name": "scipy", "description": f"SciPy {scipy.__version__}, 1 thread"}, product
    if op == "close":
        return {}, None
    if op == "prepare":
        if request.get("precision") != "f32":
            return {"error": "f32 alone"}, None
        return {"algorithms": ["csr"]}, Product(request["file"])
    if op == "run" and product:
        times = max(1, request.get("times", 1))
        start = time.perf_counter()
        for _ in range(times):
            product.a @ product.b
        return {"us": (time.perf_counter() - start) / times * 1e6, "clock": "host"}, product
    if op == "output" and product:
        (product.a @ product.b).astype(numpy.float32).tofile(request["file"])
        return {}, product
    return {"error": "no such request now"}, product


def main():
    product = None
    for line in sys.stdin:
        try:
            reply, product = answer(json.loads(line), product)
        except (OSError, ValueError, MemoryError) as e:
            reply = {"error": str(e)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
