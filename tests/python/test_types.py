"""mypy --strict passes over the package, its stubs and the samples."""

import pathlib
import subprocess
import sys

import pytest

import chunkio

ROOT = pathlib.Path(__file__).parent.parent.parent
PACKAGE = pathlib.Path(chunkio.__file__).parent


def test_mypy_is_content(tmp_path):
    pytest.importorskip("mypy")
    samples = sorted(ROOT.glob("samples/python/*.py"))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "--python-version", "3.10"]
    command += ["--ignore-missing-imports", "--follow-imports=silent", "--allow-untyped-calls", "--allow-subclassing-any", "--allow-untyped-decorators"]
    for what in ([PACKAGE], *([sample] for sample in samples)):
        done = subprocess.run([*command, *map(str, what)], capture_output=True, text=True, cwd=PACKAGE.parent)
        assert done.returncode == 0, done.stdout


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
    assert "class Batch" in (PACKAGE / "_core.pyi").read_text()
