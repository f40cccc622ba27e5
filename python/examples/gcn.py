"""A graph convolutional network of two layers (Kipf and Welling 2017), trained on a generated graph.

It prints the time of an epoch with spmm.pyg, with torch.sparse and with PyTorch Geometric, called from Python and, with
--record, as a CUDA graph; and how far the losses are apart. With spmm's reproducible mode it compares the losses of two
runs to the bit, and the products of the graph's matrix on CUDA and on the CPU.

    python3 gcn.py --edges 1000000 --out gcn.json
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS then gives the same bits in each run

import torch
from torch import nn
from torch.nn import functional as F

import spmm.pyg
import spmm.torch
from report import Report


class Data:
    """A graph of communities: most edges stay in one, and a node's label is its community."""

    def __init__(self, args: argparse.Namespace) -> None:
        g = torch.Generator().manual_seed(1)
        n, half = args.nodes, args.edges // 2
        self.y = torch.randint(args.classes, (n,), generator=g)
        order = torch.argsort(self.y)
        source = (torch.rand(half, generator=g).square() * n).long()  # some nodes have many more edges than others
        near = source + torch.randint(1, n // args.classes // 2, (half,), generator=g)
        far = torch.randint(n, (half,), generator=g)
        target = torch.where(torch.rand(half, generator=g) < 0.8, near % n, far)
        target = torch.where(target == source, (target + 1) % n, target)
        source, target = order[source], order[target]
        self.edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
        self.x = torch.randn(n, args.features, generator=g)
        self.x[:, :args.classes] += 0.5 * F.one_hot(self.y, args.classes)
        self.train = (torch.rand(n, generator=g) < 0.5).float()

    def to(self, device: str) -> "Data":
        new = object.__new__(Data)
        new.__dict__ = {name: t.to(device) for name, t in self.__dict__.items()}
        return new


class TorchConv(nn.Module):
    """The layer by torch.sparse.mm."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.lin = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.a: Any = None

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        if self.a is None:
            self.a = spmm.pyg.adjacency(edges, x.shape[0], loops=True, normalise=True)
        return self.product(self.lin(x)) + self.bias

    def product(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sparse.mm(self.a, x)


class TorchConvWithTranspose(TorchConv):
    """The same, with Aᵀ kept for the gradient; torch.sparse.mm makes it anew in each epoch."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.t: Any = None

    def product(self, x: torch.Tensor) -> torch.Tensor:
        if self.t is None:
            self.t = self.a.to_sparse_coo().t().coalesce().to_sparse_csr()
        return Product.apply(self.a, self.t, x)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, t: torch.Tensor, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        ctx.t = t
        return a @ x

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple:  # type: ignore[override]
        return None, None, ctx.t @ g


class Network(nn.Module):
    def __init__(self, conv: Callable, args: argparse.Namespace) -> None:
        super().__init__()
        self.first, self.second = conv(args.features, args.hidden), conv(args.hidden, args.classes)
        g = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for layer in (self.first, self.second):
                w = layer.lin.weight
                w.copy_(torch.randn(w.shape, generator=g) / w.shape[1] ** 0.5)
                layer.bias.zero_()

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x, edges).relu(), edges)


def geometric_layer() -> Optional[Callable]:
    """PyTorch Geometric's layer, if it is installed."""
    try:
        import torch_geometric.nn
    except ImportError:
        return None
    return lambda inputs, outputs: torch_geometric.nn.GCNConv(inputs, outputs, cached=True)


def training(conv: Callable, data: Data, args: argparse.Namespace, record: bool) -> Tuple[Callable, torch.Tensor]:
    """What runs an epoch, and the tensor in which it leaves the loss."""
    device = data.x.device
    model = Network(conv, args).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, **({"capturable": True} if record else {}))
    total, kept = data.train.sum(), torch.zeros((), device=device)

    def epoch() -> None:
        optimiser.zero_grad(set_to_none=False)
        each = F.cross_entropy(model(data.x, data.edges), data.y, reduction="none")
        loss = (each * data.train).sum() / total
        loss.backward()
        optimiser.step()
        kept.copy_(loss.detach())

    return epoch, kept


def train(conv: Callable, data: Data, args: argparse.Namespace, record: bool = False) -> Tuple[List[float], float]:
    """The losses of all epochs, and the seconds of one without those at the beginning."""
    epoch, kept = training(conv, data, args, record)
    run = epoch
    losses: List[torch.Tensor] = []
    before = 5

    def next_epoch(f: Callable) -> None:
        f()
        losses.append(kept.clone())

    if record:  # the epochs that warm up are the first of the training
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(before):
                next_epoch(epoch)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            epoch()
        run = graph.replay  # epoch keeps the model, whose memory the graph uses
    else:
        for _ in range(before):
            next_epoch(epoch)
    synchronise(data)
    start = time.perf_counter()
    for _ in range(args.epochs - before):
        next_epoch(run)
    synchronise(data)
    took = time.perf_counter() - start
    return [float(x) for x in losses], took / (args.epochs - before)


