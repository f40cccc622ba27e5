"""A network of Llama's shape, with random weights, whose linear layers become sparse by `spmm.torch.sparsify`.

It prints tokens a second while text is generated, and the time of a prompt, for dense weights, for pruned ones, and for
2:4 weights in PyTorch's own format. All run in CUDA graphs; the small operations between the products (norms and rotary
embeddings) are compiled by torch.compile with --compile, the same for all. Logits of pruned networks are compared with
those of the dense network that has the same zeros.

    python3 llama.py --layers 8 --out llama.json
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import time
from typing import Any, Callable, List, Optional, Tuple

import torch
import transformers
from torch import nn
from transformers.models.llama import modeling_llama

import spmm.torch
from report import Report


class Cache(transformers.Cache):
    """Keys and values of a fixed number of positions. New ones go to the positions that the decoder says."""

    def __init__(self, config: transformers.LlamaConfig, batch: int, length: int, like: torch.Tensor) -> None:
        shape = (batch, config.num_key_value_heads, length, config.hidden_size // config.num_attention_heads)
        self.keys_and_values = [(like.new_zeros(shape), like.new_zeros(shape)) for _ in range(config.num_hidden_layers)]
        self.layers: List[Any] = []
        self.length = length
        self.positions: Optional[torch.Tensor] = None

    def update(self, key: torch.Tensor, value: torch.Tensor, layer: int, *args: Any, **kwargs: Any) -> tuple:
        keys, values = self.keys_and_values[layer]
        keys.index_copy_(2, self.positions, key)
        values.index_copy_(2, self.positions, value)
        return keys, values

    def get_seq_length(self, *args: Any, **kwargs: Any) -> int:
        return 0

    def get_mask_sizes(self, *args: Any, **kwargs: Any) -> Tuple[int, int]:
        return self.length, 0


class Decoder:
    """Generates greedily with tensors at fixed addresses, so that a CUDA graph may hold a step."""

    def __init__(self, model: nn.Module, batch: int, prompt: int, tokens: int) -> None:
        weight = model.lm_head.weight
        length = -(-(prompt + tokens) // 8) * 8  # attention kernels want rows of the mask in multiples of 8
        self.model, self.batch, self.prompt = model, batch, prompt
        self.cache = Cache(model.config, batch, length, weight)
        self.columns = torch.arange(length, device=weight.device)
        self.position = torch.full((1,), prompt, device=weight.device)
        self.token = torch.zeros(batch, 1, dtype=torch.long, device=weight.device)

    def logits(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Of the last token."""
        self.cache.positions = positions
        hidden = torch.zeros((), dtype=self.model.lm_head.weight.dtype, device=tokens.device)
        mask = torch.where(self.columns <= positions[:, None], hidden, torch.finfo(hidden.dtype).min)
        states = self.model.model(
            input_ids=tokens, position_ids=positions.expand(self.batch, -1), past_key_values=self.cache, use_cache=True,
            attention_mask=mask.expand(self.batch, 1, -1, -1)).last_hidden_state
        return self.model.lm_head(states[:, -1])

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        """The prompt's logits; generation goes on from there."""
        logits = self.logits(tokens, self.columns[:self.prompt])
        self.token.copy_(logits.argmax(-1, keepdim=True))
        self.position.fill_(self.prompt)
        return logits

    def step(self) -> None:
        """One token more."""
        self.token.copy_(self.logits(self.token, self.position).argmax(-1, keepdim=True))
        self.position.add_(1)


def recorded(f: Callable[[], Any]) -> Callable[[], Any]:
    """f as a CUDA graph, which has run before so that kernels are loaded and memory is there."""
    if not torch.cuda.is_available():
        return f
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        f()
        f()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        f()
    return graph.replay


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds(f: Callable[[], Any], runs: int = 1) -> float:
    """The time of that many runs."""
    synchronise()
    start = time.perf_counter()
    for _ in range(runs):
        f()
    synchronise()
    return time.perf_counter() - start


def measure(model: nn.Module, ids: torch.Tensor, args: argparse.Namespace, record: Callable = recorded,
            runs: int = 5) -> dict:
    """Tokens a second in generation with each batch, and the milliseconds of a prompt: the best of some runs."""
    values = {}
    for batch in args.batches:
        decoder = Decoder(model, batch, args.prompt, args.tokens)
        decoder.read(ids[:1].expand(batch, -1))
        step = record(decoder.step)
        times = []
        for _ in range(runs):
            decoder.position.fill_(args.prompt)
            times.append(seconds(step, args.tokens))
        values[f"tokens/s, batch {batch}"] = batch * args.tokens / min(times)
        del step
    decoder = Decoder(model, 1, args.prompt, 0)
    read = record(lambda: decoder.read(ids[:1]))
    values[f"prompt of {args.prompt}, ms"] = 1e3 * min(seconds(read) for _ in range(runs))
    return values


def build(args: argparse.Namespace) -> nn.Module:
    """The dense network."""
    config = transformers.LlamaConfig(
        hidden_size=args.hidden, intermediate_size=args.inner, num_hidden_layers=args.layers,
        num_attention_heads=args.heads, num_key_value_heads=args.heads, vocab_size=args.vocab,
        max_position_embeddings=args.prompt + args.tokens)
    torch.manual_seed(1)
    with torch.device(args.device):  # weights are drawn there
        torch.set_default_dtype(torch.float16 if args.device != "cpu" else torch.float32)
        model = transformers.LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    return model.eval().requires_grad_(False)


