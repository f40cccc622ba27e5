"""Devices and plans."""

from __future__ import annotations

import ctypes as ct
import functools
import json
import sys
import threading
import weakref
from typing import Any, Dict, Iterable, Optional, Union

from . import _arrays, _lib, _sparse

ACTIVATIONS = {None: 0, "none": 0, "relu": 1, "gelu": 2, "silu": 3}
SPLITS = {"auto": 0, "columns": 1, "rows": 2}
PLACES = {None: 0, "everywhere": 1, "columns": 2, "rows": 3}
_AT = 4  # SPMM_AT, to which the number of a device is added
QUANTISED = {None: 0, "int8": _lib.S8, "float8_e4m3": _lib.E4M3}


def _one_of(name: str, value: Any, values: dict) -> int:
    if value not in values:
        raise ValueError(f"{name}={value!r}: want one of {', '.join(repr(v) for v in values)}")
    return values[value]


def _info(f: Any, handle: int) -> dict:
    size = ct.c_size_t(4096)
    while True:
        had = size.value
        buf = ct.create_string_buffer(had)
        _lib.check(f(handle, buf, ct.byref(size)))
        if size.value <= had:
            return json.loads(buf.value)


class Device:
    """An opened device.

    Parameters
    ----------
    name : str
        "auto", "cuda", "cuda:1", "vulkan", "webgpu", "cpu", or a list as "cuda:0,1" of devices that multiply together.
    """

    def __init__(self, name: str = "auto") -> None:
        h = ct.c_uint64()
        _lib.check(_lib.device_open(name.encode(), ct.byref(h)))
        self._opened(h.value)

    def _opened(self, handle: int) -> None:
        self.handle = handle
        self.info: Dict[str, Any] = _info(_lib.device_info, handle)
        alone = self.info["devices"] == 1 and self.info["backend"] == "cuda"
        self.cuda: Optional[int] = self.info["index"] if alone else None

    def close(self) -> None:
        """Frees the device with all plans on it; of several, each. Later calls with them raise `Closed`."""
        _lib.check(_lib.device_close(self.handle))

    def __repr__(self) -> str:
        more = self.info["devices"] - 1
        return (f"<spmm.Device {self.info['backend']}:{self.info['index']} {self.info['name']}"
                + (f" and {more} more>" if more else ">"))


class Group(Device):
    """Devices that multiply together, used as one device is.

    B and C are in the host's memory, or in a `Tensor` of the group. ``Device("cuda:all")`` opens a list at once.

    Parameters
    ----------
    devices : sequence of Device
        Each is in it once. They can be used alone, too, until they are closed, which closing the group does.

    Raises
    ------
    ValueError
        There is no device, or one is there twice.
    """

    def __init__(self, devices: Iterable[Device]) -> None:
        self.devices = tuple(devices)
        wrong = next((d for d in self.devices if not isinstance(d, Device)), None)
        if wrong is not None:
            raise TypeError(f"{wrong!r} in a group: want devices, as spmm.Device('cpu')")
        n, h = len(self.devices), ct.c_uint64()
        _lib.check(_lib.device_join((ct.c_uint64 * n)(*(d.handle for d in self.devices)), n, ct.byref(h)))
        self._opened(h.value)


_devices: dict = {}
_opening = threading.Lock()


def open(name: str = "auto") -> Device:
    """Returns the device of that name, which is opened once and shared.

    Parameters
    ----------
    name : str
        See `Device`.
    """
    with _opening:
        d = _devices.get(name)
        if d is None:
            d = _devices[name] = Device(name)
        return d


def prepare(a: Any, device: Union[str, Device] = "auto", **options: Any) -> "Plan":
    """Packs a sparse matrix A for products with dense ones.

    Parameters
    ----------
    a : matrix of scipy.sparse, torch (sparse_csr, csc, coo, bsr or strided), cupyx or numpy
        A, of M×K elements of float16, bfloat16, float32 or float64. Zeros of a dense matrix are not entries. It is
        copied; `Plan.T` needs a reference to it.
    device : str or Device
        Where to multiply.
    format : str, optional
        A format of the library, in place of the one that is predicted to be the fastest.
    precision : str, optional
        "float16", "bfloat16", "tf32", "float32" or "float64" in place of A's type. Sums are float32, or float64.
    n : int, optional
        The number of B's columns to choose the format for (rows, with right).
    transpose, right : bool
        Multiply with Aᵀ; compute B·A.
    reproducible : bool, int or "auto"
        The same bits on every device: True or a precision of 15, 23, 31 or 47 bits.
    tune : bool
        Measure formats and keep the fastest.
    memory : int
        Bytes of the device to use.
    threshold, prune : float, optional
        For a dense A: elements of at most this size become zeros; or this share of all, the smallest.
    keep_zeros : bool
        For a dense A: zeros are entries too.
    variant : str, optional
        A kernel of the format.
    quantise : "int8" or "float8_e4m3", optional
        Values of 8 bits, with a scale for each row and 128 columns.
    split : "auto", "columns" or "rows"
        How several devices share a product: each has all of A and some columns of B, or some rows of A.
    from_ : "everywhere", "columns", "rows" or int, optional
        Where B lies on several devices before a product, if not where the split needs it: all of it on each device,
        some columns or rows, or all on the device of that number.
    uses : int
        About how many products there will be, to weigh the time that packing takes.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        A is not canonical, or an option is wrong.
    TypeError
        A is of a type or has elements that are not taken.
    spmm.Error
        The device cannot multiply with A.
    """
    return Plan(a, device, **options)


