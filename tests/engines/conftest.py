"""Fixtures of engines: a catalog that enforces grants, and a folder with DuckDB's extensions."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.enforced_catalog import EnforcedCatalog, start_catalog

_INSTALL_EXTENSIONS = """
import shutil
from importlib.util import find_spec
from pathlib import Path
import duckdb

version, platform = duckdb.sql(
    'SELECT library_version, p.platform FROM pragma_version(), pragma_platform() p'
).fetchone()
folder = Path.home() / ".duckdb" / "extensions" / version / platform
folder.mkdir(parents=True)
for name in ("avro", "httpfs", "iceberg"):
    package = Path(find_spec(f"duckdb_extension_{name}").submodule_search_locations[0])
    shutil.copy(next(package.rglob("*.duckdb_extension")), folder)
"""


@pytest.fixture(scope="session")
def enforced_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnforcedCatalog]:
    """Return a catalog that enforces grants; all tests share it."""
    with start_catalog(tmp_path_factory.mktemp("engines")) as catalog:
        yield catalog


@pytest.fixture(scope="session")
def duckdb_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home folder with DuckDB's extensions, which come from packages instead of DuckDB's own server."""
    home = tmp_path_factory.mktemp("duckdb")
    command = [os.environ["TEST_ENGINES_PYTHON"], "-c", _INSTALL_EXTENSIONS]
    subprocess.run(command, env={**os.environ, "HOME": str(home)}, check=True)
    return home
