"""DuckDB, ClickHouse, Polars and Daft, in an environment of their own, on a catalog that enforces grants.

`make test-engines` installs them from tests/engines/requirements.lock and names their Python in TEST_ENGINES_PYTHON.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lakewright.config_formats.config_format import ConfigRequest
from lakewright.config_formats.registry import load_format
from pyiceberg.catalog import load_catalog

from tests.engines.enforced_catalog import VARIABLE, EnforcedCatalog

PYTHON = os.environ.get("TEST_ENGINES_PYTHON")

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs the environment of `make test-engines`")

TABLE = "operator-port-result"
Run = Callable[[str, str], list[str]]

DUCKDB = """
import os, shutil, sys
from importlib.util import find_spec
from pathlib import Path
import duckdb

connection = duckdb.connect(config={"extension_directory": "extensions"})
connection.create_function("getenv", os.environ.__getitem__, [str], str)  # the command line has it
for name in ("avro", "httpfs", "iceberg"):
    package = Path(find_spec(f"duckdb_extension_{name}").submodule_search_locations[0])
    connection.execute(f"LOAD '{next(package.rglob('*.duckdb_extension'))}'")
text = Path("attach.sql").read_text()
# The extensions come from packages instead of DuckDB's own server.
text = "".join(line for line in text.splitlines(True) if not line.startswith(("INSTALL ", "LOAD ")))
connection.execute(text)
connection.execute('CREATE TABLE "granted"."operator-port-result".made AS SELECT range::BIGINT AS n FROM range(3)')
print(connection.execute('SELECT count(*) FROM "granted"."operator-port-result".made').fetchone()[0], "rows")
"""
CLICKHOUSE = """
import os
from pathlib import Path
import chdb.session

session = chdb.session.Session()
for statement in os.path.expandvars(Path("databases.sql").read_text()).split(";\\n"):
    if statement.strip():
        session.query(statement)
result = session.query("SELECT count(*) FROM granted.`operator-port-result.for_clickhouse`")
print(result.bytes().decode().strip(), "rows")
"""
POLARS = """
import lakekeeper_polars as lake
print(lake.scan("granted", "operator-port-result.for_polars").collect().height, "rows")
"""
DAFT = """
import daft
import lakekeeper_daft as lake
lake.read("granted", "operator-port-result.for_daft").write_iceberg(
    lake.catalogs["granted"].load_table("operator-port-result.for_daft")
)
print(lake.read("granted", "operator-port-result.for_daft").count_rows(), "rows")
"""


@pytest.fixture
def run(enforced_catalog: EnforcedCatalog, tmp_path: Path) -> Run:
    """Return a function that writes the files of a format, and runs a script beside them."""

    def run_script(name: str, script: str) -> list[str]:
        config_format = load_format(name)
        assert config_format.engine
        config = enforced_catalog.config.select_warehouses(["granted"])
        for file, text in config_format.render(ConfigRequest(config, config_format.engine.version)).items():
            (tmp_path / file).write_text(text)
        (tmp_path / "script.py").write_text(script)
        environ = {**os.environ, VARIABLE: enforced_catalog.secret, "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
        command = [str(PYTHON), str(tmp_path / "script.py")]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    return run_script


def create_table(catalog: EnforcedCatalog, name: str) -> None:
    """Create a table of three rows with PyIceberg, as the client of jobs."""
    properties = {**catalog.config.pyiceberg("granted")}
    properties.pop("auth")
    auth = catalog.config.auth.model_dump()
    properties |= {"credential": f"{auth['client_id']}:{catalog.secret}", "oauth2-server-uri": auth["token_url"]}
    rows = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
    table = load_catalog("granted", **properties, scope=auth["scope"]).create_table(f"{TABLE}.{name}", rows.schema)
    table.append(rows)


def test_duckdb(run: Run) -> None:
    assert run("duckdb", DUCKDB) == ["3 rows"]


def test_polars(run: Run, enforced_catalog: EnforcedCatalog) -> None:
    create_table(enforced_catalog, "for_polars")
    assert run("polars", POLARS) == ["3 rows"]


def test_daft(run: Run, enforced_catalog: EnforcedCatalog) -> None:
    create_table(enforced_catalog, "for_daft")
    assert run("daft", DAFT)[-1] == "6 rows"


def test_clickhouse(run: Run, enforced_catalog: EnforcedCatalog) -> None:
    """In chDB, which is ClickHouse in a process."""
    create_table(enforced_catalog, "for_clickhouse")
    assert run("clickhouse", CLICKHOUSE) == ["3 rows"]
