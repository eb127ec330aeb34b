"""Jars are downloaded by Spark's Ivy, in a JVM that does not load them or know the caller's secrets."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from lakewright_spark.errors import JarsChangedError, JarsMissingError
from lakewright_spark.session import jars

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PACKAGE = "org.example:tool:1.0"
CONTENT = b"the jar"
JAVA = """#!/bin/sh
{ tr '\\0' '\\n' < /proc/$$/environ; echo "command: $*"; } >> RECORD
exec REAL "$@"
"""
SETTINGS = """<ivysettings>
  <settings defaultResolver="local"/>
  <resolvers>
    <filesystem name="local" m2compatible="true">
      <artifact pattern="FOLDER/[organisation]/[module]-[revision].[ext]"/>
    </filesystem>
  </resolvers>
</ivysettings>
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a folder as the only repository in `spark-defaults.conf`; return the path for the jar."""
    (tmp_path / "ivysettings.xml").write_text(SETTINGS.replace("FOLDER", str(tmp_path / "repository")))
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars.ivySettings {tmp_path / 'ivysettings.xml'}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("LAKEWRIGHT_IVY", str(tmp_path / "ivy"))
    monkeypatch.setattr(jars, "SHA256", {PACKAGE: hashlib.sha256(CONTENT).hexdigest()})
    folder = tmp_path / "repository" / "org" / "example"
    folder.mkdir(parents=True)
    return folder / "tool-1.0.jar"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file that records the command line and the environment of each JVM that starts."""
    real = shutil.which("java")
    assert real
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.replace("RECORD", str(tmp_path / "record")).replace("REAL", real))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return tmp_path / "record"


def test_download_starts_no_session(repository: Path, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEARER", "s3cr3t")
    repository.write_bytes(CONTENT)

    (path,) = jars.fetch([PACKAGE])

    assert path.read_bytes() == CONTENT
    record_text = record.read_text()
    assert "command: " in record_text
    assert "s3cr3t" not in record_text
    assert "spark.jars.packages" not in record_text, "Spark would load files before they are compared"


def test_download_with_wrong_digest_is_refused(repository: Path) -> None:
    repository.write_bytes(b"another jar")

    with pytest.raises(JarsChangedError, match="Delete the file"):
        jars.fetch([PACKAGE])


def test_missing_jar_is_reported(repository: Path) -> None:
    assert not repository.exists()

    with pytest.raises(JarsMissingError, match=r"expected org\.example:tool:1\.0 (?s:.*)unresolved dependency"):
        jars.fetch([PACKAGE])
