"""A Texera-shaped catalog in Postgres moves while maintenance runs in both catalogs and every command is killed.

The small form has 4 tables, 8 executions and a kill for each step. LAKEWRIGHT_FULL=1 makes it 1,000 tables and 2,000
executions, and kills halfway, too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import killed_command
import pyarrow as pa
import pytest
from jdbc_catalog import jdbc_catalog_config
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import PasswordAuth
from lakewright_spark.execution_registry.texera import TexeraExecutions
from lakewright_spark.migration.ledger import Step
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.writer import ResultWriter
from maintenance_loop import MaintenanceLoop
from migration_catalogs import OLD, Catalogs
from own_jvm import start_own_session
from projects import Project
from texera_database import TexeraDatabase

from tests.postgres_server import postgres
from tests.real_servers import leave_out

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
TABLES = 1000 if FULL else 4
MOST_SECONDS = 1800.0 if FULL else 300.0
USERS = (3, 4)
WAREHOUSES = [f"user-{user}-main" for user in USERS]
KILLS: dict[str, list[tuple[str, int]]] = {
    "--copy": [("planned", TABLES), ("fenced", 1), ("verified", 1)],
    "--cut-over": [("cut over", 1)],
    "--finish": [("finished", 1)],
}
"""By option: when the command is killed: as soon as this number of tables has completed a step in its process."""
if FULL:
    for _kills in KILLS.values():
        _kills.append((_kills[-1][0], TABLES // 2))
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
    move = MoveInKilledProcesses(catalogs, _build_arguments(catalogs, texera, tmp_path))
    warehouses = [(source, OLD), *((target, name) for name in WAREHOUSES)]
    with start_own_session(source, "migration", target.spark_properties()) as spark:
        with MaintenanceLoop(spark, warehouses, DAYS_UNTIL_OLD) as maintenance:
            move.run("--copy", Step.VERIFIED)
            maintenance.wait_for_fenced_tables(MOST_SECONDS)
            move.run("--cut-over", Step.CUT_OVER)
            maintenance.wait_for_fenced_tables(MOST_SECONDS)
        move.other_prefixes = _add_old_snapshots(catalogs)
        with MaintenanceLoop(spark, warehouses, DAYS_UNTIL_OLD, DAYS_UNTIL_OLD) as maintenance:
            move.run("--finish", Step.FINISHED)  # the tables lose their fence
            maintenance.wait_for_expired_snapshots(WAREHOUSES, MOST_SECONDS)
    move.check_objects("the end")
    _check_results(target, texera, expected)


class MoveInKilledProcesses:
    """Runs a command that is killed after each of its steps, and checks that all files still exist."""

    def __init__(self, catalogs: Catalogs, arguments: list[str]) -> None:
        self.catalogs, self.arguments = catalogs, arguments
        self.other_prefixes: tuple[str, ...] = ()
        """Prefixes of the keys of files that maintenance deletes."""
        self.objects = catalogs.list_objects()

    def run(self, option: str, last: Step) -> None:
        started = time.monotonic()
        for step, count in KILLS[option]:
            _run_until_killed([*self.arguments, option], step, count)
        command = [sys.executable, "-m", "lakewright_spark", *self.arguments, option, "--json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert {table["step"] for table in json.loads(done.stdout)["tables"]} == {last.value}
        self.check_objects(option)
        print(f"{option} of {TABLES} tables with {len(KILLS[option])} kills: {time.monotonic() - started:.0f} s")

    def check_objects(self, when: str) -> None:
        objects = {key for key in self.catalogs.list_objects() if not key.startswith(self.other_prefixes)}
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


def _build_arguments(catalogs: Catalogs, texera: TexeraDatabase, folder: Path) -> list[str]:
    files = [folder / "from.json", folder / "to.json"]
    for path, config in zip(files, (catalogs.source, catalogs.target), strict=True):
        path.write_text(config.to_json())
    options = ["--from", str(files[0]), "--to", str(files[1]), "--ledger", str(catalogs.ledger), "--texera", texera.url]
    return ["migrate", *options]


def _run_until_killed(arguments: list[str], step: str, count: int) -> None:
    """Run a command that kills itself as soon as this number of further tables has completed a step."""
    command = [sys.executable, str(Path(killed_command.__file__)), step, str(count), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=MOST_SECONDS)
    assert done.returncode == -signal.SIGKILL, (step, done.returncode, done.stderr)


def _add_old_snapshots(catalogs: Catalogs) -> tuple[str, ...]:
    """Add a table with earlier snapshots to each warehouse of the target, and return the prefixes of their keys."""
    prefixes: list[str] = []
    for warehouse in WAREHOUSES:
        catalog = open_catalog(catalogs.target, warehouse)
        catalog.create_namespace("maintained")
        rows = pa.table({"number": [1]})
        table = catalog.create_table("maintained.numbers", rows.schema)
        for _ in range(3):
            table.append(rows)
        prefixes.append(table.location().removeprefix("s3://").partition("/")[2])
    return tuple(prefixes)
