"""Jars of an engine: a lock file has their coordinates and SHA-256, and Spark's Ivy downloads them once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lakewright_spark.session.jar_download import download
from lakewright_spark.session.jars import ivy_home, jar_paths


def fetch_jars(lock: Path) -> list[Path]:
    """Return the paths of a lock file's jars, after a comparison with their SHA-256.

    Args:
        lock: Lines of Maven coordinates and a digest.
    """
    digests = dict(line.split() for line in lock.read_text().splitlines())
    paths = jar_paths(list(digests))
    missing = [package for package, path in zip(digests, paths, strict=True) if not path.is_file()]
    output = download(missing, ivy_home()) if missing else ""
    for path, digest in zip(paths, digests.values(), strict=True):
        assert path.is_file(), output[-3000:]
        with path.open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == digest, f"{path} has another content; delete it"
    return paths
