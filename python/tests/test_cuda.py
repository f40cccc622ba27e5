"""Products, values, samples and graphs in the memory and streams of a CUDA device."""

import threading

import pytest
import spmm

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no CUDA device", allow_module_level=True)
import spmm.torch as st  # noqa: E402

TYPES = {torch.float16: 2e-2, torch.bfloat16: 2e-1, torch.float32: 1e-5, torch.float64: 1e-12}
LAYOUTS = {
    "rows": lambda m, n: torch.randn(m, n, device="cuda"),
    "columns": lambda m, n: torch.randn(n, m, device="cuda").t(),
    "odd rows": lambda m, n: torch.randn(m, n + 1, device="cuda")[:, 1:],
    "odd columns": lambda m, n: torch.randn(n, m + 1, device="cuda")[:, 1:].t(),
    "gaps": lambda m, n: torch.randn(m, 2 * n, device="cuda")[:, ::2],
}


def random(rows, cols, density=0.1, dtype=torch.float32):
    a = torch.rand(rows, cols) * (torch.rand(rows, cols) < density)
    return a.to(dtype).cuda().to_sparse_csr()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def far(got, want):
    """The largest difference, as a share of the largest number."""
    return float((got.double() - want.double()).abs().max() / want.double().abs().max())


def take(make, dtype, m, n):
    """A matrix in a layout and a type, which keeps the layout but for that of a slice: that is made in the type."""
    x = make(m, n)
    if dtype is torch.float32:
        return x
    base = x._base if x._base is not None else x
    return torch.as_strided(base.to(dtype), x.shape, x.stride(), x.storage_offset())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products(dtype, layout):
    a = random(300, 200, dtype=dtype)
    plan, dense = spmm.prepare(a, "cuda:0"), a.to_dense().double()
    for n in (1, 7, 64):
        for offset in (0, 1):
            for _ in range(2):
                b = take(LAYOUTS[layout], dtype, 200, n)
                bias = torch.randn(300 + offset, device="cuda").to(dtype)[offset:]
                want = torch.relu(dense @ b.double() + bias.double()[:, None])
                assert far(plan(b, bias=bias, activation="relu"), want) < TYPES[dtype]
                out = take(LAYOUTS[layout], dtype, 300, n)
                want = 2 * (dense @ b.double()) + out.double()
                assert plan(b, out=out, alpha=2, beta=1) is out and far(out, want) < TYPES[dtype]


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", TYPES)
def test_matrices_on_the_device(dtype, index):
    a = random(301, 203, dtype=dtype)
    b = torch.randn(203, 17, device="cuda").to(dtype)
    want = a.to_dense().double() @ b.double()
    csr = torch.sparse_csr_tensor(a.crow_indices().to(index), a.col_indices().to(index), a.values(), a.shape)
    c = a.to_dense().to_sparse_csc()
    csc = torch.sparse_csc_tensor(c.ccol_indices().to(index), c.row_indices().to(index), c.values(), c.shape)
    for x in (csr, csc, a.cpu(), a.to_dense(), a.to_dense().to_sparse()):
        assert far(spmm.prepare(x, "cuda:0") @ b, want) < TYPES[dtype]
    wrong = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices().flip(0), a.values(), a.shape,
                                    check_invariants=False)
    with pytest.raises(ValueError, match="column"):
        spmm.prepare(wrong, "cuda:0")
    assert far(spmm.prepare(csr, "cuda:0") @ b, want) < TYPES[dtype]


@pytest.mark.parametrize("stream", ["default", "side", "priority"])
def test_streams(stream):
    """Products and values are in order with the stream's work, and nobody waits for it."""
    a = random(1024, 1024)
    plan, x, v = spmm.prepare(a, "cuda:0"), torch.zeros(1024, 64, device="cuda"), torch.zeros_like(a.values())
    sums = torch.zeros(1024, device="cuda").index_add_(0, a.to_sparse_coo().indices()[0], torch.ones_like(v))
    plan.set_values(v)
    y = plan @ x
    torch.cuda.synchronize()
    made = {"default": torch.cuda.default_stream, "side": torch.cuda.Stream,
            "priority": lambda: torch.cuda.Stream(priority=-1)}[stream]()
    with torch.cuda.stream(made):
        for k in range(20):
            torch.cuda._sleep(1_000_000)
            x.fill_(k + 1)
            v.fill_(k + 2)
            plan.set_values(v)
            plan(x, out=y)
            x.fill_(-1)
            v.fill_(-1)
            assert far(y, (sums * (k + 1) * (k + 2))[:, None].expand_as(y)) < 1e-5
        torch.cuda._sleep(200_000_000)
        for _ in range(200):
            plan.set_values(v)
            plan(x, out=y)
        assert not made.query()


def test_threads():
    a = random(600, 600)
    plan, dense, bad = spmm.prepare(a, "cuda:0"), a.to_dense().double(), []

    def work(i):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                x = torch.randn(600, 8 + i * 8, device="cuda")
                if far(plan @ x, dense @ x.double()) > 1e-4:
                    bad.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not bad


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sample(dtype, right, layout):
    a = random(301, 203, dtype=dtype)
    plan, where = spmm.prepare(a, "cuda:0", right=right), a.to_dense() != 0
    for n in (1, 17, 64):
        x, y = (take(LAYOUTS[layout], dtype, m, n) for m in (301, 203))
        want, scale = (x.double() @ y.double().t())[where], torch.rand(plan.nnz, device="cuda")
        assert far(plan.sample(x, y), want) < TYPES[dtype]
        assert far(plan.sample(x, y, scale=scale, out=torch.empty_like(scale)), want * scale) < max(TYPES[dtype], 1e-5)


