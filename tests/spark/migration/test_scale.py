"""A Texera-shaped Postgres catalog: killed processes, many tables, and the time of registrations.

The small form has 4 tables and 8 executions. LAKEWRIGHT_FULL=1 makes it 1,000 tables and 2,000 executions.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from databases import postgres
from jdbc_catalog import jdbc_catalog_config
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import PasswordAuth
from lakewright_spark.execution_registry.texera import TexeraExecutions
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.writer import ResultWriter
from migration_catalogs import OLD, Catalogs
from projects import Project
from texera_database import TexeraDatabase
from waiting import wait_until

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
TABLES = 1000 if FULL else 4
USERS = (3, 4)

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(7200 if FULL else 900),
]


@pytest.fixture
def database() -> Iterator[str]:
    with postgres() as url:
        yield url


def test_killed_processes(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    """Every command is killed once while its tables are in work, and runs again."""
    own_project = Project(project.server, project.sandbox, project.real)
    target = own_project.config(*(own_project.warehouse(f"user-{user}-main") for user in USERS))
    monkeypatch.setenv("CATALOG_PASSWORD", "any")
    address = database.replace("lakewright@", "")
    source = jdbc_catalog_config(
        project.sandbox, f"sqlite:///{tmp_path}/x.db", monkeypatch, own_project.location("shared")
    )
    auth = PasswordAuth(kind="password", user="lakewright", password="env:CATALOG_PASSWORD")
    source = source.model_copy(update={"uri": address, "auth": auth})
    catalogs = Catalogs(source, target, tmp_path / "migration.db", project.sandbox, target_warehouse=None)
    texera = TexeraDatabase(database)
    expected = _write_executions(source, texera)
    objects = catalogs.list_objects()
    command = _build_command(catalogs, texera, tmp_path)
    for options, step in ((["--copy"], "verified"), (["--cut-over"], "cut over"), (["--finish"], "finished")):
        _kill_process([*command, *options], catalogs.ledger, step)
        done = subprocess.run([*command, *options, "--json"], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert {table["step"] for table in json.loads(done.stdout)["tables"]} == {step}
    executions = TexeraExecutions(texera.url)
    reader = ResultReader(target, executions=executions)
    uris = [table.uri for record in executions.all() for table in record.tables]
    existing_uris = [uri for uri in uris if uri.with_warehouse(None) in expected]
    assert len(existing_uris) == TABLES
    for uri in existing_uris:
        assert uri.warehouse == f"user-{USERS[uri.execution.execution % 2]}-main"
        assert reader.read_all(uri) == expected[uri.with_warehouse(None)]
    executions.close()
    assert objects <= catalogs.list_objects(), "no file of the source was deleted"


def _write_executions(source: CatalogConfig, texera: TexeraDatabase) -> dict[ResultUri, pa.Table]:
    """Write one result for every other execution; the results of the other executions were dropped earlier."""
    writer, expected = ResultWriter(source, OLD), dict[ResultUri, pa.Table]()
    for number in range(2 * TABLES):
        run = texera.add_execution(number, USERS[number % 2])
        if number < TABLES:
            uri, rows = run.runtime_statistics(), pa.table({"operatorId": [f"Op-{number}"], "numWorkers": [number]})
            writer.write(uri, rows)
            expected[uri] = rows
    return expected


def _build_command(catalogs: Catalogs, texera: TexeraDatabase, folder: Path) -> list[str]:
    files = [folder / "from.json", folder / "to.json"]
    for path, config in zip(files, (catalogs.source, catalogs.target), strict=True):
        path.write_text(config.to_json())
    options = ["--from", str(files[0]), "--to", str(files[1]), "--ledger", str(catalogs.ledger), "--texera", texera.url]
    return [sys.executable, "-m", "lakewright_spark", "migrate", *options]


def _kill_process(command: list[str], ledger: Path, step: str) -> None:
    """Kill a command once a table has completed the step, unless the command ends before."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: process.poll() is not None or _has_step(ledger, step))
    process.kill()
    process.wait()


def _has_step(ledger: Path, step: str) -> bool:
    if not ledger.exists():
        return False
    connection = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    try:
        texts = connection.execute("SELECT entry FROM entries").fetchall()
        return any(json.loads(text)["step"] == step for (text,) in texts)
    except sqlite3.OperationalError:
        return False  # the command is about to create the tables
    finally:
        connection.close()