def prune(model: nn.Module, kind: str) -> nn.Module:
    """A dense copy of the network with zeros in the linear layers of its blocks."""
    model = copy.deepcopy(model)
    for layer in model.model.layers.modules():
        if type(layer) is nn.Linear:
            mask = (spmm.torch.n_of_m(layer.weight, 2, 4) if kind == "2:4" else
                    spmm.torch.magnitude(layer.weight, float(kind)))
            layer.weight.mul_(mask)
    return model


def sparse(model: nn.Module, columns: int) -> nn.Module:
    """The pruned network with sparse layers."""
    new = copy.copy(model)
    new._modules = dict(model._modules)
    new.model = spmm.torch.sparsify(copy.deepcopy(model.model), lambda name, weight: weight != 0, n=columns)
    return new.requires_grad_(False)


def prepare(model: nn.Module) -> float:
    """Prepares all plans, some at a time, and returns the seconds that it took."""
    layers = [x for x in model.modules() if isinstance(x, spmm.torch.SparseLinear)]
    synchronise()
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda layer: layer.pattern(), layers))
    return time.perf_counter() - start


class Rows(nn.Module):
    """A linear layer by two axes: with three, PyTorch's 2:4 weights refuse some batches."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)


def semi_structured(model: nn.Module) -> nn.Module:
    """The pruned network with weights in PyTorch's 2:4 format."""
    new = copy.deepcopy(model)
    for name, layer in [x for x in new.model.layers.named_modules() if type(x[1]) is nn.Linear]:
        layer.weight = nn.Parameter(torch.sparse.to_sparse_semi_structured(layer.weight), requires_grad=False)
        parent, _, last = name.rpartition(".")
        setattr(new.model.layers.get_submodule(parent), last, Rows(layer))
    return new


def compile_small() -> None:
    """Compiles what is between the products: norms and rotary embeddings."""
    norm = modeling_llama.LlamaRMSNorm
    norm.forward = torch.compile(norm.forward, dynamic=False)
    modeling_llama.apply_rotary_pos_emb = torch.compile(modeling_llama.apply_rotary_pos_emb, dynamic=False)


def distance(got: torch.Tensor, want: torch.Tensor) -> float:
    """‖got − want‖ / ‖want‖."""
    return float((got.double() - want.double()).norm() / want.double().norm())


def explain(model: nn.Module) -> None:
    """Which kernels multiply, once for each kind of layer."""
    for name, layer in model.model.layers[0].named_modules():
        if isinstance(layer, spmm.torch.SparseLinear):
            info = layer.pattern().plan.info
            print(f"  {name}: {info['format']} {info['variant']}, {info['prepare_seconds']:.2f} s", flush=True)


@torch.no_grad()
def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in dict(layers=8, hidden=4096, inner=11008, heads=32, vocab=32000, prompt=512, tokens=64).items():
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--batches", type=lambda s: [int(x) for x in s.split(",")], default=[1, 8])
    p.add_argument("--zeros", default="0.5,0.7,0.9,2:4", help="shares of zeros, and patterns")
    p.add_argument("--columns", default="8", help="tokens at once to prepare weights for; several are tried in turn")
    p.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    p.add_argument("--compile", action="store_true", help="compile norms and rotary embeddings")
    p.add_argument("--sparse-only", action="store_true", help="the pruned networks alone")
    p.add_argument("--whole", action="store_true", help="the dense network compiled as a whole, too")
    p.add_argument("--out", default="", help="the file of results")
    args = p.parse_args()
    start = time.perf_counter()

    def said(what: str) -> None:
        synchronise()
        print(f"[{time.perf_counter() - start:.1f} s] {what}", flush=True)

    report = Report(args.out, args.device, f"transformers {transformers.__version__}; {args.layers} layers, f16; plans "
                    f"for {args.columns} tokens; in CUDA graphs" + (", norms and rotary embeddings compiled"
                                                                      if args.compile else ""))
    if args.compile:
        compile_small()
    dense = build(args)
    ids = torch.randint(args.vocab, (1, args.prompt), device=args.device)
    said("the network")
    if not args.sparse_only:
        report.add("dense", **measure(dense, ids, args))
        report.add("dense, called", **measure(dense, ids, args, lambda f: f, 1))
    for kind in args.zeros.split(","):
        pruned = prune(dense, kind)
        want = Decoder(pruned, 1, args.prompt, 0).read(ids)
        said(f"pruned to {kind}")
        for columns in args.columns.split(","):
            model = sparse(pruned, int(columns))
            took = prepare(model)
            explain(model)
            said("prepared")
            off = distance(Decoder(model, 1, args.prompt, 0).read(ids), want)
            said("the first product of each layer")
            assert off < 0.02, f"logits are off by {off}"
            report.add(f"{kind}, spmm for {columns}", **measure(model, ids, args), distance=off, **{"prepare, s": took})
            said("measured")
            del model
        if kind == "2:4" and not args.sparse_only:
            model = semi_structured(pruned)
            off = distance(Decoder(model, 1, args.prompt, 0).read(ids), want)
            report.add("2:4, torch.sparse", **measure(model, ids, args), distance=off)
    if args.whole:
        dense.model.compile(dynamic=False)
        report.add("dense, compiled as a whole", **measure(dense, ids, args))
    said("done")


if __name__ == "__main__":
    main()
