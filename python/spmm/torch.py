"""PyTorch: products with gradients, layers with sparse weights, and a network whose layers become sparse."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional, Union

import torch
from torch import nn

from ._plan import Plan, prepare

__all__ = ["Pattern", "SparseLinear", "mm", "sparsify"]


class Pattern:
    """Where a sparse matrix has entries, and plans of it and its transpose on a device.

    Parameters
    ----------
    a : torch.Tensor
        A sparse_csr tensor.
    device : str, optional
        A device of spmm; that of a, if there is none.
    rows : bool
        Products are B·Aᵀ, of rows of B, as layers have them, in place of A·B.
    **options
        As for `spmm.prepare`.
    """

    def __init__(self, a: torch.Tensor, device: Optional[str] = None, rows: bool = False, **options: Any) -> None:
        if a.layout != torch.sparse_csr:
            raise TypeError(f"a pattern of layout {a.layout}: want sparse_csr")
        if device is None:
            device = f"cuda:{a.device.index or 0}" if a.is_cuda else "cpu"
        self.shape, self.by_rows = tuple(a.shape), rows
        if rows:
            options.update(right=True, transpose=True)
        self.plan = prepare(a, device, **options)
        self._back: Optional[Plan] = None
        crow, col = a.crow_indices(), a.col_indices().long()
        self.rows = torch.repeat_interleave(torch.arange(a.shape[0], device=crow.device), crow.diff())
        self.cols = col
        self._set: Any = (weakref.ref(a.values()), a.values()._version)
        self._key = _register(self)

    def set(self, values: torch.Tensor) -> None:
        """Makes these the matrix's values, unless they are."""
        was, version = self._set
        if was() is values and version == values._version:
            return
        for plan in (self.plan, self._back):
            if plan is not None:
                plan._set(values)  # which keeps no reference to memory that may be a graph's
        self._set = (weakref.ref(values), values._version)

    def product(self, values: torch.Tensor, b: torch.Tensor, transpose: bool, **epilogue: Any) -> torch.Tensor:
        """A·B with these values, or Aᵀ·B; B·Aᵀ or B·A by rows."""
        if transpose and self._back is None:
            self._back, self._set = self.plan.T, (_none, 0)
        self.set(values)
        return (self._back if transpose else self.plan)(b, **epilogue)

    def sddmm(self, g: torch.Tensor, b: torch.Tensor, step: int = 1 << 20) -> torch.Tensor:
        """The entries of G·Bᵀ (by rows Gᵀ·B) where the pattern has some: some at a time, to bound the memory."""
        if self.by_rows:
            g, b = g.t(), b.t()
        parts = [(g[self.rows[i:i + step]] * b[self.cols[i:i + step]]).sum(1) for i in range(0, len(self.rows), step)]
        return torch.cat(parts) if parts else g.new_zeros(0)


def _none() -> None:
    """A reference to nothing."""


_patterns: "weakref.WeakValueDictionary[int, Pattern]" = weakref.WeakValueDictionary()


def _register(p: Pattern) -> int:
    key = max(_patterns, default=0) + 1
    _patterns[key] = p
    return key


def _multiply(values: torch.Tensor, b: torch.Tensor, key: int, transpose: bool) -> torch.Tensor:
    return _patterns[key].product(values, b, transpose)


# PyTorch compiles around the operator: it knows the result's shape only. Before 2.4 there is no such operator.
if hasattr(torch.library, "custom_op"):
    _multiply_op: Callable = torch.library.custom_op("spmm::multiply", mutates_args=())(_multiply)

    @_multiply_op.register_fake
    def _(values: torch.Tensor, b: torch.Tensor, key: int, transpose: bool) -> torch.Tensor:
        p = _patterns[key]
        out = p.shape[1 if transpose else 0]
        return b.new_empty((b.shape[0], out) if p.by_rows else (out, b.shape[1]))
else:
    _multiply_op = _multiply


def _operator() -> Callable:
    """What multiplies: the operator while PyTorch compiles, else the function, which costs less time of the host."""
    compiler = getattr(torch, "compiler", None)
    return _multiply_op if compiler is not None and compiler.is_compiling() else _multiply


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, b: torch.Tensor, key: int) -> torch.Tensor:
        ctx.save_for_backward(values, b)
        ctx.key = key
        return _operator()(values, b, key, False)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple:
        values, b = ctx.saved_tensors
        g = g.contiguous()
        dv = _patterns[ctx.key].sddmm(g, b).to(values.dtype) if ctx.needs_input_grad[0] else None
        db = _operator()(values, g, ctx.key, True) if ctx.needs_input_grad[1] else None
        return dv, db, None


