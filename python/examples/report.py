"""What the examples measured, as a file of bench/results, from which `make figures` writes tables."""

from __future__ import annotations

import datetime
import json
import os
import sys
from typing import Any, Dict, List

import torch


def environment(device: str, note: str) -> Dict[str, Any]:
    """Where and when, and by which command."""
    name, driver, arguments = "CPU", "", sys.argv[1:]
    if "--out" in arguments:  # a path of the machine
        at = arguments.index("--out")
        del arguments[at:at + 2]
    if device != "cpu":
        name, driver = torch.cuda.get_device_name(device), f"CUDA {torch.version.cuda}"
    return {"start": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": ["python3", os.path.basename(sys.argv[0]), *arguments], "note": f"PyTorch {torch.__version__}; {note}",
            "devices": [{"backend": device, "name": name, "driver": driver}]}


class Report:
    """Rows of numbers, which are printed at once and written after each, so that a run that is cut off has them.

    Parameters
    ----------
    file : str
        The file, or "" for none.
    device, note : str
        For the environment.
    """

    def __init__(self, file: str, device: str, note: str) -> None:
        self.file, self.rows = file, []  # type: str, List[dict]
        self.environment = environment(device, note)

    def add(self, label: str, **values: float) -> None:
        """A row: what was measured, and its numbers by name."""
        self.rows.append({"label": label, "values": values})
        print(f"{label}: " + ", ".join(f"{k} {v:.4g}" for k, v in values.items()), flush=True)
        if self.file:
            with open(self.file, "w") as f:
                json.dump({"version": 1, "environment": self.environment, "rows": self.rows}, f, indent=1)
                f.write("\n")
