"""Dense arrays of NumPy, PyTorch, CuPy and others: where they lie, and new ones of the same kind."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Optional, Tuple

from . import _lib

_names = {
    "float16": _lib.F16, "bfloat16": _lib.BF16, "float32": _lib.F32, "float64": _lib.F64, "tf32": _lib.TF32,
    "int32": _lib.I32, "int64": _lib.I64,
}
NAME = {_lib.F16: "float16", _lib.BF16: "bfloat16", _lib.F32: "float32", _lib.F64: "float64"}
SIZE = {_lib.F16: 2, _lib.BF16: 2, _lib.F32: 4, _lib.F64: 8}
_known: dict = {}


class Array(NamedTuple):
    """A dense matrix or vector of somebody's."""

    kind: str  # "numpy", "torch" or "cupy"
    owner: Any  # keeps the memory
    address: int
    shape: tuple
    strides: tuple  # in elements
    type: int
    device: Optional[int]  # of CUDA; None: the host's memory


def type_of(dtype: Any) -> int:
    """The library's number of an element type, given as a name or as NumPy's or PyTorch's dtype."""
    t = _known.get(dtype)
    if t is None:
        name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
        if not isinstance(dtype, str) and name not in _names and isinstance(dtype, type):
            import numpy
            name = numpy.dtype(dtype).name
        t = _names.get(name)
        if t is None:
            raise TypeError(f"elements of {dtype}: want float16, bfloat16, float32 or float64")
        _known[dtype] = t
    return t


def is_torch(x: Any) -> bool:
    """Whether x is a tensor of PyTorch, which need not be installed."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_cupy(x: Any) -> bool:
    """Whether x is an array of CuPy."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(x, cupy.ndarray)


def view(x: Any) -> Array:
    """Where a dense array lies. Arrays of other libraries come by DLPack or __array_interface__."""
    if is_torch(x):
        device = x.device
        if device.type not in ("cpu", "cuda"):
            raise TypeError(f"a tensor on {device}: want one on the CPU or on a CUDA device")
        return Array("torch", x, x.data_ptr(), tuple(x.shape), x.stride(), type_of(x.dtype),
                     device.index if device.type == "cuda" else None)
    if is_cupy(x):
        strides = tuple(s // x.itemsize for s in x.strides)
        return Array("cupy", x, x.data.ptr, x.shape, strides, type_of(x.dtype), x.device.id)
    if hasattr(x, "__cuda_array_interface__"):
        return _interface(x, x.__cuda_array_interface__, 0)
    import numpy
    if not isinstance(x, numpy.ndarray):
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__"):
            if x.__dlpack_device__()[0] == 2:
                torch = sys.modules.get("torch")
                if torch is None:
                    raise TypeError("DLPack memory of a CUDA device needs PyTorch: import torch")
                return view(torch.from_dlpack(x))
            x = numpy.from_dlpack(x)
        x = numpy.asarray(x)
    return Array("numpy", x, x.ctypes.data, x.shape, tuple(s // x.itemsize for s in x.strides), type_of(x.dtype), None)


def _interface(x: Any, i: dict, device: int) -> Array:
    name = {"<f2": "float16", "<f4": "float32", "<f8": "float64"}.get(i["typestr"])
    if name is None:
        raise TypeError(f"elements of {i['typestr']}: want float16, float32 or float64")
    size, shape, strides = int(i["typestr"][2:]), tuple(i["shape"]), i.get("strides")
    if strides is None:
        strides, n = [], 1
        for s in reversed(shape):
            strides.insert(0, n)
            n *= s
    else:
        strides = [s // size for s in strides]
    return Array("interface", x, i["data"][0], shape, tuple(strides), type_of(name), device)


def layout(shape: tuple, strides: tuple) -> Optional[Tuple[int, int]]:
    """The leading dimension, and whether a matrix is column-major; None if its lines are not contiguous."""
    (rows, cols), (s0, s1) = shape, strides
    if rows == 0 or cols == 0:
        return max(cols, 1), 0
    if (s1 == 1 or cols == 1) and (s0 >= cols or rows == 1):
        return (s0 if rows > 1 else cols), 0
    if (s0 == 1 or rows == 1) and (s1 >= rows or cols == 1):
        return (s1 if cols > 1 else rows), 1
    return None


def lines(a: Array, aligned: int = 1) -> Tuple[Array, int, int]:
    """A matrix as the library takes it, its leading dimension, and whether it is column-major.

    It is a copy if its lines are not contiguous, or it does not begin at a multiple of that many bytes.
    """
    lies = layout(a.shape, a.strides)
    if lies is None or a.address % aligned and 0 not in a.shape:
        rows, cols = a.shape
        return contiguous(a)._replace(shape=a.shape, strides=(cols, 1)), max(cols, 1), 0
    return (a, *lies)


def contiguous(a: Array) -> Array:
    """A copy whose lines follow each other."""
    if a.kind == "torch":
        return view(a.owner.contiguous() if not a.owner.is_contiguous() else a.owner.clone())
    if a.kind == "cupy":
        return view(sys.modules["cupy"].array(a.owner, order="C"))
    if a.kind == "interface":
        raise ValueError("memory of a CUDA device whose rows or columns are not contiguous: make a contiguous copy")
    import numpy
    return view(numpy.array(a.owner, order="C"))


def empty(like: Array, shape: tuple, type: int) -> Any:
    """A new array of like's kind and device."""
    name = NAME.get(type)
    if name is None:
        raise TypeError("elements are integers: want float16, bfloat16, float32 or float64")
    if like.kind in ("torch", "interface"):
        torch = sys.modules.get("torch")
        if torch is None:
            raise TypeError("give out=: there is no library to make the result with")
        device = like.owner.device if like.kind == "torch" else f"cuda:{like.device}"
        return torch.empty(shape, dtype=getattr(torch, name), device=device)
    if name == "bfloat16":
        raise TypeError("NumPy and CuPy have no bfloat16: ask for dtype='float32'")
    if like.kind == "cupy":
        return sys.modules["cupy"].empty(shape, dtype=name)
    import numpy
    return numpy.empty(shape, dtype=name)


def raw_stream(device: int) -> int:
    """The handle of PyTorch's current stream; the public function makes an object each time."""
    torch = sys.modules["torch"]
    get = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return get(device) if get is not None else torch.cuda.current_stream(device).cuda_stream


def stream(like: Array) -> int:
    """The handle of the current CUDA stream of the array's library; 0 is the default stream."""
    if like.kind == "torch":
        return raw_stream(like.device or 0)
    if like.kind == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    torch = sys.modules.get("torch")
    return torch.cuda.current_stream().cuda_stream if torch is not None and torch.cuda.is_available() else 0