def mm(pattern: Pattern, values: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Computes A·B, or B·Aᵀ with a pattern by rows, with gradients of A's values and of B.

    Parameters
    ----------
    pattern : Pattern
        Where A, of M×K, has entries.
    values : torch.Tensor
        The nnz values of its entries, by rows.
    b : torch.Tensor
        B of K×n; n×K by rows.

    Returns
    -------
    torch.Tensor
        C of M×n, on B's device; n×M by rows.
    """
    if not (torch.is_grad_enabled() and (values.requires_grad or b.requires_grad)):
        return _operator()(values, b, pattern._key, False)
    if values.requires_grad:  # training may write them by .data, which counts no version
        pattern._set = (_none, 0)
    return _Multiply.apply(values, b, pattern._key)


class SparseLinear(nn.Module):
    """nn.Linear with a sparse weight: y = x·Wᵀ + bias.

    Its parameters are the weight's values and the bias; its buffers are the weight's offsets and indices, so that
    state_dict holds all. Plans are made for the device of the values when they are needed.

    Parameters
    ----------
    weight : torch.Tensor
        W of out×in, dense or sparse_csr. Zeros of a dense one are not entries.
    bias : torch.Tensor, optional
        Of out elements.
    **options
        As for `spmm.prepare`.
    """

    def __init__(self, weight: torch.Tensor, bias: Optional[torch.Tensor] = None, **options: Any) -> None:
        super().__init__()
        w = weight.detach()
        if w.layout == torch.strided:
            w = w.to_sparse_csr()
        self.out_features, self.in_features = w.shape
        self.values = nn.Parameter(w.values().clone())
        self.register_buffer("crow", w.crow_indices().clone())
        self.register_buffer("col", w.col_indices().clone())
        self.bias = nn.Parameter(bias.detach().clone()) if bias is not None else None
        self._options = options
        self._pattern: Optional[Pattern] = None
        self._made: Any = None
        self._register_load_state_dict_pre_hook(self._resize)

    def _resize(self, state: dict, prefix: str, *args: Any) -> None:
        """Takes a pattern with another number of entries."""
        new = state.get(prefix + "values")
        if new is not None and new.shape != self.values.shape:
            self.values = nn.Parameter(torch.empty_like(new, device=self.values.device))
            self.col = torch.empty(new.shape, dtype=self.col.dtype, device=self.col.device)
        self._pattern = None

    def weight(self) -> torch.Tensor:
        """W as a sparse_csr tensor."""
        return torch.sparse_csr_tensor(self.crow, self.col, self.values.detach(), (self.out_features, self.in_features))

    def pattern(self) -> Pattern:
        """The pattern of W on the device of its values."""
        made = (self.values.device, self.values.dtype)
        if self._pattern is None or self._made != made:
            self._pattern, self._made = Pattern(self.weight(), rows=True, **self._options), made
        return self._pattern

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, self.in_features)
        p = self.pattern()
        if not torch.is_grad_enabled() and _operator() is _multiply:  # the bias is added where the product is stored
            y = p.product(self.values, flat, False, bias=self.bias)
        else:
            y = mm(p, self.values, flat)
            if self.bias is not None:
                y = y + self.bias
        return y.reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, {self.values.numel()} entries, bias={self.bias is not None}"


def magnitude(weight: torch.Tensor, sparsity: float) -> torch.Tensor:
    """The mask that drops this share of the elements, the smallest."""
    k = int(sparsity * weight.numel())
    mask = torch.ones(weight.numel(), dtype=torch.bool, device=weight.device)
    if k:
        mask[weight.abs().flatten().float().topk(k, largest=False).indices] = False
    return mask.view(weight.shape)


def n_of_m(weight: torch.Tensor, n: int, m: int) -> torch.Tensor:
    """The mask that keeps the n largest of each m elements of a row."""
    if weight.shape[1] % m:
        raise ValueError(f"{n}:{m} of rows of {weight.shape[1]} elements: want a multiple of {m}")
    groups = weight.abs().float().reshape(weight.shape[0], -1, m)
    mask = torch.zeros_like(groups, dtype=torch.bool)
    mask.scatter_(2, groups.topk(n, dim=2).indices, True)
    return mask.reshape(weight.shape)


def vectors(weight: torch.Tensor, sparsity: float, length: int = 8) -> torch.Tensor:
    """The mask that drops this share of the column vectors of some rows, those with the smallest sums of squares."""
    if weight.shape[0] % length:
        raise ValueError(f"vectors of {length} rows in {weight.shape[0]}: want a multiple")
    norms = weight.float().pow(2).reshape(-1, length, weight.shape[1]).sum(1)
    return magnitude(norms, sparsity).repeat_interleave(length, 0)


def sparsify(model: nn.Module, sparsity: Union[float, str, Callable] = 0.5, *, vector: int = 0,
             skip: Callable[[str, nn.Linear], bool] = lambda name, layer: False, **options: Any) -> nn.Module:
    """Prunes the linear layers of a network, and replaces each by a `SparseLinear`.

    Parameters
    ----------
    model : nn.Module
        It is changed.
    sparsity : float, str or callable
        The share of each weight that becomes zeros, the smallest; "2:4" for such a pattern; or a function of a layer's
        name and weight that returns the mask of what stays.
    vector : int
        Drops whole column vectors of that many rows.
    skip : callable
        Tells of a layer's name and module whether it stays as it is.
    **options
        As for `spmm.prepare`.

    Returns
    -------
    nn.Module
        The model.
    """
    for name, layer in [x for x in model.named_modules() if type(x[1]) is nn.Linear]:
        if skip(name, layer):
            continue
        w = layer.weight.detach()
        if callable(sparsity):
            mask = sparsity(name, w)
        elif isinstance(sparsity, str):
            mask = n_of_m(w, *(int(x) for x in sparsity.split(":")))
        else:
            mask = vectors(w, sparsity, vector) if vector else magnitude(w, sparsity)
        new = SparseLinear(w * mask, layer.bias, **options)
        parent, _, last = name.rpartition(".")
        if not name:
            return new
        setattr(model.get_submodule(parent), last, new)
    return model
