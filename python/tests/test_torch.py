"""Products, gradients and layers against PyTorch, on the CPU."""

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
