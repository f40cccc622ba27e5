"""Products against SciPy, on the CPU."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

import spmm

rng = np.random.default_rng(1)


def random(rows, cols, density=0.1, dtype=np.float32):
    return sp.random(rows, cols, density, format="csr", dtype=dtype, random_state=2)


@pytest.mark.parametrize("dtype,bound", [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.bsr_matrix, lambda a: a.toarray(),
                                  lambda a: np.asfortranarray(a.toarray())])
def test_products(make, dtype, bound):
    a = random(70, 50, dtype=dtype)
    plan = spmm.prepare(make(a), "cpu")
    for b in (rng.random((50, 9)), np.asfortranarray(rng.random((50, 9))), rng.random((50, 20))[:, ::2],
              rng.random((50, 0))):
        b = b.astype(dtype) if b.flags.c_contiguous else b.astype(dtype, order="K")
        c = plan @ b
        assert c.dtype == dtype and np.abs(c - a @ b).max(initial=0) < bound
    v = rng.random(50).astype(dtype)
    assert (plan @ v).shape == (70,) and np.abs(plan @ v - a @ v).max() < bound
    assert np.abs(plan.T @ np.ones(70, dtype) - a.T @ np.ones(70)).max() < 70 * bound


def test_float16():
    a = random(40, 30)
    b = rng.random((30, 8)).astype(np.float16)
    c = spmm.prepare(a, "cpu", precision="float16")(b, dtype="float32")
    assert c.dtype == np.float32 and np.abs(c - a @ b.astype(np.float32)).max() < 1e-2


def test_right():
    a = random(40, 30)
    plan = spmm.prepare(a, "cpu", right=True)
    b = rng.random((7, 40)).astype(np.float32)
    assert np.abs(b @ plan - b @ a.toarray()).max() < 1e-5
    assert np.abs(b[0] @ plan - b[0] @ a.toarray()).max() < 1e-5
    bias = rng.random(30).astype(np.float32)
    assert np.abs(plan(b, bias=bias) - (b @ a.toarray() + bias)).max() < 1e-5
    with pytest.raises(TypeError, match="right"):
        plan @ b


def test_epilogue_and_out():
    a = random(40, 30)
    plan = spmm.prepare(a, "cpu")
    b, bias = rng.random((30, 5)).astype(np.float32) - 0.5, rng.random(40).astype(np.float32) - 0.5
    for out in (np.ones((40, 5), np.float32), np.ones((5, 40), np.float32).T, np.ones((40, 10), np.float32)[:, ::2]):
        want = np.maximum(2 * (a @ b) + 3 * out + bias[:, None], 0)
        assert plan(b, out=out, alpha=2, beta=3, bias=bias, activation="relu") is out
        assert np.abs(out - want).max() < 1e-5


def test_set_values():
    for make in (sp.csr_matrix, sp.csc_matrix):
        a = make(random(40, 30))
        plan = spmm.prepare(a, "cpu")
        t, b = plan.T, np.eye(30, dtype=np.float32)
        for _ in range(2):
            a = a.copy()
            a.data = rng.random(a.nnz).astype(np.float32)
            plan.set_values(a.data)
            assert np.abs(plan @ b - a.toarray()).max() < 1e-6
            assert np.abs(t @ np.eye(40, dtype=np.float32) - a.toarray().T).max() < 1e-6


def test_reproducible():
    a, b = random(60, 60), rng.random((60, 4)).astype(np.float32)
    first = spmm.prepare(a, "cpu", reproducible=True) @ b
    assert np.array_equal(first, spmm.prepare(sp.csc_matrix(a), "cpu", reproducible=True) @ b)
    assert np.abs(first - a @ b).max() < 1e-4


def test_threshold_and_prune():
    d = rng.random((20, 20)).astype(np.float32)
    assert spmm.prepare(d, "cpu", threshold=0.5).nnz == (d > 0.5).sum()
    assert spmm.prepare(d, "cpu", prune=0.75).nnz == 100
    with pytest.raises(ValueError, match="prune=2"):
        spmm.prepare(d, "cpu", prune=2)


def test_duplicates_are_summed():
    a = sp.csr_matrix((np.ones(4, np.float32), ([0, 0, 0, 1], [2, 0, 2, 1])), (2, 3))
    a = sp.csr_matrix((np.array([1, 2, 3], np.float32), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    assert (spmm.prepare(a, "cpu") @ np.eye(3, dtype=np.float32)).tolist() == [[2, 0, 4]]


def test_explain():
    plan = spmm.prepare(random(20, 20), "cpu", format="csr")
    assert "format csr" in plan.explain() and plan.info["nnz"] == 40 and "20×20" in repr(plan)


@pytest.mark.parametrize("options", [{}, {"right": True}, {"transpose": True}])
def test_sample(options):
    a = random(40, 30)
    plan = spmm.prepare(a, "cpu", **options)
    rows, cols = plan.shape
    x, y = rng.random((rows, 6)).astype(np.float32), np.asfortranarray(rng.random((cols, 6)).astype(np.float32))
    full = x @ y.T
    want = (full.T if options.get("transpose") else full)[a.nonzero()]
    assert np.abs(plan.sample(x, y) - want).max() < 1e-5
    scale, out = rng.random(plan.nnz), np.empty(plan.nnz)
    assert plan.sample(x, y, scale=scale, out=out) is out and np.abs(out - scale * want).max() < 1e-5
    for bad in (lambda: plan.sample(x, y[1:]), lambda: plan.sample(x, y, out=out[1:]),
                lambda: plan.sample(x, y, scale=np.ones(2 * plan.nnz)[::2])):
        with pytest.raises(ValueError, match="want"):
            bad()


def test_softmax():
    a = random(40, 30)
    plan = spmm.prepare(a, "cpu")
    s = sp.csr_matrix((plan.sample(*(np.ones((n, 1), np.float32) for n in a.shape), scale=a.data, softmax=True),
                       a.indices, a.indptr))
    e = sp.csr_matrix((np.exp(a.data), a.indices, a.indptr))
    assert np.abs(s.data - e.data / np.repeat(np.asarray(e.sum(1)).ravel(), np.diff(a.indptr))).max() < 1e-6


class OnCUDA:
    """What looks like memory of a CUDA device."""

    __cuda_array_interface__ = {"shape": (30, 2), "typestr": "<f4", "data": (4096, False), "version": 3}


@pytest.mark.parametrize("error,words,f", [
    (ValueError, "want 30×n", lambda p: p @ np.ones((31, 2), np.float32)),
    (ValueError, "want \\(40, 2\\)", lambda p: p(np.ones((30, 2), np.float32), out=np.ones((41, 2), np.float32))),
    (ValueError, "beta needs out", lambda p: p(np.ones((30, 2), np.float32), beta=1)),
    (ValueError, "activation", lambda p: p(np.ones((30, 2), np.float32), activation="tan")),
    (ValueError, "the bias has shape", lambda p: p(np.ones((30, 2), np.float32), bias=np.ones(30, np.float32))),
    (TypeError, "complex64", lambda p: p @ np.ones((30, 2), np.complex64)),
    (TypeError, "integers", lambda p: p @ np.ones((30, 2), np.int32)),
    (ValueError, "entries", lambda p: p.set_values(np.ones(3, np.float32))),
    (TypeError, "prepare\\(a, right=True\\)", lambda p: np.ones((2, 40), np.float32) @ p),
    (ValueError, "format", lambda p: spmm.prepare(random(4, 4), "cpu", format="no")),
    (spmm.Unavailable, "device 7", lambda p: spmm.prepare(random(4, 4), "cpu:7")),
    (ValueError, "two dimensions", lambda p: spmm.prepare(np.ones(4, np.float32), "cpu")),
    (ValueError, "B is on cuda:0, and A on .*cpu", lambda p: p @ OnCUDA()),
    (ValueError, "memory that B is in", lambda p: p(np.ones((30, 2), np.float32), bias=OnCUDA())),
    (ValueError, "split='no'", lambda p: spmm.prepare(random(4, 4), "cpu", split="no")),
    (ValueError, "quantise='no'", lambda p: spmm.prepare(random(4, 4), "cpu", quantise="no")),
    (spmm.Unsupported, 'kernel "no"', lambda p: spmm.prepare(random(4, 4), "cpu", format="csr", variant="no")),
    (TypeError, "complex128", lambda p: spmm.prepare(np.ones((4, 4), complex), "cpu")),
    (TypeError, "object", lambda p: spmm.prepare(np.full((4, 4), None), "cpu")),
])
def test_refusals(error, words, f):
    plan = spmm.prepare(random(40, 30), "cpu")
    with pytest.raises(error, match=words):
        f(plan)
    assert (plan @ np.ones((30, 2), np.float32)).shape == (40, 2)


def raw(ptr, idx, data, shape=(2, 3)):
    """A matrix that SciPy would not make."""
    class Raw:
        format, has_canonical_format = "csr", True

        def tocsr(self):
            return self

    r = Raw()
    r.shape, r.indptr, r.indices, r.data = shape, np.asarray(ptr), np.asarray(idx), np.asarray(data)
    return r


@pytest.mark.parametrize("error,ptr,idx,words", [
    (ValueError, [0, 2, 1], [0, 1], "offset"), (ValueError, [0, 1, 2], [0, 3], "column"),
    (ValueError, [0, 1, 2], [0, -1], "column"), (ValueError, [0, 2, 2], [1, 0], "comes after"),
    (ValueError, [0, 2, 2], [1, 1], "appears twice"), (ValueError, [1, 2, 2], [1, 1], "starts at 1"),
    (ValueError, np.array([0, 1, 2], np.int64), np.array([0, 1 + (1 << 32)], np.int64), "at most"),
    (ValueError, [0, 1], [0, 1], "want 3 offsets"), (ValueError, [0, 1, 2], [0], "an index for each value"),
    (TypeError, [0, 1, 2], [0, np.nan], "indices of float64"),
    (TypeError, [0, np.nan, 2], [0, 1], "offsets of float64"),
    (TypeError, [0, 1, 2], np.array([0, 1], np.int16), "int16"),
])
def test_matrices_that_are_not_canonical(error, ptr, idx, words):
    with pytest.raises(error, match=words):
        spmm.prepare(raw(ptr, idx, np.ones(2, np.float32)), "cpu")


def test_too_many_rows():
    with pytest.raises(ValueError, match="2³¹"):
        spmm.prepare(raw([0], np.zeros(0, np.int32), np.ones(0, np.float32), (0, 1 << 31)), "cpu")


def test_2_31_entries():
    """Arrays that nobody wrote take no memory, and the first row already is wrong."""
    n = 1 << 31
    with pytest.raises(ValueError, match="appears twice"):
        spmm.prepare(raw(np.array([0, n]), np.zeros(n, np.int32), np.zeros(n, np.float16), (1, 9)), "cpu")
    plan = spmm.prepare(random(40, 30), "cpu")
    assert (plan @ np.ones((30, 2), np.float32)).shape == (40, 2)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_tensors(order, dtype):
    a, d = random(40, 30, dtype=np.float64 if dtype == "float64" else np.float32), spmm.open("cpu")
    plan = spmm.prepare(a, d)
    value, row, col = (rng.random(s).astype(dtype) for s in ((30, 8), (1, 8), (40, 1)))
    b, c = spmm.Tensor(d, (30, 8), dtype, order).write(value), spmm.Tensor(d, (40, 8), "float64", order)
    assert (b.read() == value).all() and b.dtype == dtype and b.shape == (30, 8)
    want = a @ value.astype(np.float64)
    spmm.run(plan, b, c)
    assert np.abs(c.read() - want).max() < 1e-5
    for bias in (row, col):
        spmm.run(plan, b, c, alpha=-2, bias=spmm.Tensor(d, bias.shape, dtype).write(bias), activation="relu")
        assert np.abs(c.read() - np.maximum(bias - 2 * want, 0)).max() < 1e-5
    out = np.empty((8, 40)).T
    assert c.read(out) is out
    for bad in (lambda: b.write(value[1:]), lambda: b.write(value.astype(np.complex64)), lambda: c.read(value),
                lambda: spmm.run(plan, c, b), lambda: spmm.Tensor(d, (-1, 2)), lambda: spmm.Tensor(d, (1, 2), order="K"),
                lambda: spmm.run(plan, b, c, activation="tan")):
        with pytest.raises((ValueError, TypeError)):
            bad()
    c.close()
    with pytest.raises(spmm.Closed):
        c.read()


def test_sequence():
    a, d = random(40, 40), spmm.open("cpu")
    plan = spmm.prepare(a, d)
    x = [spmm.Tensor(d, (40, 3)) for _ in range(3)]
    s = spmm.Sequence(d).add(plan, x[0], x[1]).add(plan, x[1], x[2], beta=1, activation="relu")
    del plan  # the sequence keeps it
    for _ in range(3):
        b, c = rng.random((40, 3)).astype(np.float32), rng.random((40, 3)).astype(np.float32)
        x[0].write(b)
        x[2].write(c)
        s.run()
        assert np.abs(x[2].read() - np.maximum(a @ (a @ b) + c, 0)).max() < 1e-4
    s.close()
    with pytest.raises(spmm.Closed):
        s.run()


def test_closed():
    with spmm.prepare(random(40, 30), "cpu") as plan:
        pass
    with pytest.raises(spmm.Closed):
        plan @ np.ones((30, 2), np.float32)
    plan.close()


def test_threads():
    a = random(200, 200)
    plan, bad = spmm.prepare(a, "cpu"), []

    def work(seed):
        b = np.random.default_rng(seed).random((200, 8)).astype(np.float32)
        for _ in range(20):
            if np.abs(plan @ b - a @ b).max() > 1e-4:
                bad.append(seed)

    ts = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    assert not bad


def test_cancel():
    a = random(3000, 3000, 0.2)
    plan, b = spmm.prepare(a, "cpu"), np.ones((3000, 4000), np.float32)
    threading.Timer(0.05, spmm.cancel).start()
    with pytest.raises(spmm.Cancelled):
        for _ in range(100):
            plan @ b


@pytest.mark.parametrize("split", ["auto", "columns", "rows"])
@pytest.mark.parametrize("place", [None, "everywhere", "columns", "rows", 0, 1])
def test_group(split, place):
    """Two devices share a product, in the bits of one."""
    a, b = random(300, 200), rng.random((200, 9)).astype(np.float32)
    group = spmm.Group([spmm.Device("cpu"), spmm.Device("cpu")])
    assert group.info["devices"] == 2 and len(group.devices) == 2 and "1 more" in repr(group)
    plan, alone = (spmm.prepare(a, d, format="csr", split=split, from_=place) if d is group else
                   spmm.prepare(a, d, format="csr") for d in (group, "cpu"))
    assert np.array_equal(plan @ b, alone @ b)
    plan.set_values(2 * a.data)
    assert np.abs(plan @ b - 2 * (a @ b)).max() < 1e-4
    assert np.abs(plan.T @ np.ones((300, 2), np.float32) - 2 * (a.T @ np.ones((300, 2)))).max() < 1e-3
    group.close()
    with pytest.raises(spmm.Closed):
        plan @ b
    with pytest.raises(spmm.Closed):
        spmm.prepare(a, group.devices[1])


def test_group_of_a_list():
    group = spmm.Device("cpu,cpu")
    a = random(40, 40)
    b, c = (spmm.Tensor(group, (40, 3)) for _ in range(2))
    value = rng.random((40, 3)).astype(np.float32)
    b.write(value)
    spmm.run(spmm.prepare(a, group), b, c)
    assert np.abs(c.read() - a @ value).max() < 1e-5
    group.close()


def test_groups_that_are_refused():
    d = spmm.Device("cpu")
    for error, words, f in (
            (ValueError, "twice", lambda: spmm.Group([d, d])), (ValueError, "want 1 or more", lambda: spmm.Group([])),
            (TypeError, "want devices", lambda: spmm.Group(["cpu"])),
            (ValueError, "from 0 to 0", lambda: spmm.prepare(random(4, 4), d, from_=1)),
            (ValueError, "from_='here'", lambda: spmm.prepare(random(4, 4), d, from_="here"))):
        with pytest.raises(error, match=words):
            f()
    assert (spmm.prepare(random(4, 4), d) @ np.ones((4, 1), np.float32)).shape == (4, 1)
    d.close()
