"""Writes the wheel: this package with libspmm.so inside, by the standard library alone.

    python3 wheel.py LIBRARY VERSION FOLDER
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile

META = """Metadata-Version: 2.1
Name: spmm
Version: {version}
Summary: Products of sparse and dense matrices on CUDA, Vulkan, WebGPU and the CPU
License: {licence}
Requires-Python: >=3.9
Provides-Extra: scipy
Requires-Dist: numpy; extra == "scipy"
Requires-Dist: scipy; extra == "scipy"
Description-Content-Type: text/markdown

{readme}"""


def tag(library):
    """The platform's tag: the newest version of glibc that the library's symbols need, 2.17 at least."""
    out = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
    minor = max([17] + [int(x) for x in re.findall(r"GLIBC_2\.(\d+)", out)])
    return f"py3-none-manylinux_2_{minor}_{platform.machine()}"


def write(library, version, folder):
    here = os.path.dirname(os.path.abspath(__file__))
    version = re.sub(r"^v", "", version)
    version = re.sub(r"-(\d+)-g([0-9a-f]+).*", r".dev\1+g\2", version)
    if not re.fullmatch(r"\d+(\.\d+)*(\.dev\d+)?(\+\w+)?", version):
        version = "0.1.0.dev0"
    name = f"spmm-{version}"
    info = f"{name}.dist-info"
    files = {"spmm/libspmm.so": open(library, "rb").read()}
    for f in sorted(os.listdir(os.path.join(here, "spmm"))):
        if f.endswith(".py") or f == "py.typed":
            files[f"spmm/{f}"] = open(os.path.join(here, "spmm", f), "rb").read()
    readme = open(os.path.join(here, "README.md")).read()
    licence = open(os.path.join(here, "..", "LICENSE")).readline().strip()
    stamp = f'__version__ = "{version}"'.encode()
    files["spmm/__init__.py"] = re.sub(rb'__version__ = ".*"', stamp, files["spmm/__init__.py"])
    files[f"{info}/METADATA"] = META.format(version=version, licence=licence, readme=readme).encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: spmm\nRoot-Is-Purelib: false\nTag: {tag(library)}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    record = ""
    for f, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{f},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    path = os.path.join(folder, f"{name}-{tag(library)}.whl")
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for f, data in files.items():
            entry = zipfile.ZipInfo(f, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o755 << 16 if f.endswith(".so") else 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    write(*sys.argv[1:])
