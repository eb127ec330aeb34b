"""A Texera-shaped catalog in Postgres moves while maintenance runs in both catalogs and every command is killed.

The small form has 4 tables and 8 executions. LAKEWRIGHT_FULL=1 makes it 1,000 tables and 2,000 executions.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from databases import postgres
from jdbc_catalog import jdbc_catalog_config
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import PasswordAuth
from lakewright_spark.execution_registry.texera import TexeraExecutions
from lakewright_spark.migration.ledger import Step
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.writer import ResultWriter
from maintenance_loop import MaintenanceLoop
from migration_catalogs import OLD, Catalogs
from own_jvm import start_own_session
from projects import Project
from texera_database import TexeraDatabase
from waiting import wait_until

from tests.real_servers import leave_out

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
TABLES = 1000 if FULL else 4
MOST_SECONDS = 1800.0 if FULL else 300.0
USERS = (3, 4)
WAREHOUSES = [f"user-{user}-main" for user in USERS]
STEPS = [step.value for step in Step if step is not Step.UNDONE]
KILLS: dict[str, list[tuple[str, int]]] = {
    "--copy": [("planned", 1), ("fenced", 1), ("verified", 1), ("verified", TABLES // 2)],
    "--cut-over": [("cut over", 1), ("cut over", TABLES // 2)],
    "--finish": [("finished", 1), ("finished", TABLES // 2)],
}
"""By option: when the command is killed: as soon as this number of tables has completed a step."""
DAYS_UNTIL_OLD = 60
"""Every snapshot and every orphan file is old enough by then."""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(7200 if FULL else 900),
]


@pytest.fixture
def database() -> Iterator[str]:
    with postgres() as url:
        yield url


def test_results_move_while_maintenance_runs(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    """Every command is killed after each of its steps and runs again, and no file of either side is deleted."""
    own_project = Project(project.server, project.sandbox, project.real)
    target = own_project.config(*map(own_project.warehouse, WAREHOUSES))
    if target.auth.kind != "none":
        leave_out("reads a warehouse through a second Spark catalog, which has no credential")
    monkeypatch.setenv("CATALOG_PASSWORD", "any")
    source = _configure_source(project, own_project, monkeypatch, database)
    catalogs = Catalogs(source, target, tmp_path / "migration.db", project.sandbox, target_warehouse=None)
    texera = TexeraDatabase(database)
    expected = _write_executions(source, texera)
    move = MoveInKilledProcesses(catalogs, _build_command(catalogs, texera, tmp_path))
    warehouses = [(source, OLD), *((target, name) for name in WAREHOUSES)]
    with start_own_session(source, "migration", target.spark_properties()) as spark:
        with MaintenanceLoop(spark, warehouses, DAYS_UNTIL_OLD) as maintenance:
            move.run("--copy", Step.VERIFIED)
            maintenance.wait_for_fenced_tables(MOST_SECONDS)
            move.run("--cut-over", Step.CUT_OVER)
            maintenance.wait_for_fenced_tables(MOST_SECONDS)
        with MaintenanceLoop(spark, warehouses, fenced_days=0):  # the tables lose their fence
            move.run("--finish", Step.FINISHED)
    move.check_objects("the end")
    _check_results(target, texera, expected)


class MoveInKilledProcesses:
    """Runs a command that is killed after each of its steps, and checks that all files still exist."""

    def __init__(self, catalogs: Catalogs, command: list[str]) -> None:
        self.catalogs, self.command = catalogs, command
        self.objects = catalogs.list_objects()

    def run(self, option: str, last: Step) -> None:
        started = time.monotonic()
        for step, count in KILLS[option]:
            _kill_process([*self.command, option], self.catalogs.ledger, step, count)
        done = subprocess.run([*self.command, option, "--json"], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert {table["step"] for table in json.loads(done.stdout)["tables"]} == {last.value}
        self.check_objects(option)
        print(f"{option} of {TABLES} tables with {len(KILLS[option])} kills: {time.monotonic() - started:.0f} s")

    def check_objects(self, when: str) -> None:
        objects = self.catalogs.list_objects()
        assert self.objects <= objects, f"files were deleted until {when}"
        self.objects = objects


def _check_results(target: CatalogConfig, texera: TexeraDatabase, expected: dict[ResultUri, pa.Table]) -> None:
    """Read every result by its address in Texera's rows, which names its user's warehouse."""
    executions = TexeraExecutions(texera.url)
    reader = ResultReader(target, executions=executions)
    uris = [table.uri for record in executions.all() for table in record.tables]
    existing_uris = [uri for uri in uris if uri.with_warehouse(None) in expected]
    assert len(existing_uris) == TABLES
    for uri in existing_uris:
        warehouse = WAREHOUSES[uri.execution.execution % 2]
        assert str(uri).startswith(f"vfs:///wh/{warehouse}/")
        rows = expected[uri.with_warehouse(None)]
        assert reader.read_all(uri) == rows
        assert reader.read_all(uri.with_warehouse(None)) == rows, "Texera's rows name the warehouse"
    executions.close()


def _configure_source(
    project: Project, own_project: Project, monkeypatch: pytest.MonkeyPatch, database: str
) -> CatalogConfig:
    """Return a catalog in Postgres whose tables are in the bucket of the users' warehouses."""
    config = jdbc_catalog_config(project.sandbox, "sqlite:////x.db", monkeypatch, own_project.location("shared"))
    auth = PasswordAuth(kind="password", user="lakewright", password="env:CATALOG_PASSWORD")
    return config.model_copy(update={"uri": database.replace("lakewright@", ""), "auth": auth})


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


def _kill_process(command: list[str], ledger: Path, step: str, count: int) -> None:
    """Kill a command once this number of tables has completed the step, unless the command ends before."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: process.poll() is not None or _count_tables(ledger, step) >= count, MOST_SECONDS)
    process.kill()
    process.wait()


def _count_tables(ledger: Path, step: str) -> int:
    """Return the number of tables that have completed a step."""
    if not ledger.exists():
        return 0
    connection = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    try:
        steps = connection.execute("SELECT json_extract(entry, '$.step') FROM entries").fetchall()
        return sum(STEPS.index(name) >= STEPS.index(step) for (name,) in steps)
    except sqlite3.OperationalError:
        return 0  # the command is about to create the tables
    finally:
        connection.close()
