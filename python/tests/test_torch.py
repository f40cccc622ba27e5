"""Products, gradients and layers against PyTorch, on the CPU."""

import copy
import io

import numpy as np
import pytest

import spmm

torch = pytest.importorskip("torch")
import spmm.pyg  # noqa: E402
import spmm.torch as st  # noqa: E402


def random(rows, cols, dtype=torch.float32):
    torch.manual_seed(1)
    d = torch.rand(rows, cols, dtype=dtype)
    return (d * (d > 0.8)).to_sparse_csr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_products(dtype):
    a = random(40, 30)
    dense = a.to_dense()
    a = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), a.values().to(dtype), a.shape)
    b = torch.rand(30, 8).to(dtype)
    c = spmm.prepare(a, "cpu") @ b
    assert isinstance(c, torch.Tensor) and c.dtype == dtype
    bound = {torch.float64: 1e-12, torch.float32: 1e-5}.get(dtype, 0.05)
    assert (c.double() - dense.to(dtype).double() @ b.double()).abs().max() < bound


def test_layouts():
    a = random(40, 30)
    want = a.to_dense() @ torch.ones(30, 2)
    for x in (a, a.to_dense(), a.to_dense().to_sparse()):
        for b in (torch.ones(30, 2), torch.ones(2, 30).t(), torch.ones(30, 4)[:, ::2]):
            assert (spmm.prepare(x, "cpu") @ b - want).abs().max() < 1e-5


def test_gradients():
    a = random(20, 15, torch.float64)
    p = st.Pattern(a)
    v = a.values().clone().requires_grad_()
    b = torch.rand(15, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v, b: st.mm(p, v, b), (v, b))


def test_gradients_by_rows():
    a = random(20, 15, torch.float64)
    p = st.Pattern(a, rows=True)
    v = a.values().clone().requires_grad_()
    b = torch.rand(4, 15, dtype=torch.float64, requires_grad=True)
    assert (st.mm(p, v, b) - b @ a.to_dense().t()).abs().max() < 1e-12
    assert torch.autograd.gradcheck(lambda v, b: st.mm(p, v, b), (v, b))


@pytest.mark.parametrize("rows", [False, True])
def test_gradients_of_the_bias(rows):
    a = random(20, 15, torch.float64)
    p, v = st.Pattern(a, rows=rows), a.values().clone().requires_grad_()
    b = torch.rand(*((4, 15) if rows else (15, 4)), dtype=torch.float64, requires_grad=True)
    bias = torch.rand(20, dtype=torch.float64, requires_grad=True)
    want = b @ a.to_dense().t() + bias if rows else a.to_dense() @ b + bias[:, None]
    assert (st.mm(p, v, b, bias) - want).abs().max() < 1e-12
    assert torch.autograd.gradcheck(lambda v, b, bias: st.mm(p, v, b, bias), (v, b, bias))


def test_transpose_has_the_last_values():
    a = random(20, 15)
    p, b, g = st.Pattern(a), torch.eye(15, requires_grad=True), torch.rand(20, 15)
    st.mm(p, 3 * a.values(), b).backward(g)
    assert (b.grad - 3 * a.to_dense().t() @ g).abs().max() < 1e-4


def test_values_change_in_place():
    a = random(20, 15)
    p, v, b = st.Pattern(a), a.values().clone(), torch.eye(15)
    for _ in range(3):
        v.mul_(2)
        want = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), v, a.shape).to_dense()
        assert torch.equal(st.mm(p, v, b), want)


