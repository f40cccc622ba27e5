"""Layers of graph networks that take PyTorch Geometric's edge_index."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import nn

from .torch import Pattern, mm, sample, softmax

__all__ = ["GATConv", "GCNConv", "GINConv", "adjacency"]


def adjacency(edge_index: torch.Tensor, nodes: int, weight: Optional[torch.Tensor] = None, *, loops: bool = False,
              normalise: bool = False) -> torch.Tensor:
    """The matrix A by which A·x sums over the edges that lead to each node.

    Parameters
    ----------
    edge_index : torch.Tensor
        2×edges: sources and targets. Edges between the same nodes are summed.
    nodes : int
        How many nodes there are.
    weight : torch.Tensor, optional
        Of each edge; else 1.
    loops : bool
        Add an edge from each node to itself.
    normalise : bool
        D^-½·A·D^-½, as graph convolution has it (Kipf and Welling 2017, section 2).

    Returns
    -------
    torch.Tensor
        sparse_csr of nodes×nodes.
    """
    source, target = edge_index
    if weight is None:
        weight = torch.ones(source.numel(), device=source.device)
    if loops:
        all_nodes = torch.arange(nodes, device=source.device)
        source, target = torch.cat([source, all_nodes]), torch.cat([target, all_nodes])
        weight = torch.cat([weight, weight.new_ones(nodes)])
    if normalise:
        degree = weight.new_zeros(nodes).scatter_add_(0, target, weight)
        scale = degree.pow(-0.5)
        scale[degree == 0] = 0
        weight = scale[source] * weight * scale[target]
    return torch.sparse_coo_tensor(torch.stack([target, source]), weight, (nodes, nodes)).coalesce().to_sparse_csr()


class _Graph(nn.Module):
    """Keeps the pattern of the last graph, which must not be changed in place."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options
        self._last: Any = None

    def _aggregate(self, x: torch.Tensor, edge_index: torch.Tensor, weight: Optional[torch.Tensor],
                   **how: bool) -> torch.Tensor:
        pattern, values = self._graph(x, edge_index, weight, **how)
        return mm(pattern, values, x)

    def _graph(self, x: torch.Tensor, edge_index: torch.Tensor, weight: Optional[torch.Tensor] = None,
               **how: bool) -> tuple:
        """The pattern of the edges, and their weights."""
        key = (edge_index, edge_index._version, weight, 0 if weight is None else weight._version, x.shape[0], x.dtype)
        if self._last is None or not all(a is b or isinstance(a, int) and a == b for a, b in zip(self._last[0], key)):
            a = adjacency(edge_index, x.shape[0], weight, **how)
            if a.values().dtype != x.dtype:
                a = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), a.values().to(x.dtype), a.shape)
            self._last = key, Pattern(a, **self._options), a.values()
        return self._last[1:]


class GCNConv(_Graph):
    """Graph convolution (Kipf and Welling 2017, equation 2): D^-½·(A+I)·D^-½·x·W + bias.

    Parameters
    ----------
    in_channels, out_channels : int
    bias : bool
    **options
        As for `spmm.prepare`.
    """

    def __init__(self, in_channels: int, out_channels: int, bias: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor,
                edge_weight: Optional[torch.Tensor] = None) -> torch.Tensor:
        y = self._aggregate(self.lin(x), edge_index, edge_weight, loops=True, normalise=True)
        return y if self.bias is None else y + self.bias


class GINConv(_Graph):
    """Graph isomorphism layer (Xu and others 2019, equation 4.1): nn((1 + eps)·x + A·x).

    Parameters
    ----------
    module : nn.Module
    eps : float
    **options
        As for `spmm.prepare`.
    """

    def __init__(self, module: nn.Module, eps: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self.nn, self.eps = module, eps

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.nn((1 + self.eps) * x + self._aggregate(x, edge_index, None))


class GATConv(_Graph):
    """Graph attention (Veličković and others 2018, equations 3 to 6), with an edge from each node to itself.

    Edges between the same nodes are one edge, other than in PyTorch Geometric's layer. The parameters have its names.

    Parameters
    ----------
    in_channels, out_channels : int
        out_channels is of each head.
    heads : int
    concat : bool
        The heads' results side by side; else their mean.
    negative_slope : float
        Of LeakyReLU.
    bias : bool
    **options
        As for `spmm.prepare`.
    """

    def __init__(self, in_channels: int, out_channels: int, heads: int = 1, concat: bool = True,
                 negative_slope: float = 0.2, bias: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.heads, self.concat, self.negative_slope = heads, concat, negative_slope
        self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_channels))
        nn.init.xavier_uniform_(self.att_src)
        nn.init.xavier_uniform_(self.att_dst)
        self.bias = nn.Parameter(torch.zeros(heads * out_channels if concat else out_channels)) if bias else None

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        h = self.lin(x).view(x.shape[0], self.heads, -1)
        source, target = (h * self.att_src).sum(-1), (h * self.att_dst).sum(-1)
        pattern, _ = self._graph(h, edge_index, loops=True)
        heads = [self._head(pattern, h[:, i], source[:, i], target[:, i]) for i in range(self.heads)]
        y = torch.cat(heads, 1) if self.concat else torch.stack(heads).mean(0)
        return y if self.bias is None else y + self.bias

    def _head(self, pattern: Pattern, h: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        one = torch.ones_like(source)  # the sampled product of (t 1) and (1 s) has t + s for each edge
        e = sample(pattern, torch.stack([target, one], 1), torch.stack([one, source], 1))
        attention = softmax(pattern, nn.functional.leaky_relu(e, self.negative_slope))
        return mm(pattern, attention, h)
