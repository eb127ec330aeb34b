"""JVMs of tests map Spark's classes from an archive, and run without it if it does not fit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import class_archive


def test_java_ignores_a_damaged_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    class_archive.archive_path.cache_clear()
    path = class_archive.archive_path()
    assert path.parent == tmp_path
    path.write_bytes(b"damaged")
    java = ["java", *class_archive.java_options().split(), "--version"]
    done = subprocess.run(java, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "warning" not in done.stdout


def test_archive_belongs_to_a_java_and_its_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = class_archive.archive_path()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("another")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    class_archive.archive_path.cache_clear()
    assert class_archive.archive_path() != path


@pytest.fixture(autouse=True)
def cleared_cache():
    yield
    class_archive.archive_path.cache_clear()