def _closed(handle: int, waiting: list = []) -> None:  # noqa: B006: one list for all
    """Closes a plan; during a capture of PyTorch later, with the next."""
    waiting.append(handle)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        return
    while waiting:
        _lib.plan_close(waiting.pop())


_LONG = 1 << 28  # multiplications, of a product that Ctrl-C should end


def _call(f: Any, *args: Any) -> None:
    _lib.check(f(*args))


class _Kind:
    """Products of PyTorch's tensors that lie as those of one before, which was checked."""

    __slots__ = ("n", "device", "shape", "dtype", "inside", "make", "free")

    def __init__(self, n: int, device: Optional[int], shape: tuple, dtype: Any, b: _lib.Dense, c: _lib.Dense,
                 e: Optional[_lib.Epilogue]) -> None:
        self.n, self.device, self.shape, self.dtype = n, device, shape, dtype
        self.inside = 0 if device is None else 3  # bits of C's address inside a word, which kernels do not write
        self.make = functools.partial(_Call, bytes(b), bytes(c), e and bytes(e))
        self.free: list = []  # arguments that no thread uses now

    def again(self, f: Any, handle: int, alpha: float, beta: float, b: Any, out: Any, bias: Any) -> Any:
        """The product, or None if its operands must be copied."""
        if out is None:
            out = b.new_empty(self.shape, dtype=self.dtype)
        at, to, over = b.data_ptr(), out.data_ptr(), 0 if bias is None else bias.data_ptr()
        if to & self.inside:
            return None
        try:
            call = self.free.pop()
        except IndexError:
            call = self.make()
        call.b.data, call.c.data = at, to
        if bias is not None:
            call.e.bias = over
        if self.device is None:
            status = _lib.plan_multiply(handle, self.n, alpha, call.at_b, beta, call.at_c, call.at_e)
        else:
            s = _arrays.raw_stream(self.device)
            status = f(handle, s, self.n, alpha, call.at_b, beta, call.at_c, call.at_e)
        self.free.append(call)
        if status:
            _lib.check(status)
        return out


class _Call:
    """The structures of a call, and pointers to them."""

    __slots__ = ("b", "c", "e", "at_b", "at_c", "at_e")

    def __init__(self, b: bytes, c: bytes, e: Optional[bytes]) -> None:
        self.b, self.c = _lib.Dense.from_buffer_copy(b), _lib.Dense.from_buffer_copy(c)
        self.e = None if e is None else _lib.Epilogue.from_buffer_copy(e)
        self.at_b, self.at_c = ct.byref(self.b), ct.byref(self.c)
        self.at_e = None if self.e is None else ct.byref(self.e)