def test_gradients():
    a = random(300, 200)
    p, v, dense = st.Pattern(a), a.values().clone().requires_grad_(), a.to_dense().requires_grad_()
    b, w = torch.randn(200, 16, device="cuda", requires_grad=True), torch.randn(300, 16, device="cuda")
    got = torch.autograd.grad((st.mm(p, v, b) * w).sum(), (v, b))
    want = torch.autograd.grad(((dense @ b) * w).sum(), (dense, b))
    assert far(got[0], want[0][a.to_dense() != 0]) < 1e-5 and far(got[1], want[1]) < 1e-5


def test_capture():
    """A graph has products, values that change, and samples; it lives longer than the plan."""
    a = random(500, 400)
    p, where = st.Pattern(a), a.to_dense() != 0
    v = a.values().clone().requires_grad_()
    x, y, b = (torch.randn(m, 32, device="cuda") for m in (500, 400, 400))
    stream = torch.cuda.Stream()

    def work():
        e = p.plan.sample(x, y)
        return e, st.softmax(p, e), st.mm(p, v, b), st.mm(p, v, b[:, 1:])

    with torch.no_grad(), torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, stream=stream):
        e, s, c, d = work()
    for close in (False, False, True):
        if close:
            p.plan.close()
        with torch.no_grad():
            x.normal_()
            v.normal_()
        graph.replay()
        torch.cuda.synchronize()
        full = x @ y.t()
        assert far(e, full[where]) < 1e-4
        assert far(s, full.masked_fill(~where, -torch.inf).softmax(1)[where]) < 1e-4
        w = torch.zeros(500, 400, device="cuda")
        w[where] = v.detach()
        assert far(c, w @ b) < 1e-4 and far(d, w @ b[:, 1:]) < 1e-4


@pytest.mark.skipif(not st._compiles, reason="PyTorch before 2.4 cannot compile such operators")
@pytest.mark.parametrize("grad", [False, True])
def test_compiled_with_graphs(grad):
    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128)).cuda()
    st.sparsify(net, 0.9)
    compiled = torch.compile(net, mode="reduce-overhead", fullgraph=True)
    for _ in range(6):
        torch.compiler.cudagraph_mark_step_begin()
        x = torch.randn(64, 256, device="cuda", requires_grad=grad)
        inputs = [x, *net.parameters()]
        with torch.set_grad_enabled(grad):
            got = compiled(x)
            grads = [g.clone() for g in torch.autograd.grad(got.square().sum(), inputs)] if grad else []
            got = got.detach().clone()
            want = net(x)
            assert far(got, want) < 1e-4
            for g, w in zip(grads, torch.autograd.grad(want.square().sum(), inputs) if grad else []):
                assert far(g, w) < 1e-3
        with torch.no_grad():
            [p.mul_(0.9) for p in net.parameters()]


def test_other_libraries():
    """CuPy's arrays, __cuda_array_interface__ and DLPack are used where they lie."""
    a = random(300, 200)
    plan, b = spmm.prepare(a, "cuda:0"), torch.randn(200, 8, device="cuda")
    want = a.to_dense() @ b

    class Interface:
        __cuda_array_interface__ = b.__cuda_array_interface__

    class DLPack:
        def __dlpack__(self, **options):
            return b.__dlpack__(**options)

        def __dlpack_device__(self):
            return b.__dlpack_device__()

    for x in (Interface(), DLPack()):
        assert far(plan @ x, want) < 1e-5
    cupy = pytest.importorskip("cupy")
    from cupyx.scipy import sparse
    x = cupy.asarray(b)
    y = plan @ x
    assert isinstance(y, cupy.ndarray) and far(torch.as_tensor(y), want) < 1e-5
    dense = a.to_dense()
    y = spmm.prepare(sparse.csr_matrix(cupy.asarray(dense)), "cuda:0") @ x
    assert far(torch.as_tensor(y), want) < 1e-5


def test_refusals():
    a = random(300, 200)
    plan = spmm.prepare(a, "cuda:0")
    with pytest.raises(ValueError, match="memory that B is in"):
        plan(torch.ones(200, 2, device="cuda"), out=torch.ones(300, 2))
    with pytest.raises(ValueError, match="A on .*cpu"):
        spmm.prepare(a, "cpu") @ torch.ones(200, 2, device="cuda")
    assert far(plan @ torch.ones(200, 2), a.to_dense().cpu() @ torch.ones(200, 2)) < 1e-5


@pytest.mark.parametrize("make", ["csr_matrix", "csc_matrix", "coo_matrix"])
def test_cupy(make):
    """A, B and C of CuPy; csr and csc are taken where they lie."""
    cupy, sparse = (pytest.importorskip(name) for name in ("cupy", "cupyx.scipy.sparse"))
    dense = cupy.asarray((torch.rand(300, 200) * (torch.rand(300, 200) < 0.1)).cuda())
    plan = spmm.prepare(getattr(sparse, make)(sparse.csr_matrix(dense)), "cuda:0")
    b = cupy.random.random((200, 9), dtype="float32")
    c = plan @ b
    assert isinstance(c, cupy.ndarray) and float(abs(c - dense @ b).max()) < 1e-4
