"""The public surface: what there is, with which signatures, and that docstrings say what each parameter is.

surface.txt has it all; SPMM_UPDATE=1 writes it anew, so that a change is seen in its diff.
"""

import importlib
import inspect
import os
import re

import pytest

import spmm

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "surface.txt")


def modules():
    """The public modules, those for PyTorch where that is installed."""
    found = [spmm]
    try:
        import torch  # noqa: F401
    except ImportError:
        return found
    return found + [importlib.import_module(name) for name in ("spmm.torch", "spmm.pyg")]


def members(cls):
    """The public methods and properties that a class defines itself."""
    for name, f in sorted(vars(cls).items()):
        if name in ("__init__", "__call__") or not name.startswith("_"):
            if inspect.isfunction(f) or isinstance(f, property):
                yield name, f


def entries():
    """The name, the object and the signature of all that is public."""
    for module in modules():
        for name in sorted(module.__all__):
            x = getattr(module, name)
            path = f"{module.__name__}.{name}"
            if not inspect.isclass(x):
                yield path, x, str(inspect.signature(x))
                continue
            yield path, x, "(" + ", ".join(b.__name__ for b in x.__bases__) + ")"
            for member, f in members(x):
                yield f"{path}.{member}", f, "" if isinstance(f, property) else str(inspect.signature(f))


def test_surface():
    pytest.importorskip("torch")
    text = "".join(f"{path}{signature}\n" for path, _, signature in entries()).replace("'", "").replace('"', "")
    if os.environ.get("SPMM_UPDATE"):
        with open(FILE, "w") as f:
            f.write(text)
    with open(FILE) as f:
        assert text == f.read(), "the public surface changed: SPMM_UPDATE=1 writes tests/surface.txt anew"


def parameters(f):
    """The names of a function's parameters without self."""
    return [p.name for p in inspect.signature(f).parameters.values() if p.name not in ("self", "args")]


def documented(text):
    """The names in a docstring's section of parameters."""
    section = re.search(r"(?:^|\n) *Parameters\n *-+\n(.*?)(?=\n *\w+\n *---|\Z)", text, re.S)
    if section is None:
        return []
    indent = re.match(r" *", section[1])[0]
    lines = re.findall(rf"^{indent}(\S.*)$", section[1], re.M)
    return [name.strip(" *") for line in lines for name in line.split(" :")[0].split(",")]


def takes(x):
    """The names that the docstring must explain, of a class those of its constructor."""
    if inspect.isclass(x):
        return [] if issubclass(x, BaseException) or "__init__" not in vars(x) else parameters(x.__init__)
    return parameters(x) if inspect.isfunction(x) else []


@pytest.mark.parametrize("path,x", [(path, x) for path, x, _ in entries()])
def test_docstrings(path, x):
    if path.endswith((".__init__", ".forward")):
        return  # the class has it
    text = inspect.cleandoc(x.__doc__ or "")
    assert re.match(r"\S.*[.:]$", text.split("\n\n")[0].replace("\n", " ")), f"{path}: want a sentence first"
    if x is spmm.Plan:
        assert "`prepare`" in text
    elif x is spmm.prepare:  # which hands its options on
        assert set(documented(text)) == set(parameters(spmm.Plan.__init__))
    else:
        assert documented(text) == takes(x), path