class Plan:
    """A sparse matrix that is ready to multiply; see `prepare`.

    ``plan @ b`` is A·B, or with ``right=True`` ``b @ plan`` is B·A. B is an array of NumPy, or a tensor of PyTorch or
    array of CuPy on the plan's CUDA device: its product is submitted to the library's current stream and not awaited.
    """

    __array_ufunc__ = None  # has NumPy leave b @ plan to __rmatmul__
    __array_priority__ = 1000

    def __init__(self, a: Any, device: Union[str, Device] = "auto", *, format: Optional[str] = None,
                 precision: Optional[str] = None, n: int = 0, transpose: bool = False, right: bool = False,
                 reproducible: Union[bool, int, str] = False, tune: bool = False, memory: int = 0,
                 threshold: Optional[float] = None, prune: Optional[float] = None, keep_zeros: bool = False,
                 variant: Optional[str] = None, quantise: Optional[str] = None, split: str = "auto",
                 from_: Union[None, str, int] = None, uses: int = 0) -> None:
        if not hasattr(a, "shape"):
            import numpy
            a = numpy.asarray(a)
        if len(a.shape) != 2:
            raise ValueError(f"a matrix of shape {tuple(a.shape)}: want two dimensions")
        self.device = device if isinstance(device, Device) else open(device)
        p = {False: 0, True: 23, "auto": -1}.get(reproducible, reproducible)
        o = _lib.Options(format=format.encode() if format else None, variant=variant.encode() if variant else None,
                         precision=_arrays.type_of(precision) if precision else 0,
                         quantise=_one_of("quantise", quantise, QUANTISED), transpose=transpose, right=right,
                         reproducible=p, tune=tune, split=_one_of("split", split, SPLITS), from_=self._place(from_),
                         n=n, uses=uses, memory=memory)
        self._handle, self.nnz = _sparse.prepare(self.device, a, o, threshold, prune, keep_zeros)
        self._finalizer = weakref.finalize(self, _closed, self._handle)
        self._a = a
        self._options: Dict[str, Any] = dict(format=format, precision=precision, n=n, transpose=transpose, right=right,
                             reproducible=reproducible, tune=tune, memory=memory, threshold=threshold, prune=prune,
                             keep_zeros=keep_zeros, variant=variant, quantise=quantise, split=split, from_=from_, uses=uses)
        rows, cols = (int(x) for x in a.shape)
        self.shape = (cols, rows) if transpose else (rows, cols)
        self.right = right
        self._in, self._out = self.shape if right else self.shape[::-1]
        if self.nnz is None:
            self.nnz = self.info["nnz"]
        self._t: Any = None  # a Plan or a proxy
        self._kinds: Dict[tuple, _Kind] = {}

    def _place(self, place: Union[None, str, int]) -> int:
        """The number of a place of B."""
        if not isinstance(place, int):
            return _one_of("from_", place, PLACES)
        if not 0 <= place < self.device.info["devices"]:
            raise ValueError(f"from_={place}: want a device's number from 0 to {self.device.info['devices'] - 1}")
        return _AT + place

    @property
    def info(self) -> dict:
        """What was chosen: format, variant, why, precision, bytes, fill, prepare_seconds."""
        return _info(_lib.plan_info, self._handle)

    def explain(self) -> str:
        """Says in words which format and kernel multiply, and why."""
        i = self.info
        return (f"{i['rows']}×{i['cols']}, {i['nnz']} entries, on {self.device!r}: format {i['format']}, "
                f"kernel {i['variant']}, {i['precision']}, {i['bytes']} bytes. {i['why']}")

    @property
    def T(self) -> "Plan":
        """The plan of Aᵀ, which is prepared once, when it is asked for first."""
        if self._t is None:
            options: Dict[str, Any] = {**self._options, "transpose": not self._options["transpose"]}
            t = Plan(self._a, self.device, **options)
            t._t = weakref.proxy(self)
            if getattr(self, "_values", None) is not None:
                t._set(self._values)
            self._t = t
        return self._t

    def close(self) -> None:
        """Frees the plan. Later products raise `Closed`. Python's collector does so too."""
        self._finalizer()

    def __enter__(self) -> "Plan":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __matmul__(self, b: Any) -> Any:
        if self.right:
            raise TypeError("the plan is for a matrix on the right: b @ plan")
        return self(b)

    def __rmatmul__(self, b: Any) -> Any:
        if not self.right:
            raise TypeError("the plan is for a matrix on the left: plan @ b, or prepare(a, right=True)")
        return self(b)

    def __call__(self, b: Any, *, out: Any = None, alpha: float = 1.0, beta: float = 0.0, bias: Any = None,
                 activation: Optional[str] = None, dtype: Any = None) -> Any:
        """Computes act(alpha·A·B + beta·out + bias).

        Parameters
        ----------
        b : array
            B of K×n elements (n×K with right), or a vector of K. Memory of a CUDA device is used where it lies, unless
            its rows and columns have gaps between elements.
        out : array, optional
            C, in the kind of memory that B is in.
        alpha, beta : float
            beta needs out.
        bias : array, optional
            A vector of M elements, in the memory that B is in: one for each row of C, with right each column.
        activation : "relu", "gelu" or "silu", optional
        dtype : optional
            The type of C, if there is no out; else B's.

        Returns
        -------
        array
            out, or a new array of B's kind, on its device.
        """
        return self._product(_lib.plan_enqueue, b, out, alpha, beta, bias, activation, dtype)

    def ready(self, b: Any, *, out: Any = None, bias: Any = None, activation: Optional[str] = None,
              dtype: Any = None) -> None:
        """Loads kernels and allocates workspace for a product of CUDA memory, before a graph captures it.

        Parameters
        ----------
        b, out, bias, activation, dtype
            As for the product; nothing is multiplied. Memory of the host needs nothing.
        """
        if _arrays.view(b).device is not None:
            self._product(_lib.plan_ready, b, out, 1.0, 0.0, bias, activation, dtype)

    def _product(self, f: Any, b: Any, out: Any, alpha: float, beta: float, bias: Any, activation: Optional[str],
                 dtype: Any) -> Any:
        if out is None and beta != 0:
            raise ValueError("beta needs out, to which it adds")
        if _arrays.is_torch(b) and (out is None or _arrays.is_torch(out)) and (bias is None or _arrays.is_torch(bias)):
            key: tuple = (b.shape, b.stride(), b.dtype, b.device, dtype, activation)
            for t in (out, bias):
                key += (None,) if t is None else (t.shape, t.stride(), t.dtype, t.device)
            known = self._kinds.get(key)
            if known is not None:
                result = known.again(f, self._handle, alpha, beta, b, out, bias)
                if result is not None:
                    return result
        else:
            key = ()
        x = _arrays.view(b)
        vector = len(x.shape) == 1
        if vector:
            x = self._matrix(x)
        if len(x.shape) != 2 or x.shape[1 if self.right else 0] != self._in:
            want = f"n×{self._in}" if self.right else f"{self._in}×n"
            raise ValueError(f"shapes do not fit: A is {self.shape[0]}×{self.shape[1]}, B has shape "
                             f"{tuple(x.owner.shape)}; want {want}")
        n = x.shape[0 if self.right else 1]
        shape = (n, self._out) if self.right else (self._out, n)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r}: want 'relu', 'gelu' or 'silu'")
        if x.device is not None:
            self._check_device(x)
        db, x = self._dense(x)
        if out is None:
            kind = _arrays.type_of(dtype) if dtype is not None else x.type
            out = _arrays.empty(x, (self._out,) if vector else shape, kind)
        y = _arrays.view(out)
        if vector and y.shape == (self._out,):
            y = self._matrix(y)
        if y.shape != shape:
            raise ValueError(f"shapes do not fit: out has shape {tuple(y.shape)}; want {shape}")
        if y.device != x.device:
            raise ValueError("out must be in the memory that B is in")
        dc, z = self._dense(y, written=True)
        e, keep = self._epilogue(bias, activation, x)
        call = _call
        if x.device is None:
            call = _lib.interruptible if self.nnz * n > _LONG else _call
            call(_lib.plan_multiply, self._handle, n, alpha, ct.byref(db), beta, ct.byref(dc), e)
        else:
            call(f, self._handle, _arrays.stream(x), n, alpha, ct.byref(db), beta, ct.byref(dc), e)
        if z.owner is not y.owner:
            _assign(y.owner, z.owner)
        elif key and call is _call and x.owner is b and (bias is None or keep[1].owner is bias):
            if len(self._kinds) >= 256:
                self._kinds.clear()
            self._kinds[key] = _Kind(n, x.device, tuple(out.shape), out.dtype, db, dc, keep[0] if keep else None)
        return out

    def _matrix(self, v: _arrays.Array) -> _arrays.Array:
        """A vector as a column, or with A on the right as a row."""
        n, s = v.shape[0], v.strides[0]
        if self.right:
            return v._replace(shape=(1, n), strides=(n, s))
        return v._replace(shape=(n, 1), strides=(s, 1))

    def _check_device(self, x: _arrays.Array) -> None:
        if self.device.cuda != x.device:
            raise ValueError(f"B is on cuda:{x.device}, and A on {self.device!r}: prepare A on 'cuda:{x.device}'")

    @staticmethod
    def _dense(a: _arrays.Array, written: bool = False) -> tuple:
        """A matrix as the library takes it, and what owns its memory: a copy if it cannot be used as it lies."""
        a, ld, column_major = _arrays.lines(a, 4 if written and a.device is not None else 1)
        return _lib.Dense(a.address, ld, a.type, column_major), a

    def _epilogue(self, bias: Any, activation: Optional[str], x: _arrays.Array) -> tuple:
        if bias is None and not ACTIVATIONS[activation]:
            return None, ()
        e = _lib.Epilogue(activation=ACTIVATIONS[activation])
        v = None
        if bias is not None:
            v = _arrays.view(bias)
            if v.device != x.device:
                raise ValueError("the bias must be in the memory that B is in")
            if v.shape != (self._out,):
                raise ValueError(f"shapes do not fit: the bias has shape {tuple(v.shape)}; want ({self._out},)")
            if v.strides[0] != 1 and self._out > 1:
                v = _arrays.contiguous(v)
            e.bias, e.bias_type, e.bias_of_rows = v.address, v.type, not self.right
        return ct.byref(e), (e, v)

    def sample(self, x: Any, y: Any, *, out: Any = None, scale: Any = None, softmax: bool = False) -> Any:
        """Computes the entries of X·Yᵀ where A has some (SDDMM).

        With C = A·B the gradient of A's values is that of X = ∂C and Y = B.

        Parameters
        ----------
        x, y : array
            X has a row for each row of A and Y one for each column, in the memory that products take B from.
        out : array, optional
            A contiguous vector for the results.
        scale : array, optional
            A vector of numbers that the results are multiplied by.
        softmax : bool
            Then take the softmax of each row of A, which was given by rows.

        Returns
        -------
        array
            A value for each entry, in the order of `set_values`.
        """
        u, v = _arrays.view(x), _arrays.view(y)
        rows, cols = self.shape
        if len(u.shape) != 2 or len(v.shape) != 2 or (u.shape[0], v.shape[0]) != (rows, cols) or \
                u.shape[1] != v.shape[1]:
            raise ValueError(f"shapes do not fit: A is {rows}×{cols}, X has shape {tuple(u.shape)} and Y "
                             f"{tuple(v.shape)}; want {rows}×n and {cols}×n")
        n = u.shape[1]
        if out is None:
            out = _arrays.empty(u, (self.nnz,), u.type)
        vectors = [self._vector("out", out)] + ([] if scale is None else [self._vector("scale", scale)])
        for a in [v, *vectors]:
            if a.device != u.device:
                raise ValueError("X, Y, out and scale must be in the same memory")
        if u.device is not None:
            self._check_device(u)
        du, u = self._dense(u)
        dv, v = self._dense(v)
        s = _lib.Sampled(results=vectors[0].address, type=vectors[0].type, softmax=softmax)
        if scale is not None:
            s.scale, s.scale_type = vectors[1].address, vectors[1].type
        if u.device is None:
            _lib.interruptible(_lib.plan_sample, self._handle, n, ct.byref(du), ct.byref(dv), ct.byref(s))
        else:
            _lib.check(_lib.plan_enqueue_sample(self._handle, _arrays.stream(u), n, ct.byref(du), ct.byref(dv),
                                                ct.byref(s)))
        return out

    def _vector(self, what: str, x: Any) -> _arrays.Array:
        a = _arrays.view(x)
        if a.shape != (self.nnz,) or self.nnz > 1 and a.strides != (1,):
            raise ValueError(f"{what} of shape {tuple(a.shape)}: want {self.nnz} contiguous elements, one for each "
                             "entry")
        return a

    def set_values(self, values: Any) -> None:
        """Replaces the values of A's entries; the pattern stays.

        Parameters
        ----------
        values : array
            One value for each entry, in the order of A as it was given: of ``data`` in scipy's csr and csc (of the
            canonical matrix), of ``values()`` in PyTorch. Those on the plan's CUDA device are taken in order with the
            current stream.
        """
        self._set(values)
        self._values = values
        if isinstance(self._t, Plan):
            self._t._set(values)

    def _set(self, values: Any) -> None:
        if _arrays.is_torch(values):
            values = values.detach()
            if self.device.cuda is not None and not values.is_cuda:
                values = values.to(f"cuda:{self.device.cuda}")
        v = _arrays.view(values)
        if len(v.shape) != 1:
            raise ValueError(f"values of shape {tuple(v.shape)}: want ({self.nnz},)")
        if v.shape[0] > 1 and v.strides[0] != 1 or v.device is not None and v.address % 4:
            v = _arrays.contiguous(v)
        if v.device is None:
            _lib.check(_lib.plan_set_values(self._handle, v.shape[0], v.address, v.type))
        else:
            self._check_device(v)
            _lib.check(_lib.plan_enqueue_values(self._handle, _arrays.stream(v), v.shape[0], v.address, v.type))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a plan cannot be copied or pickled: prepare another one from the matrix")

    def __repr__(self) -> str:
        return f"<spmm.Plan {self.shape[0]}×{self.shape[1]}, {self.nnz} entries, on {self.device!r}>"


def _assign(to: Any, source: Any) -> None:
    """Copies between arrays of one kind."""
    if _arrays.is_torch(to):
        to.copy_(source.view(to.shape))
    else:
        to[...] = source.reshape(to.shape)
