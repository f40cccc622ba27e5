"""The library inside a process: memory over many calls, exceptions in the middle, signals, fork, threads at the end."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import spmm


def child(code, *options):
    """A new process of Python, in which Ctrl-C is not ignored, as it is in background jobs of a shell."""
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=120,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def prints(code, *options):
    """What a new process prints, which ends without an error."""
    done = child(code, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def resident():
    """Bytes of the process in memory."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


A = sp.random(300, 200, 0.1, "csr", np.float32, 1)
ENOUGH = 16 << 20  # bytes of Python's and Go's own that need not be given back


def flat(f, calls=10_000):
    """Calls f, and finds memory flat: if each call lost what it makes, that would be more than ENOUGH."""
    for _ in range(calls // 10):
        f()
    before = resident()
    for _ in range(calls):
        f()
    assert resident() - before < ENOUGH


def test_memory_of_products():
    plan, b, out = spmm.prepare(A, "cpu"), np.ones((200, 16), np.float32), np.empty((300, 16), np.float32)
    bias = np.ones(300, np.float32)
    flat(lambda: plan(b, bias=bias, activation="relu"))
    flat(lambda: plan(b, out=out, beta=0.5))


def test_memory_of_values_and_samples():
    plan, x, y = spmm.prepare(A, "cpu"), np.ones((300, 4), np.float32), np.ones((200, 4), np.float32)
    flat(lambda: plan.set_values(A.data), 2000)
    flat(lambda: plan.sample(x, y), 2000)


def test_memory_of_plans():
    flat(lambda: spmm.prepare(A, "cpu", format="csr"), 1000)
    d = spmm.open("cpu")
    flat(lambda: spmm.Tensor(d, (300, 16)), 2000)


def test_memory_of_errors():
    plan, bad = spmm.prepare(A, "cpu"), np.ones((201, 4), np.float32)
    broken = sp.csr_matrix(A)
    broken.indices = broken.indices[::-1].copy()
    broken.has_canonical_format = True

    def fail():
        for f in (lambda: plan @ bad, lambda: spmm.prepare(broken, "cpu")):
            with pytest.raises(ValueError):
                f()

    flat(fail, 2000)


class Stop(Exception):
    """Raised by what the library asks of the caller's objects."""


class Refusing:
    """An array whose memory nobody may have."""

    shape = (200, 4)

    @property
    def __array_interface__(self):
        raise Stop


class Sparse:
    """A matrix that fails when it is half read."""

    shape, format, has_canonical_format = (300, 200), "csr", True
    indptr, data = A.indptr, A.data

    def tocsr(self):
        return self

    @property
    def indices(self):
        raise Stop


def test_exceptions_in_the_middle():
    plan, b = spmm.prepare(A, "cpu"), np.ones((200, 4), np.float32)
    out = np.full((300, 4), 7, np.float32)
    for _ in range(3):
        for f in (lambda: plan(Refusing(), out=out), lambda: spmm.prepare(Sparse(), "cpu"),
                  lambda: plan(b, out=out, bias=Refusing())):
            with pytest.raises(Stop):
                f()
        assert (out == 7).all()
        assert np.abs(plan @ b - A @ b).max() < 1e-5


def test_signal_handlers_of_the_host():
    """Those that Python had before, and those that it sets later, are called; the process goes on."""
    assert prints("""
import os, signal, numpy
got = []
signal.signal(signal.SIGUSR1, lambda *a: got.append("before"))
import spmm
p = spmm.prepare(numpy.eye(30), "cpu")
signal.signal(signal.SIGTERM, lambda *a: got.append("after"))
for s in (signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR1):
    os.kill(os.getpid(), s)
    p @ numpy.ones((30, 2))
print(got, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
""") == "['before', 'after', 'before'] True\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGABRT", "SIGSEGV"])
def test_signals_end_the_process(name):
    """As they do without the library."""
    done = child(f"""
import os, signal, numpy, spmm
spmm.prepare(numpy.eye(3), "cpu")
os.kill(os.getpid(), signal.{name})
""")
    assert done.returncode == -getattr(signal, name)


def test_keyboard_interrupt_in_a_thread():
    """The main thread gets it while another one multiplies, whose product is not lost."""
    assert prints("""
import os, signal, threading, time, numpy, spmm
p, done = spmm.prepare(numpy.eye(300), "cpu"), []
def work():
    for _ in range(200):
        done.append(float((p @ numpy.ones(300)).sum()))
t = threading.Thread(target=work)
t.start()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    t.join()
    print(len(done), set(done))
""") == "200 {300.0}\n"


def test_multiprocessing():
    """By spawn children have the library; by fork each call is refused, and the child ends."""
    assert prints("""
import multiprocessing, numpy, spmm
d = spmm.open("cpu")
def work(queue):
    try:
        spmm.prepare(numpy.eye(3), d)
    except spmm.Error as e:
        queue.put("spawn" in str(e))
if __name__ == "__main__":
    m = multiprocessing.get_context("fork")
    q = m.SimpleQueue()
    p = m.Process(target=work, args=(q,))
    p.start()
    print(q.get())
    p.join()
    print(p.exitcode)
""") == "True\n0\n"


