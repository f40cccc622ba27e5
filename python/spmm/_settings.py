"""Settings of the library, before a device is opened."""

from __future__ import annotations

import os
from typing import Union

from . import _lib

Path = Union[str, "os.PathLike[str]"]


def set_cache_folder(path: Path) -> None:
    """Sets the folder that keeps measured rates.

    Parameters
    ----------
    path : str or path
        It replaces the user's cache folder, and SPMM_CACHE, which the library reads when the process starts.
    """
    _lib.check(_lib.setting(b"cache_folder", os.fsencode(path)))


def set_cuda_library(path: Path) -> None:
    """Sets the file of CUDA's driver.

    Parameters
    ----------
    path : str or path
        It replaces libcuda.so.1, and SPMM_CUDA_LIBRARY.
    """
    _lib.check(_lib.setting(b"cuda_library", os.fsencode(path)))
