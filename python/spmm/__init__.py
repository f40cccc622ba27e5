"""Products of sparse and dense matrices on CUDA, Vulkan, WebGPU and the CPU.

    import spmm
    plan = spmm.prepare(a)      # a of scipy.sparse, torch.sparse, cupyx, or dense; packed once
    c = plan @ b                # b of NumPy, or of PyTorch or CuPy on the plan's device
    print(plan.explain())
"""

from ._lib import Cancelled, Closed, DeviceLost, Error, Unavailable, Unsupported, cancel
from ._plan import Device, Group, Plan, open, prepare
from ._settings import set_cache_folder, set_cuda_library
from ._tensor import Sequence, Tensor, run

__version__ = "0.1.0"
__all__ = [
    "Cancelled", "Closed", "Device", "DeviceLost", "Error", "Group", "Plan", "Sequence", "Tensor", "Unavailable", "Unsupported",
    "cancel", "open", "prepare", "run", "set_cache_folder", "set_cuda_library",
]
