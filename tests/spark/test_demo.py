"""`make demo` as a whole; it fails by itself where its claims do not hold."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from lakewright_spark.session import jars

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.stand_in("starts its own sandbox")
def test_demo_succeeds(tmp_path: Path) -> None:
    # Keys of a real account and plugins for real clouds: the demo must not use them.
    home = tmp_path / "home"
    for package in ("aws", "kubernetes"):
        install_plugin(home, package)
    environment = os.environ | {
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "never-to-be-used",
        "HOME": str(home),
        "LAKEWRIGHT_IVY": str(jars.ivy_home()),
    }
    command = [sys.executable, "-m", "demo", "--dir", str(tmp_path / "demo")]
    finished = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    output = finished.stdout + finished.stderr
    assert finished.returncode == 0, output[-6000:]
    assert "336,776 flights" in output
    assert "The preview names exactly the two changes." in output
    assert "The live objects are as declared." in output
    for path in (tmp_path / "demo").rglob("*"):
        if path.is_file():
            assert b"never-to-be-used" not in path.read_bytes(), path


def install_plugin(home: Path, package: str) -> None:
    """Install a plugin that fails when started, in the version that the SDK requires."""
    name = f"pulumi-resource-{package}"
    plugin = home / ".pulumi" / "plugins" / f"resource-{package}-v{metadata.version(f'pulumi-{package}')}" / name
    plugin.parent.mkdir(parents=True)
    plugin.write_text("#!/bin/sh\necho 'the demo started a plugin for a real cloud' >&2\nexit 1\n")
    plugin.chmod(0o755)
