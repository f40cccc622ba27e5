"""The C library by ctypes: its functions, structures and errors."""

from __future__ import annotations

import ctypes as ct
import os
import sys
import threading
from typing import Any

_name = {"darwin": "libspmm.dylib", "win32": "spmm.dll"}.get(sys.platform, "libspmm.so")
_path = os.environ.get("SPMM_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), _name)
lib = ct.CDLL(_path)  # releases Python's lock during calls

ABI = 1
DEFAULT, F16, BF16, F32, F64, TF32, I32, I64, S8, E4M3 = range(10)

_i32, _i64, _u64, _f64, _ptr = ct.c_int32, ct.c_int64, ct.c_uint64, ct.c_double, ct.c_void_p


class CSR(ct.Structure):
    """spmm_csr."""

    _fields_ = [
        ("rows", _i64), ("cols", _i64), ("nnz", _i64), ("row_ptr", _ptr), ("col_idx", _ptr), ("values", _ptr),
        ("row_ptr_type", _i32), ("col_idx_type", _i32), ("type", _i32), ("by_columns", _i32), ("unsorted", _i32),
        ("in_device", _i32),
    ]


class Dense(ct.Structure):
    """spmm_dense."""

    _fields_ = [("data", _ptr), ("ld", _i64), ("type", _i32), ("column_major", _i32)]


class Options(ct.Structure):
    """spmm_options."""

    _fields_ = [("format", ct.c_char_p), ("variant", ct.c_char_p)] + [
        (n, _i32) for n in ("precision", "quantise", "transpose", "right", "reproducible", "tune", "split", "from_",
                            "reserved")
    ] + [("n", _i64), ("uses", _i64), ("memory", _i64)]


class Epilogue(ct.Structure):
    """spmm_epilogue."""

    _fields_ = [("bias", _ptr)] + [(n, _i32) for n in ("bias_type", "bias_of_rows", "activation", "reserved")]


class Sampled(ct.Structure):
    """spmm_sampled."""

    _fields_ = [("results", _ptr), ("scale", _ptr)] + [
        (n, _i32) for n in ("type", "scale_type", "softmax", "reserved")
    ]


def _declare(name: str, *args: Any) -> Any:
    f = getattr(lib, name)
    f.argtypes, f.restype = args, ct.c_int
    return f


_of = ct.POINTER
_product = (_u64, _i64, _f64, _of(Dense), _f64, _of(Dense), _of(Epilogue))
setting = _declare("spmm_set", ct.c_char_p, ct.c_char_p)
device_open = _declare("spmm_device_open", ct.c_char_p, _of(_u64))
device_close = _declare("spmm_device_close", _u64)
device_join = _declare("spmm_device_join", _of(_u64), _i32, _of(_u64))
device_info = _declare("spmm_device_info", _u64, ct.c_char_p, _of(ct.c_size_t))
plan_csr = _declare("spmm_plan_csr", _u64, _of(CSR), _of(Options), _of(_u64))
plan_dense = _declare("spmm_plan_dense", _u64, _i64, _i64, _of(Dense), _i32, _of(Options), _of(_u64))
plan_close = _declare("spmm_plan_close", _u64)
plan_info = _declare("spmm_plan_info", _u64, ct.c_char_p, _of(ct.c_size_t))
plan_multiply = _declare("spmm_plan_multiply", *_product)
plan_enqueue = _declare("spmm_plan_enqueue", _u64, *_product)
plan_ready = _declare("spmm_plan_ready", _u64, *_product)
plan_sample = _declare("spmm_plan_sample", _u64, _i64, _of(Dense), _of(Dense), _of(Sampled))
plan_enqueue_sample = _declare("spmm_plan_enqueue_sample", _u64, _u64, _i64, _of(Dense), _of(Dense), _of(Sampled))
plan_set_values = _declare("spmm_plan_set_values", _u64, _i64, _ptr, _i32)
plan_enqueue_values = _declare("spmm_plan_enqueue_values", _u64, _u64, _i64, _ptr, _i32)
_run = (_f64, _u64, _f64, _u64, _u64, _i32, _i32)
tensor_new = _declare("spmm_tensor_new", _u64, _i64, _i64, _i32, _i32, _of(_u64))
tensor_upload = _declare("spmm_tensor_upload", _u64, _of(Dense))
tensor_download = _declare("spmm_tensor_download", _u64, _of(Dense))
tensor_close = _declare("spmm_tensor_close", _u64)
plan_run = _declare("spmm_plan_run", _u64, *_run)
sequence_new = _declare("spmm_sequence_new", _u64, _of(_u64))
sequence_add = _declare("spmm_sequence_add", _u64, _u64, *_run)
sequence_run = _declare("spmm_sequence_run", _u64)
sequence_close = _declare("spmm_sequence_close", _u64)
last_error = lib.spmm_last_error
last_error.argtypes, last_error.restype = [], ct.c_char_p
lib.spmm_cancel.argtypes, lib.spmm_cancel.restype = [], None


def cancel() -> None:
    """Ends all calls of the library in this process: they raise `Cancelled`. Later calls are not affected."""
    lib.spmm_cancel()



if lib.spmm_abi() != ABI:
    raise ImportError(f"{_path} has version {lib.spmm_abi()} of its interface, and this package needs {ABI}")


class Error(RuntimeError):
    """What the library cannot do; the base of its other errors but ValueError and MemoryError."""


class Unavailable(Error):
    """There is no driver, or no such device."""


class Unsupported(Error):
    """The device or the plan cannot do that."""


class DeviceLost(Error):
    """The device stopped answering; the process cannot use it any more."""


class Closed(Error):
    """A device or a plan was closed."""


class Cancelled(Error):
    """`spmm.cancel` ended the call."""


_errors = {
    1: ValueError, 2: Unavailable, 3: Unsupported, 4: Error, 5: MemoryError, 6: DeviceLost, 7: Closed, 8: Cancelled,
    9: Error, 10: Error,
}


def check(status: int) -> None:
    """Raises the exception of a status, with the library's message."""
    if status:
        raise _errors.get(status, Error)(last_error().decode(errors="replace"))


def _cancelled(done: threading.Event) -> None:
    """Cancels a call, which may not have begun, and waits for its end: until then it uses the arguments' memory."""
    while not done.is_set():
        cancel()
        try:
            done.wait(0.01)
        except BaseException:  # noqa: B902: another Ctrl-C, for the one that is on its way
            pass


def interruptible(f: Any, *args: Any) -> None:
    """Calls a function that may take long, and ends it on Ctrl-C.

    Python calls the handlers of signals in the main thread, when that is not in the library: so another thread is.
    """
    if threading.current_thread() is not threading.main_thread():
        check(f(*args))
        return
    errors: list = []
    done = threading.Event()  # after Ctrl-C Thread.join takes a thread for ended that is not

    def call() -> None:
        try:
            check(f(*args))
        except BaseException as e:  # noqa: B902: it is raised below
            errors.append(e)
        done.set()

    threading.Thread(target=call, name="spmm", daemon=True).start()
    try:
        done.wait()
    except BaseException:
        _cancelled(done)
        raise
    if errors:
        raise errors[0]
