"""Dense matrices on any device, and sequences of products with them."""

from __future__ import annotations

import ctypes as ct
import weakref
from typing import Any, Optional

from . import _arrays, _lib
from ._plan import ACTIVATIONS, Device, Plan


class Tensor:
    """A dense matrix on a device, with undefined contents until it is written.

    Products of arrays in the host's memory copy B and C each time; tensors stay on the device.

    Parameters
    ----------
    device : Device
        See `open`.
    shape : tuple
        Rows and columns.
    dtype : optional
        "float16", "bfloat16", "float32" or "float64".
    order : "C" or "F"
        By rows or by columns.
    """

    def __init__(self, device: Device, shape: tuple, dtype: Any = "float32", order: str = "C") -> None:
        if order not in ("C", "F"):
            raise ValueError(f"order={order!r}: want 'C' or 'F'")
        rows, cols = shape
        h = ct.c_uint64()
        self.shape, self._type = (int(rows), int(cols)), _arrays.type_of(dtype)
        _lib.check(_lib.tensor_new(device.handle, rows, cols, self._type, order == "F", ct.byref(h)))
        self.device, self._handle = device, h.value
        self._finalizer = weakref.finalize(self, _lib.tensor_close, self._handle)

    @property
    def dtype(self) -> str:
        """The name of the element type."""
        return _arrays.NAME[self._type]

    def write(self, array: Any) -> "Tensor":
        """Copies an array to the device.

        Parameters
        ----------
        array : array
            In the host's memory, of the tensor's shape and type, with contiguous rows or columns.

        Returns
        -------
        Tensor
            Itself.
        """
        self._copy(_lib.tensor_upload, array)
        return self

    def read(self, out: Any = None) -> Any:
        """Copies the matrix to an array.

        Parameters
        ----------
        out : array, optional
            In the host's memory, of the tensor's shape and type, with contiguous rows or columns.

        Returns
        -------
        array
            out, or a new array of NumPy.
        """
        if out is None:
            import numpy
            if self._type == _lib.BF16:
                raise TypeError("NumPy has no bfloat16: give out, a tensor of PyTorch")
            out = numpy.empty(self.shape, self.dtype)
        self._copy(_lib.tensor_download, out)
        return out

    def _copy(self, f: Any, array: Any) -> None:
        a = _arrays.view(array)
        lies = _arrays.layout(a.shape, a.strides) if len(a.shape) == 2 else None
        if a.shape != self.shape or a.type != self._type or a.device is not None or lies is None:
            raise ValueError(f"an array of shape {tuple(a.shape)} and {_arrays.NAME.get(a.type)}: want {self.shape} of "
                             f"{self.dtype} in the host's memory, with contiguous rows or columns")
        _lib.interruptible(f, self._handle, ct.byref(_lib.Dense(a.address, lies[0], a.type, lies[1])))

    def close(self) -> None:
        """Frees the memory."""
        self._finalizer()

    def __repr__(self) -> str:
        return f"<spmm.Tensor {self.shape[0]}×{self.shape[1]} of {self.dtype} on {self.device!r}>"


def _product(plan: Plan, b: Tensor, c: Tensor, alpha: float, beta: float, bias: Optional[Tensor],
             activation: Optional[str]) -> tuple:
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation {activation!r}: want 'relu', 'gelu' or 'silu'")
    return (plan._handle, alpha, b._handle, beta, c._handle, 0 if bias is None else bias._handle,
            bias is not None and bias.shape[1] == 1 and c.shape[1] != 1, ACTIVATIONS[activation])


def run(plan: Plan, b: Tensor, c: Tensor, *, alpha: float = 1.0, beta: float = 0.0, bias: Optional[Tensor] = None,
        activation: Optional[str] = None) -> None:
    """Computes C = act(alpha·A·B + beta·C + bias) for tensors, and waits.

    Parameters
    ----------
    plan : Plan
    b, c : Tensor
        B of K×n and C of M×n; with right n×K and n×M.
    alpha, beta : float
    bias : Tensor, optional
        1×N, an element for each column of C, or M×1, for each row.
    activation : "relu", "gelu" or "silu", optional
    """
    _lib.interruptible(_lib.plan_run, *_product(plan, b, c, alpha, beta, bias, activation))


class Sequence:
    """Products that are recorded once and run many times by one call, each after those before.

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Device) -> None:
        h = ct.c_uint64()
        _lib.check(_lib.sequence_new(device.handle, ct.byref(h)))
        self._handle = h.value
        self._keep: list = []
        self._finalizer = weakref.finalize(self, _lib.sequence_close, self._handle)

    def add(self, plan: Plan, b: Tensor, c: Tensor, *, alpha: float = 1.0, beta: float = 0.0,
            bias: Optional[Tensor] = None, activation: Optional[str] = None) -> "Sequence":
        """Adds a product.

        Parameters
        ----------
        plan, b, c, alpha, beta, bias, activation
            See `run`.

        Returns
        -------
        Sequence
            Itself.
        """
        _lib.check(_lib.sequence_add(self._handle, *_product(plan, b, c, alpha, beta, bias, activation)))
        self._keep.append((plan, b, c, bias))
        return self

    def run(self) -> None:
        """Runs the products, and waits."""
        _lib.interruptible(_lib.sequence_run, self._handle)

    def close(self) -> None:
        """Frees what was recorded."""
        self._finalizer()
        self._keep.clear()
