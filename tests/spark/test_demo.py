"""`make demo`, whole: it fails by itself where something it shows is not so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.spark
def test_the_demo_plays_to_its_end(tmp_path: Path) -> None:
    # Keys of a real account in the environment: nothing in the demo may see or need them.
    environment = os.environ | {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "never-to-be-used"}
    command = [sys.executable, "-m", "demo", "--dir", str(tmp_path / "demo")]
    played = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    shown = played.stdout + played.stderr
    assert played.returncode == 0, shown[-6000:]
    assert "336,776 flights" in shown
    assert "The preview names exactly the two changes." in shown
    assert "What is declared is what is there." in shown
    for path in (tmp_path / "demo").rglob("*"):
        if path.is_file():
            assert b"never-to-be-used" not in path.read_bytes(), path