def test_linear_and_state():
    net = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU(), torch.nn.Linear(24, 8))
    x = torch.rand(2, 3, 16)
    st.sparsify(net, 0.5)
    ws = [net[0], net[2]]
    want = torch.nn.functional.linear(x, ws[0].weight().to_dense(), ws[0].bias).relu()
    want = torch.nn.functional.linear(want, ws[1].weight().to_dense(), ws[1].bias)
    with torch.no_grad():
        assert (net(x) - want).abs().max() < 1e-5
    assert (net(x) - want).abs().max() < 1e-5 and ws[0].values.numel() == 16 * 24 // 2
    other = st.sparsify(torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU(), torch.nn.Linear(24, 8)), 0.75)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(x), net(x))
    net(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_copies_of_layers_are_apart():
    layer = st.SparseLinear(torch.rand(16, 24))
    x = torch.rand(3, 24)
    want = layer(x).detach()
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for other in (copy.deepcopy(layer), torch.load(file, **({"weights_only": False} if new else {}))):
        assert torch.equal(other(x), want)
        with torch.no_grad():
            other.values.mul_(2)
        assert torch.equal(other(x), 2 * want)
        assert torch.equal(layer(x), want)
    plan = layer.pattern().plan
    with pytest.raises(TypeError, match="prepare"):
        copy.deepcopy(plan)


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    net, x = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.Linear(24, 8)), torch.rand(3, 16)
    other = copy.deepcopy(net)
    st.sparsify(net, "2:4")
    st.sparsify(other, 0.9)
    safetensors.save_file(net.state_dict(), tmp_path / "net.safetensors")
    other.load_state_dict(safetensors.load_file(tmp_path / "net.safetensors"))
    assert torch.equal(other(x), net(x))


def test_known_products_see_what_changes():
    """Products that take the short way, because one like them came before."""
    a = random(40, 30)
    plan, dense = spmm.prepare(a, "cpu"), a.to_dense()
    for dtype in (None, torch.float64, torch.float16):
        for k in range(4):
            b, bias, out = torch.rand(30, 8), torch.rand(40), torch.rand(40, 8)
            want = torch.relu((k + 1) * (dense @ b) + bias[:, None])
            y = plan(b, alpha=k + 1, bias=bias, activation="relu", dtype=dtype)
            assert y.dtype == (dtype or torch.float32)
            assert (y - want).abs().max() < (0.05 if dtype is torch.float16 else 1e-5)
            want = dense @ b + k * out
            assert plan(b, out=out, beta=k) is out and (out - want).abs().max() < 1e-5
            assert (plan(b[:, 0]) - dense @ b[:, 0]).abs().max() < 1e-5
    with pytest.raises(ValueError, match="beta needs out"):
        plan(b, beta=1)
    with pytest.raises(ValueError, match="the bias has shape"):
        plan(b, bias=torch.rand(39), activation="relu")


new = hasattr(torch.library, "register_autograd")  # PyTorch 2.4


@pytest.mark.parametrize("rows", [False, True])
def test_operators(rows):
    a = random(20, 15)
    p, v, b = st.Pattern(a, rows=rows), a.values(), torch.rand(*((4, 15) if rows else (15, 4)))
    ops = torch.ops.spmm
    for transpose in (False, True):
        x = st.mm(p, v, b) if transpose else b
        y = ops.multiply(v, x, None, p._key, transpose)
        assert torch.equal(y, p.product(v, x, None, transpose))
        if new:
            meta = ops.multiply(v.to("meta"), x.to("meta"), None, p._key, transpose)
            assert meta.shape == y.shape and meta.dtype == y.dtype and meta.stride() == y.stride()
    g = st.mm(p, v, b)
    assert torch.equal(ops.sampled(v, g, b, p._key), p.sampled(g, b, v.dtype))
    if new:
        assert ops.sampled(v.to("meta"), g.to("meta"), b.to("meta"), p._key).shape == v.shape
        v, b = v.clone().requires_grad_(), b.requires_grad_()
        bias = torch.rand(20, requires_grad=True)
        torch.library.opcheck(ops.multiply.default, (v, b, bias, p._key, False))


@pytest.mark.skipif(not new, reason="PyTorch before 2.4 cannot compile such operators")
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("grad", [False, True])
def test_compile(dynamic, grad):
    net = st.sparsify(torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU(), torch.nn.Linear(24, 8)), 0.5)
    graph = torch.compile(net, fullgraph=True, dynamic=dynamic, backend="aot_eager")  # before any product
    for rows in (3, 5, 3, 7):
        x = torch.rand(rows, 16, requires_grad=True)
        with torch.set_grad_enabled(grad):
            got, want = graph(x), net(x)
        assert (got - want).abs().max() < 1e-5
        if grad:
            inputs = [x, *net.parameters()]
            for g, w in zip(torch.autograd.grad(got.square().sum(), inputs),
                            torch.autograd.grad(want.square().sum(), inputs)):
                assert (g - w).abs().max() < 1e-4
            with torch.no_grad():  # as an optimiser does
                [p.mul_(0.9) for p in net.parameters()]


