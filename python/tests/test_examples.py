"""The examples run, small, and leave a file of results."""

import json
import os
import subprocess
import sys

import pytest

import spmm

pytest.importorskip("torch")
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples")


def rows(tmp_path, name, *args):
    out = tmp_path / "out.json"
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(spmm.__file__))}
    done = subprocess.run([sys.executable, "-W", "ignore", os.path.join(folder, name), "--out", str(out), *args],
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert done.returncode == 0, done.stdout
    report = json.loads(out.read_text())
    assert str(tmp_path) not in json.dumps(report["environment"])
    return {r["label"]: r["values"] for r in report["rows"]}, done.stdout


def test_gcn(tmp_path):
    got, said = rows(tmp_path, "gcn.py", "--device", "cpu", "--nodes", "2000", "--edges", "20000", "--epochs", "20")
    assert got["spmm"]["epoch, ms"] > 0
    assert got["spmm"]["last loss"] < 0.9 * got["spmm"]["first loss"]
    assert got["spmm, reproducible"]["loss − torch.sparse's"] < 1e-4
    assert "two runs: the same bits" in said


def test_llama(tmp_path):
    pytest.importorskip("transformers")
    got, _ = rows(tmp_path, "llama.py", "--device", "cpu", "--layers", "1", "--hidden", "128", "--inner", "352", "--heads",
                  "4", "--vocab", "500", "--prompt", "32", "--tokens", "8", "--zeros", "0.5")
    assert got["0.5, spmm for 8"]["distance"] < 1e-4
    assert got["0.5, spmm for 8"]["tokens/s, batch 8"] > 0
