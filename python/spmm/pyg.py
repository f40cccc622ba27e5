"""Layers of graph networks that take PyTorch Geometric's edge_index."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import nn

from .torch import Pattern, mm

__all__ = ["GCNConv", "GINConv", "adjacency"]


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
        key = (edge_index, edge_index._version, weight, 0 if weight is None else weight._version, x.shape[0], x.dtype)
        if self._last is None or not all(a is b or isinstance(a, int) and a == b for a, b in zip(self._last[0], key)):
            a = adjacency(edge_index, x.shape[0], weight, **how)
            if a.values().dtype != x.dtype:
                a = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), a.values().to(x.dtype), a.shape)
            self._last = key, Pattern(a, **self._options), a.values()
        return mm(self._last[1], self._last[2], x)


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
