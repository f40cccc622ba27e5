"""PyTorch: products with gradients, layers with sparse weights, and a network whose layers become sparse."""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any, Callable, Dict, Optional, Union

import torch
from torch import nn

from . import _lib
from ._plan import Plan, prepare

__all__ = ["Pattern", "SparseLinear", "magnitude", "mm", "n_of_m", "sample", "softmax", "sparsify", "vectors"]


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
        self._back: Any = None  # the plan of the transpose, once it is needed
        self._has: list = [(weakref.ref(a.values()), a.values()._version), (_none, 0)]  # the plans' values
        self._key = _register(self, self.shape, rows)

    def pattern(self) -> "Pattern":
        """Itself; a layer has this method too."""
        return self

    def set(self, values: torch.Tensor, transpose: bool = False) -> Plan:
        """Makes these the values of the matrix, unless they are.

        Parameters
        ----------
        values : torch.Tensor
            The nnz values of its entries, by rows.
        transpose : bool
            For the plan of the transpose.

        Returns
        -------
        Plan
            That multiplies with them.
        """
        if transpose and self._back is None:
            self._back = self.plan.T
        plan = self._back if transpose else self.plan
        was, version = self._has[transpose]
        if was() is not values or version != values._version or _captured(values):
            plan._set(values)  # which keeps no reference to memory that may be a graph's
            self._has[transpose] = (weakref.ref(values), values._version)
        return plan

    def forget(self) -> None:
        """Has the next products set their values, even those that look unchanged: for what wrote them by .data."""
        self._has = [(_none, 0), (_none, 0)]

    def product(self, values: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor] = None,
                transpose: bool = False) -> torch.Tensor:
        """Computes A·B + bias, or by rows B·Aᵀ + bias, without gradients.

        Parameters
        ----------
        values, b, bias
            See `mm`.
        transpose : bool
            Aᵀ·B in place of A·B, and by rows B·A.

        Returns
        -------
        torch.Tensor
            C.
        """
        plan = self.set(values, transpose)
        return plan._product(_lib.plan_enqueue, b, None, 1.0, 0.0, bias, None, None)

    def sampled(self, g: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Computes the entries of G·Bᵀ, by rows Gᵀ·B, where the pattern has some.

        Parameters
        ----------
        g : torch.Tensor
            Of M×n elements; n×M by rows.
        b : torch.Tensor
            Of K×n elements; n×K by rows.
        dtype : torch.dtype
            The type of the results.

        Returns
        -------
        torch.Tensor
            A value for each entry, by rows.
        """
        out = g.new_empty(self.plan.nnz, dtype=dtype)
        if self.by_rows:  # the plan's matrix is the transpose
            g, b = b.t(), g.t()
        return self.plan.sample(g, b, out=out)


def _none() -> None:
    """A reference to nothing."""


def _captured(values: torch.Tensor) -> bool:
    """Whether a CUDA graph is being captured in which the values may change from replay to replay."""
    return values.requires_grad and values.is_cuda and torch.cuda.is_current_stream_capturing()


# Operators know a pattern, or a layer, which makes its pattern when it multiplies first, by a string: PyTorch's
# compiler keeps strings constant, and all that it must know of the result is in there.
_owners: "weakref.WeakValueDictionary[str, Any]" = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def _register(owner: Any, shape: tuple, by_rows: bool) -> str:
    key = f"{next(_numbers)} {shape[0]} {shape[1]} {int(by_rows)}"
    _owners[key] = owner
    return key


def _shape(key: str) -> tuple:
    """Rows and columns of the matrix, and whether it multiplies rows."""
    _, rows, cols, by_rows = key.split()
    return int(rows), int(cols), by_rows == "1"


def _multiply(values: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor], key: str,
              transpose: bool) -> torch.Tensor:
    return _owners[key].pattern().product(values, b, bias, transpose)


def _multiply_meta(values: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor], key: str,
                   transpose: bool) -> torch.Tensor:
    rows, cols, by_rows = _shape(key)
    out = cols if transpose else rows
    return b.new_empty((b.shape[0], out) if by_rows else (out, b.shape[1]))


def _sampled(values: torch.Tensor, g: torch.Tensor, b: torch.Tensor, key: str) -> torch.Tensor:
    return _owners[key].pattern().sampled(g, b, values.dtype)


def _sampled_meta(values: torch.Tensor, g: torch.Tensor, b: torch.Tensor, key: str) -> torch.Tensor:
    return values.new_empty(values.shape)


def _context(ctx: Any, inputs: tuple, output: Any) -> None:
    values, b, _, ctx.key, ctx.transpose = inputs
    ctx.save_for_backward(values, b)


def _gradients(ctx: Any, g: torch.Tensor, multiply: Callable = _multiply, sampled: Callable = _sampled) -> tuple:
    """The gradients of values, B and bias: SDDMM, the transpose's product, sums."""
    values, b = ctx.saved_tensors
    need, key = ctx.needs_input_grad, ctx.key
    g = g.contiguous()
    dv = sampled(values, *((b, g) if ctx.transpose else (g, b)), key) if need[0] else None
    db = multiply(values, g, None, key, not ctx.transpose) if need[1] else None
    dbias = g.sum(0 if _shape(key)[2] else 1) if need[2] else None
    return dv, db, dbias, None, None


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:  # type: ignore[override]
        _context(ctx, inputs, None)
        return _multiply(*inputs)

    backward = staticmethod(_gradients)  # type: ignore[assignment]


class _Sample(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        ctx.pattern = pattern
        ctx.save_for_backward(x, y)
        return pattern.sampled(x, y, x.dtype)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple:  # type: ignore[override]
        x, y = ctx.saved_tensors
        p, g, need = ctx.pattern, g.contiguous(), ctx.needs_input_grad
        return (None, p.product(g, y) if need[1] else None, p.product(g, x, transpose=True) if need[2] else None)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, values: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        ctx.pattern = pattern
        rows, cols = (values.new_ones(n, 1) for n in pattern.shape)
        s = pattern.plan.sample(rows, cols, scale=values.contiguous(), softmax=True)
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple:  # type: ignore[override]
        """s ⊙ (g − the sum of s ⊙ g in the entry's row)."""
        (s,), p = ctx.saved_tensors, ctx.pattern
        cols = s.new_ones(p.shape[1], 1)
        sums = p.product(s * g, cols)
        return None, s * (g - p.sampled(sums, cols, s.dtype))


def _define() -> torch.library.Library:
    """Defines the operators that torch.compile treats as opaque. Products that are not compiled do without them."""
    ops = torch.library.Library("spmm", "DEF")
    ops.define("multiply(Tensor values, Tensor b, Tensor? bias, str key, bool transpose) -> Tensor")
    ops.define("sampled(Tensor values, Tensor g, Tensor b, str key) -> Tensor")
    for name, f, meta in (("multiply", _multiply, _multiply_meta), ("sampled", _sampled, _sampled_meta)):
        ops.impl(name, f, "CPU")
        ops.impl(name, f, "CUDA")
        if _compiles:
            torch.library.register_fake(f"spmm::{name}", meta, lib=ops)  # type: ignore[attr-defined]
    if _compiles:
        back = functools.partial(_gradients, multiply=torch.ops.spmm.multiply, sampled=torch.ops.spmm.sampled)
        register: Callable = torch.library.register_autograd  # type: ignore[attr-defined]
        register("spmm::multiply", back, setup_context=_context, lib=ops)
    return ops


_compiles = hasattr(torch.library, "register_autograd")  # from PyTorch 2.4 on
_ops = _define()
_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


def mm(pattern: Pattern, values: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
    """Computes A·B + bias, or B·Aᵀ + bias with a pattern by rows, with gradients of A's values, B and the bias.

    A CUDA graph that captures it reads the values anew in each replay if they require a gradient; else it keeps those
    of the capture.

    Parameters
    ----------
    pattern : Pattern
        Where A, of M×K, has entries.
    values : torch.Tensor
        The nnz values of its entries, by rows.
    b : torch.Tensor
        B of K×n; n×K by rows.
    bias : torch.Tensor, optional
        Of M elements: one for each row of the result, or by rows each column.

    Returns
    -------
    torch.Tensor
        C of M×n, on B's device; n×M by rows.
    """
    if _compiling():
        return torch.ops.spmm.multiply(values, b, bias, pattern._key, False)
    return _mm(pattern, values, b, bias)


def _mm(pattern: Pattern, values: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor]) -> torch.Tensor:
    if not (torch.is_grad_enabled() and (values.requires_grad or b.requires_grad or
                                         bias is not None and bias.requires_grad)):
        return pattern.product(values, b, bias)
    if values.requires_grad:  # training may write them by .data, which counts no version
        pattern.forget()
    return _Multiply.apply(values, b, bias, pattern._key, False)


def sample(pattern: Pattern, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Computes the entries of X·Yᵀ where A has some (SDDMM), with gradients of X and Y.

    Parameters
    ----------
    pattern : Pattern
        Where A, of M×K, has entries; not by rows.
    x, y : torch.Tensor
        X of M×n, Y of K×n.

    Returns
    -------
    torch.Tensor
        A value for each entry, by rows.
    """
    _not_by_rows(pattern)
    return _Sample.apply(pattern, x, y)


def softmax(pattern: Pattern, values: torch.Tensor) -> torch.Tensor:
    """Computes the softmax of the values of each row, with gradients.

    Parameters
    ----------
    pattern : Pattern
        Where A has entries; not by rows.
    values : torch.Tensor
        A value for each entry, by rows.

    Returns
    -------
    torch.Tensor
        As many.
    """
    _not_by_rows(pattern)
    return _Softmax.apply(pattern, values)


def _not_by_rows(pattern: Pattern) -> None:
    if pattern.by_rows:
        raise ValueError("a pattern by rows is for layers: make one with rows=False")


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

    crow: torch.Tensor
    col: torch.Tensor

    def __init__(self, weight: torch.Tensor, bias: Optional[torch.Tensor] = None, **options: Any) -> None:
        super().__init__()
        w = weight.detach()
        if w.layout == torch.strided:
            w = w.to_sparse_csr()
        self.out_features, self.in_features = w.shape
        self.values = nn.Parameter(w.values().clone())
        self.register_buffer("crow", w.crow_indices().clone())
        self.register_buffer("col", w.col_indices().clone())
        self.register_parameter("bias", nn.Parameter(bias.detach().clone()) if bias is not None else None)
        self._options = options
        self._pattern: Optional[Pattern] = None
        self._made: Any = None
        self._key = _register(self, tuple(w.shape), True)
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
        v: Any = self._parameters["values"]
        made = (v.device, v.dtype)
        if self._pattern is None or self._made != made:
            self._pattern, self._made = Pattern(self.weight(), rows=True, **self._options), made
        return self._pattern

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x if x.dim() == 2 else x.reshape(-1, self.in_features)
        if _compiling():
            y = torch.ops.spmm.multiply(self.values, flat, self.bias, self._key, False)
        else:
            parameters: Any = self._parameters  # self.values takes longer
            y = _mm(self.pattern(), parameters["values"], flat, parameters["bias"])
        return y if x.dim() == 2 else y.reshape(*x.shape[:-1], self.out_features)

    def __getstate__(self) -> Dict[str, Any]:
        """Copies and files have no plans."""
        return {**self.__dict__, "_pattern": None, "_made": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._key = _register(self, (self.out_features, self.in_features), True)

    def extra_repr(self) -> str:
        """What repr says of the layer."""
        return f"{self.in_features}, {self.out_features}, {self.values.numel()} entries, bias={self.bias is not None}"


def magnitude(weight: torch.Tensor, sparsity: float) -> torch.Tensor:
    """The mask that drops the smallest elements.

    Parameters
    ----------
    weight : torch.Tensor
        W of out×in.
    sparsity : float
        The share of elements to drop.

    Returns
    -------
    torch.Tensor
        Of bool, True where an element stays.
    """
    k = int(sparsity * weight.numel())
    mask = torch.ones(weight.numel(), dtype=torch.bool, device=weight.device)
    if k:
        mask[weight.abs().flatten().float().topk(k, largest=False).indices] = False
    return mask.view(weight.shape)


def n_of_m(weight: torch.Tensor, n: int, m: int) -> torch.Tensor:
    """The mask that keeps the n largest of each m elements of a row.

    Parameters
    ----------
    weight : torch.Tensor
        W of out×in, where in is a multiple of m.
    n, m : int

    Returns
    -------
    torch.Tensor
        Of bool, True where an element stays.
    """
    if weight.shape[1] % m:
        raise ValueError(f"{n}:{m} of rows of {weight.shape[1]} elements: want a multiple of {m}")
    groups = weight.abs().float().reshape(weight.shape[0], -1, m)
    mask = torch.zeros_like(groups, dtype=torch.bool)
    mask.scatter_(2, groups.topk(n, dim=2).indices, True)
    return mask.reshape(weight.shape)


def vectors(weight: torch.Tensor, sparsity: float, length: int = 8) -> torch.Tensor:
    """The mask that drops the column vectors of some rows that have the smallest sums of squares.

    Parameters
    ----------
    weight : torch.Tensor
        W of out×in, where out is a multiple of length.
    sparsity : float
        The share of vectors to drop.
    length : int
        Rows of a vector.

    Returns
    -------
    torch.Tensor
        Of bool, True where an element stays.
    """
    if weight.shape[0] % length:
        raise ValueError(f"vectors of {length} rows in {weight.shape[0]}: want a multiple")
    norms = weight.float().pow(2).reshape(-1, length, weight.shape[1]).sum(1)
    return magnitude(norms, sparsity).repeat_interleave(length, 0)


def sparsify(model: nn.Module, sparsity: Union[float, str, Callable] = 0.5, *, vector: int = 0,
             skip: Optional[Callable[[str, nn.Linear], bool]] = None, **options: Any) -> nn.Module:
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
    skip : callable, optional
        Tells of a layer's name and module whether it stays as it is.
    **options
        As for `spmm.prepare`.

    Returns
    -------
    nn.Module
        The model.
    """
    for name, layer in [x for x in model.named_modules() if type(x[1]) is nn.Linear]:
        if skip is not None and skip(name, layer):
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
