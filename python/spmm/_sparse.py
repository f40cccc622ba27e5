"""Matrices to prepare: what scipy.sparse, PyTorch, CuPy and dense arrays hold, in the host's memory."""

from __future__ import annotations

import ctypes as ct
import sys
from typing import Any, Optional

from . import _arrays, _lib


def prepare(device: Any, a: Any, options: _lib.Options, threshold: Optional[float], prune: Optional[float],
            keep_zeros: bool) -> tuple:
    """Prepares a matrix, and returns the plan's handle and the number of entries, None if that is dense."""
    if threshold is not None or prune is not None:
        a = _sparsified(a, threshold, prune)
    handle = ct.c_uint64()
    if _arrays.is_torch(a) and str(a.layout) != "torch.strided":
        n = _csr(device, options, handle, *_of_torch(a))
    elif hasattr(a, "tocsr"):
        n = _csr(device, options, handle, *_of_scipy(a))
    else:
        n = None
        _dense(device, options, handle, a, keep_zeros)
    return handle.value, n


def _sparsified(a: Any, threshold: Optional[float], prune: Optional[float]) -> Any:
    """A dense matrix whose elements up to a threshold are zeros; or the smallest, that share of all."""
    if threshold is not None and prune is not None:
        raise ValueError("threshold and prune: give one")
    if hasattr(a, "tocsr") or _arrays.is_torch(a) and str(a.layout) != "torch.strided":
        raise TypeError("threshold and prune are for dense matrices")
    if prune is not None and not 0 <= prune < 1:
        raise ValueError(f"prune={prune}: want the share of elements that become zeros, from 0 to below 1")
    torch = _arrays.is_torch(a)
    if torch:
        a = a.detach()
        size = a.abs()
        if prune is not None:
            k = int(prune * a.numel())
            threshold = float(size.flatten().float().kthvalue(k).values) if k else -1.0
        return a.masked_fill(size <= threshold, 0)
    import numpy
    a = numpy.array(a)
    size = abs(a)
    if prune is not None:
        k = int(prune * a.size)
        threshold = numpy.partition(size, k - 1, axis=None)[k - 1] if k else -1.0
    a[size <= threshold] = 0
    return a


def _of_torch(a: Any) -> tuple:
    """Shape, offsets, indices, values and whether they are by columns."""
    layout = str(a.layout).rpartition(".")[2]
    if layout == "sparse_coo":
        a = a.coalesce().to_sparse_csr()
        layout = "sparse_csr"
    if layout == "sparse_csr":
        return a.shape, a.crow_indices(), a.col_indices(), a.values(), False
    if layout == "sparse_csc":
        return a.shape, a.ccol_indices(), a.row_indices(), a.values(), True
    if layout == "sparse_bsr":
        import scipy.sparse  # type: ignore[import]
        arrays = (x.detach().cpu().numpy() for x in (a.values(), a.col_indices(), a.crow_indices()))
        return _of_scipy(scipy.sparse.bsr_matrix(tuple(arrays), shape=tuple(a.shape)))
    raise TypeError(f"a matrix of layout {a.layout}: want sparse_csr, sparse_csc, sparse_coo, sparse_bsr or strided")


def _of_scipy(a: Any) -> tuple:
    if a.format not in ("csr", "csc"):
        a = a.tocsr()
    if not a.has_canonical_format:
        a = a.copy()
        a.sum_duplicates()
    return a.shape, a.indptr, a.indices, a.data, a.format == "csc"


def _host(x: Any) -> _arrays.Array:
    """A contiguous vector in the host's memory."""
    if _arrays.is_torch(x):
        return _arrays.view(x.detach().cpu().contiguous())
    if _arrays.is_cupy(x):
        x = x.get()
    import numpy
    return _arrays.view(numpy.ascontiguousarray(x))


def _in_device(x: Any) -> _arrays.Array:
    """A contiguous vector in a CUDA device's memory."""
    return _arrays.view(x.detach().contiguous() if _arrays.is_torch(x) else sys.modules["cupy"].ascontiguousarray(x))


def _cuda(x: Any) -> Optional[int]:
    """The number of the CUDA device whose memory a vector is in."""
    if _arrays.is_torch(x):
        return x.device.index if x.is_cuda else None
    return x.device.id if _arrays.is_cupy(x) else None


def _written(x: Any) -> None:
    """Waits until what the current stream writes to a CUDA device's memory is there."""
    if _arrays.is_torch(x):
        sys.modules["torch"].cuda.current_stream(x.device).synchronize()
    else:
        sys.modules["cupy"].cuda.get_current_stream().synchronize()


def _csr(device: Any, options: _lib.Options, handle: ct.c_uint64, shape: tuple, ptr: Any, idx: Any, val: Any,
         by_columns: bool) -> int:
    if not _arrays.is_torch(val) and val.dtype.kind in "biu":
        val = val.astype("float32")
    in_device = device.cuda is not None and all(_cuda(x) == device.cuda for x in (ptr, idx, val))
    p, i, v = (_in_device(x) if in_device else _host(x) for x in (ptr, idx, val))
    for what, x in (("offsets", p), ("indices", i)):
        if x.type not in (_lib.I32, _lib.I64):
            raise TypeError(f"{what} of {x.owner.dtype}: want int32 or int64")
    a = _lib.CSR(rows=shape[0], cols=shape[1], nnz=v.shape[0], row_ptr=p.address, col_idx=i.address, values=v.address,
                 row_ptr_type=p.type, col_idx_type=i.type, type=v.type, by_columns=by_columns, in_device=in_device)
    lines = shape[1 if by_columns else 0]
    if p.shape != (lines + 1,) or i.shape != v.shape:
        raise ValueError(f"a matrix of {shape[0]}×{shape[1]} with {p.shape[0]} offsets, {i.shape[0]} indices and "
                         f"{v.shape[0]} values: want {lines + 1} offsets, and an index for each value")
    if in_device:
        _written(val)
    _lib.interruptible(_lib.plan_csr, device.handle, ct.byref(a), ct.byref(options), ct.byref(handle))
    return v.shape[0]


def _dense(device: Any, options: _lib.Options, handle: ct.c_uint64, a: Any, keep_zeros: bool) -> None:
    if _arrays.is_torch(a):
        a = a.detach().cpu()
    elif _arrays.is_cupy(a):
        a = a.get()
    v = _arrays.view(a)
    if len(v.shape) != 2:
        raise ValueError(f"a matrix of shape {v.shape}: want two dimensions")
    v, ld, column_major = _arrays.lines(v)
    d = _lib.Dense(data=v.address, ld=ld, type=v.type, column_major=column_major)
    _lib.interruptible(_lib.plan_dense, device.handle, *v.shape, ct.byref(d), not keep_zeros, ct.byref(options),
                       ct.byref(handle))
