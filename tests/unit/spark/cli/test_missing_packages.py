"""`lakewright-spark` of the package alone, without the packages of its extras."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["pyspark", "typer"])
def test_missing_package_names_the_extra(package: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; from lakewright_spark.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: `{package}` is not installed")
    assert "pip install 'lakewright-spark[jobs]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
