"""Products of sparse and dense matrices on CUDA, Vulkan, WebGPU and the CPU.

    import spmm
    plan = spmm.prepare(a)      # a of scipy.sparse, torch.sparse, cupyx, or dense; packed once
    c = plan @ b                # b of NumPy, or of PyTorch or CuPy on the plan's device
    print(plan.explain())
"""

from ._lib import Cancelled, Closed, DeviceLost, Error, Unavailable, Unsupported, cancel
from ._plan import Device, Plan, open, prepare

__version__ = "0.1.0"
__all__ = [
    "Cancelled", "Closed", "Device", "DeviceLost", "Error", "Plan", "Unavailable", "Unsupported", "cancel", "open",
    "prepare", "set_cache_folder",
]


def set_cache_folder(path: str) -> None:
    """Sets the folder that keeps measured rates, before a device is opened.

    Parameters
    ----------
    path : str
        It replaces the user's cache folder, and SPMM_CACHE, which Go reads when the process starts.
    """
    import os

    from . import _lib
    _lib.check(_lib.cache_folder(os.fsencode(path)))
