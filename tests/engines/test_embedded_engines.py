"""DuckDB, ClickHouse, Polars and Daft, in an environment of their own, on a catalog that enforces grants.

`make test-engines` installs them from tests/engines/requirements.lock and names their Python in TEST_ENGINES_PYTHON.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.enforced_catalog import EnforcedCatalog

PYTHON = os.environ.get("TEST_ENGINES_PYTHON")

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs the environment of `make test-engines`")

Run = Callable[[str, str], list[str]]

DUCKDB = """
import os
from pathlib import Path
import duckdb

connection = duckdb.connect()
connection.create_function("getenv", os.environ.__getitem__, [str], str)  # the command line has it
connection.execute(Path("attach.sql").read_text())
table = '"granted-data"."operator-port-result".for_duckdb'
connection.execute(f"CREATE TABLE {table} AS SELECT range::BIGINT AS n FROM range(3)")
print(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0], "rows")
"""
CLICKHOUSE = """
import os
from pathlib import Path
import chdb.session

session = chdb.session.Session()
for statement in os.path.expandvars(Path("databases.sql").read_text()).split(";\\n"):
    if statement.strip():
        session.query(statement)
result = session.query("SELECT count(*) FROM `granted-data`.`operator-port-result.for_clickhouse`")
print(result.bytes().decode().strip(), "rows")
"""
POLARS = """
import lakekeeper_polars as lake
print(lake.scan("granted-data", "operator-port-result.for_polars").collect().height, "rows")
"""
DAFT = """
import daft
import lakekeeper_daft as lake
lake.read("granted-data", "operator-port-result.for_daft").write_iceberg(
    lake.catalogs["granted-data"].load_table("operator-port-result.for_daft")
)
print(lake.read("granted-data", "operator-port-result.for_daft").count_rows(), "rows")
"""


@pytest.fixture
def run(enforced_catalog: EnforcedCatalog, tmp_path: Path, duckdb_home: Path) -> Run:
    """Return a function that writes the files of a format, and runs a script beside them."""

    def run_script(name: str, script: str) -> list[str]:
        enforced_catalog.write_files(name, tmp_path)
        (tmp_path / "script.py").write_text(script)
        environ = {**enforced_catalog.environment(duckdb_home), "PYTHONPATH": str(tmp_path)}
        command = [str(PYTHON), str(tmp_path / "script.py")]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    return run_script


def test_duckdb(run: Run, enforced_catalog: EnforcedCatalog) -> None:
    assert run("duckdb", DUCKDB) == ["3 rows"]
    assert enforced_catalog.read_table("for_duckdb") == [0, 1, 2]


def test_polars(run: Run, enforced_catalog: EnforcedCatalog) -> None:
    enforced_catalog.create_table("for_polars")
    assert run("polars", POLARS) == ["3 rows"]


def test_daft(run: Run, enforced_catalog: EnforcedCatalog) -> None:
    enforced_catalog.create_table("for_daft")
    assert run("daft", DAFT)[-1] == "6 rows"


def test_clickhouse(run: Run, enforced_catalog: EnforcedCatalog) -> None:
    """In chDB, which is ClickHouse in a process."""
    enforced_catalog.create_table("for_clickhouse")
    assert run("clickhouse", CLICKHOUSE) == ["3 rows"]