def test_sample():
    a = random(20, 15, torch.float64)
    p, dense = st.Pattern(a), a.to_dense() != 0
    x, y = (torch.rand(n, 4, dtype=torch.float64, requires_grad=True) for n in (20, 15))
    assert (st.sample(p, x, y) - (x @ y.t())[dense]).abs().max() < 1e-12
    assert torch.autograd.gradcheck(lambda x, y: st.sample(p, x, y), (x, y))
    with pytest.raises(ValueError, match="by rows"):
        st.sample(st.Pattern(a, rows=True), x, y)


def test_softmax():
    a = random(20, 15, torch.float64)
    p, dense = st.Pattern(a), a.to_dense() != 0
    v = torch.randn(a.values().shape, dtype=torch.float64, requires_grad=True)
    full = torch.full((20, 15), -torch.inf, dtype=torch.float64)
    full[dense] = v.detach()
    assert (st.softmax(p, v) - full.softmax(1)[dense]).abs().max() < 1e-12
    assert torch.autograd.gradcheck(lambda v: st.softmax(p, v), (v,))


def test_gat():
    torch.manual_seed(2)
    n, edges = 30, torch.randint(0, 30, (2, 150)).unique(dim=1)
    for heads, concat in ((1, True), (2, True), (2, False)):
        conv = spmm.pyg.GATConv(8, 4, heads=heads, concat=concat).double()
        x = torch.randn(n, 8, dtype=torch.float64, requires_grad=True)
        got = conv(x, edges)
        loops = torch.cat([edges[:, edges[0] != edges[1]], torch.arange(n).expand(2, n)], 1)
        h = conv.lin(x).view(n, heads, 4)
        s, d = (h * conv.att_src).sum(-1), (h * conv.att_dst).sum(-1)
        e = torch.full((n, n, heads), -torch.inf, dtype=torch.float64)
        e[loops[1], loops[0]] = torch.nn.functional.leaky_relu(s[loops[0]] + d[loops[1]], 0.2)
        want = torch.einsum("ijh,jhc->ihc", e.softmax(1), h)
        want = (want.reshape(n, -1) if concat else want.mean(1)) + conv.bias
        assert (got - want).abs().max() < 1e-12
        inputs = [x, *conv.parameters()]
        for g, w in zip(torch.autograd.grad(got.square().sum(), inputs),
                        torch.autograd.grad(want.square().sum(), inputs)):
            assert (g - w).abs().max() < 1e-11 * w.abs().max()


def test_masks():
    w = torch.rand(16, 16)
    assert (st.n_of_m(w, 2, 4).reshape(16, 4, 4).sum(2) == 2).all()
    m = st.vectors(w, 0.5, 8)
    assert m.sum() == 128 and (m.reshape(2, 8, 16).float().std(1) == 0).all()
    with pytest.raises(ValueError, match="multiple"):
        st.n_of_m(torch.rand(4, 6), 2, 4)


def test_gcn_learns():
    torch.manual_seed(2)
    n = 60
    edges, x, y = torch.randint(0, n, (2, 300)), torch.rand(n, 8), torch.randint(0, 3, (n,))
    conv = spmm.pyg.GCNConv(8, 8)
    a = spmm.pyg.adjacency(edges, n, loops=True, normalise=True).to_dense()
    assert (conv(x, edges) - (a @ conv.lin(x) + conv.bias)).abs().max() < 1e-5
    net = torch.nn.ModuleList([conv, spmm.pyg.GINConv(torch.nn.Linear(8, 3))])
    o, losses = torch.optim.Adam(net.parameters(), 0.05), []
    for _ in range(30):
        o.zero_grad()
        loss = torch.nn.functional.cross_entropy(net[1](net[0](x, edges).relu(), edges), y)
        loss.backward()
        o.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0] and np.isfinite(losses).all()