def test_unload():
    """dlclose leaves the library where it is."""
    assert prints("""
import _ctypes, numpy, spmm
from spmm import _lib
p = spmm.prepare(numpy.eye(3), "cpu")
for _ in range(3):
    _ctypes.dlclose(_lib.lib._handle)
print((p @ numpy.ones(3)).sum())
import os
os._exit(0)
""") == "3.0\n"


def test_the_end_of_the_process():
    """With plans, tensors and a thread in a call, which does not hold it up."""
    assert prints("""
import threading, numpy, spmm
d = spmm.open("cpu")
p, t, b = spmm.prepare(numpy.eye(500), d), spmm.Tensor(d, (3, 3)), numpy.ones((500, 500))
def work():
    while True:
        p @ b
threading.Thread(target=work, daemon=True).start()
print((p @ b).sum())
""", "-X", "faulthandler") == "250000.0\n"


def test_small_stacks():
    """Threads of the least stack that the platform gives call it."""
    assert prints("""
import threading, numpy, spmm
threading.stack_size(64 << 10)
p, got = spmm.prepare(numpy.eye(300), "cpu"), []
def work():
    q = spmm.prepare(numpy.eye(300, dtype="float32"), "cpu", reproducible=True)
    got.append((p @ numpy.ones((300, 8))).sum() + (q @ numpy.ones((300, 8), "float32")).sum())
ts = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in ts]
[t.join() for t in ts]
print(got)
""") == "[4800.0, 4800.0, 4800.0, 4800.0]\n"


def test_fork():
    assert prints("""
import os, numpy, spmm
d = spmm.open("cpu")
if os.fork() == 0:
    try:
        spmm.prepare(numpy.eye(3), d)
    except spmm.Error as e:
        os._exit(7 if "forked" in str(e) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
print((spmm.prepare(numpy.eye(3), d) @ numpy.ones(3)).sum())
""") == "3.0\n"


def test_keyboard_interrupt_of_prepare():
    assert prints("""
import os, signal, threading, numpy, scipy.sparse, spmm
n, k = 20000, 200
idx, ptr = numpy.tile(numpy.arange(k, dtype="int32") * 100, n), numpy.arange(n + 1) * k
a = scipy.sparse.csr_matrix((numpy.ones(n * k, "float32"), idx, ptr), (n, n))
d = spmm.open("cpu")
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        spmm.prepare(a, d, tune=True, n=256)
except KeyboardInterrupt:
    print((spmm.prepare(numpy.eye(3), d) @ numpy.ones(3)).sum())
""") == "3.0\n"


def test_set_cuda_library():
    assert prints("""
import spmm
spmm.set_cuda_library("/no/libcuda.so")
try:
    spmm.open("cuda")
except spmm.Unavailable as e:
    print("/no/libcuda.so" in str(e))
""") == "True\n"


def test_faulthandler():
    """Enabled after the library was loaded: the library's faults are errors, others print where Python was."""
    r = child("""
import ctypes, faulthandler, numpy, spmm
from spmm import _lib
d = spmm.open("cpu")
faulthandler.enable()
a = _lib.CSR(rows=1, cols=1, nnz=1, row_ptr=16, col_idx=16, values=16, row_ptr_type=_lib.I64, col_idx_type=_lib.I32,
             type=_lib.F32)
try:
    _lib.check(_lib.plan_csr(d.handle, ctypes.byref(a), None, ctypes.byref(ctypes.c_uint64())))
except spmm.Error as e:
    print((spmm.prepare(numpy.eye(3), d) @ numpy.ones(3)).sum(), flush=True)
ctypes.string_at(0)
""")
    assert r.stdout == "3.0\n", r.stderr
    assert r.returncode == -11 and "Segmentation fault" in r.stderr and "string_at" in r.stderr


def test_keyboard_interrupt():
    assert prints("""
import os, signal, threading, numpy, spmm
p = spmm.prepare(numpy.eye(300), "cpu")
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        p @ numpy.ones((300, 64))
except KeyboardInterrupt:
    print((p @ numpy.ones(300)).sum())
""") == "300.0\n"


def test_memory_of_a_matrix_whose_prepare_was_cancelled():
    """It may be freed at once."""
    assert prints("""
import ctypes, threading, numpy, scipy.sparse, spmm
n, k = 20000, 200
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
d, cancelled = spmm.open("cpu"), 0
for i in range(8):
    m = libc.mmap(None, 4 * n * k, 3, 0x22, -1, 0)  # private and anonymous, to read and write
    idx = numpy.ctypeslib.as_array((ctypes.c_int32 * (n * k)).from_address(m))
    idx[:] = numpy.tile(numpy.arange(k, dtype="int32") * 100, n)
    a = scipy.sparse.csr_matrix((numpy.ones(n * k, "float32"), idx, numpy.arange(n + 1) * k), (n, n))
    t = threading.Timer(0.03 * (i + 1), spmm.cancel)
    t.start()
    try:
        spmm.prepare(a, d, tune=True, n=256)
    except spmm.Cancelled:
        cancelled += 1
    t.join()
    libc.munmap(m, 4 * n * k)
print(cancelled > 0)
""") == "True\n"