def synchronise(data: Data) -> None:
    if data.x.is_cuda:
        torch.cuda.synchronize()


def apart(a: List[float], b: List[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b))


def same_products(data: Data, devices: List[str], columns: int) -> Dict[str, bool]:
    """Whether A·x and Aᵀ·x in reproducible mode have the same bits on all devices."""
    a = spmm.pyg.adjacency(data.edges, data.x.shape[0], loops=True, normalise=True)
    x = torch.randn(data.x.shape[0], columns, generator=torch.Generator().manual_seed(3))
    found: Dict[str, List[torch.Tensor]] = {"A·x": [], "Aᵀ·x": []}
    for device in devices:
        pattern = spmm.torch.Pattern(a.to(device), reproducible=True)
        values, b = a.values().to(device), x.to(device)
        found["A·x"].append(pattern.product(values, b).cpu())
        found["Aᵀ·x"].append(pattern.product(values, b, transpose=True).cpu())
    return {name: all(torch.equal(x, xs[0]) for x in xs) for name, xs in found.items()}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in dict(nodes=100_000, edges=1_000_000, features=128, hidden=64, classes=16, epochs=50).items():
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    p.add_argument("--record", action="store_true", help="epochs as CUDA graphs, too")
    p.add_argument("--cpu-epochs", type=int, default=6, help="epochs on the CPU in reproducible mode, more than 5")
    p.add_argument("--out", default="", help="the file of results")
    args = p.parse_args()
    report = Report(args.out, args.device, f"{args.nodes} nodes, {args.edges} edges, {args.features} features, "
                    f"{args.hidden} hidden, {args.classes} classes, f32; {args.epochs} epochs")
    here = Data(args)
    data = here.to(args.device)
    start = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - start:.1f} s] {text}", flush=True)

    convs: Dict[str, Callable] = {
        "torch.sparse": TorchConv, "torch.sparse, Aᵀ kept": TorchConvWithTranspose, "spmm": spmm.pyg.GCNConv,
        "spmm, reproducible": lambda i, o: spmm.pyg.GCNConv(i, o, reproducible=True),
    }
    curves: Dict[str, List[float]] = {}

    def called(name: str) -> None:
        curves[name], each = train(convs[name], data, args)
        off = apart(curves[name], curves["torch.sparse"])
        report.add(name, **{"epoch, ms": 1e3 * each, "first loss": curves[name][0], "last loss": curves[name][-1],
                            "loss − torch.sparse's": off})
        say("trained")
        assert off < 1e-3, f"losses of {name} are off by {off}"

    for name in convs:
        called(name)
    assert curves["spmm"][-1] < 0.9 * curves["spmm"][0], "the network learns nothing"

    reproducible, losses = convs["spmm, reproducible"], curves["spmm, reproducible"]
    again, _ = train(reproducible, data, args)
    say(f"reproducible, two runs: {'the same bits' if again == losses else 'not the same bits'}")
    assert again == losses
    if args.device != "cpu":
        for name, same in same_products(here, [args.device, "cpu"], args.hidden).items():
            say(f"reproducible, {name} on {args.device} and cpu: {'the same bits' if same else 'not the same bits'}")
            assert same
        few = argparse.Namespace(**{**vars(args), "epochs": args.cpu_epochs})
        cpu, each = train(reproducible, here, few)
        report.add("spmm, reproducible, CPU", **{"epoch, ms": 1e3 * each, "loss − CUDA's": apart(cpu, losses)})
        say("trained")
    def recorded(name: str) -> None:
        losses, each = train(convs[name], data, args, True)
        off = apart(losses, curves[name])
        report.add(f"{name}, recorded", **{"epoch, ms": 1e3 * each, "loss − called": off})
        assert off < 1e-3, f"losses of {name}, recorded, are off by {off}"
        say("trained")

    if args.record:  # torch.sparse makes Aᵀ in each epoch, which no graph may hold
        for name in ("torch.sparse, Aᵀ kept", "spmm", "spmm, reproducible"):
            recorded(name)
    pyg = geometric_layer()
    if pyg is not None:
        convs["PyG"] = pyg
        called("PyG")
        if args.record:
            recorded("PyG")


if __name__ == "__main__":
    main()
