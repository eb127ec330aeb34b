"""Fixtures of the pre-flight tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the reports of a validating run. Each test is one run."""
    file = tmp_path / "reports"
    file.touch()
    monkeypatch.setenv("LAKEWRIGHT_VALIDATE", str(file))
    return file
