"""Clean-up drops tables and files first, then registry rows, and finds both kinds of orphans."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from click.testing import Result
from fault_proxy import FaultInjectingProxy
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.cli import app, executions
from lakewright_spark.errors import CatalogUnreachableError, RegistryError
from lakewright_spark.execution_registry.records import ExecutionRecord, ExecutionStatus, WrittenTable
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.result_uris import Execution, Port, ResultKind, ResultUri
from lakewright_spark.results.cleanup import YOUNGEST_ORPHAN, Cleaner, build_sweep_error
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.schemas import CONSOLE_MESSAGES
from lakewright_spark.results.tables import ResultTables
from lakewright_spark.results.writer import ResultWriter
from texera_database import TexeraDatabase
from typer.testing import CliRunner
from waiting import wait_until

from tests.postgres_server import postgres

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[ExecutionRegistry]:
    opened = ExecutionRegistry("acme", f"sqlite:///{tmp_path}/executions.db")
    yield opened
    opened.close()


@pytest.fixture
def workflow() -> int:
    """Return a unique workflow id: all tests share the warehouse."""
    return uuid.uuid4().int % 10**9


@pytest.fixture
def cleaner(catalog_config: CatalogConfig, registry: ExecutionRegistry) -> Cleaner:
    return Cleaner(catalog_config, registry)


def create_execution(
    cleaner: Cleaner, workflow: int, execution: int, *, note: bool = True, ended: datetime = NOW
) -> ExecutionRecord:
    """Create an execution with a result, a console and statistics; without `note` it dies before it reports them."""
    registry = cleaner.registry
    record = registry.begin(workflow, execution, computing_unit="cu", warehouse="results", now=ended - HOUR)
    for uri in addresses(workflow, execution):
        ResultWriter(cleaner.config, "results").write_rows(uri, CONSOLE_MESSAGES, [("x",), ("y",)])
    if note:
        registry.record_tables(workflow, execution, cleaner.list_written_tables(record))
        registry.finish(workflow, execution, ExecutionStatus.COMPLETED, now=ended)
    return record


def remove_row(cleaner: Cleaner, workflow: int, execution: int) -> None:
    """Remove the row of an execution, whose tables remain."""
    record = cleaner.registry.find(workflow, execution)
    assert record is not None
    assert cleaner.registry.remove(record)


def addresses(workflow: int, execution: int) -> list[ResultUri]:
    run = Execution(workflow, execution, "results")
    return [run.result(Port("Op-1")), run.console_messages("Op-1"), run.runtime_statistics()]


def list_remaining_kinds(cleaner: Cleaner, workflow: int, execution: int) -> list[ResultKind]:
    tables = ResultTables(cleaner.config, "results")
    return [uri.kind for uri in addresses(workflow, execution) if tables.exists(uri)]


def test_rows_and_bytes_come_from_the_catalog(cleaner: Cleaner, workflow: int) -> None:
    record = create_execution(cleaner, workflow, 1)
    execution = cleaner.registry.find(workflow, 1)
    assert execution is not None
    assert {table.uri for table in execution.tables} == set(addresses(workflow, 1))
    assert [table.rows for table in execution.tables] == [2, 2, 2]
    assert all(table.bytes and table.bytes > 100 for table in execution.tables)
    assert record.workflow == workflow


def test_new_execution_replaces_results_but_keeps_statistics(cleaner: Cleaner, workflow: int) -> None:
    create_execution(cleaner, workflow, 1)
    new = cleaner.registry.begin(workflow, 2, computing_unit="cu", warehouse="results")
    swept = cleaner.replace_previous(new, stale_before=NOW - HOUR)
    assert [record.execution for record in swept.executions] == [1]
    assert list_remaining_kinds(cleaner, workflow, 1) == [ResultKind.RUNTIME_STATISTICS]
    old = cleaner.registry.find(workflow, 1)
    assert old is not None
    assert old.replaced_at
    assert [table.uri.kind for table in old.tables] == [ResultKind.RUNTIME_STATISTICS]
    assert cleaner.replace_previous(new, stale_before=NOW - HOUR).executions == []


def test_running_and_other_units_executions_are_not_replaced(cleaner: Cleaner, workflow: int) -> None:
    create_execution(cleaner, workflow, 1)
    cleaner.registry.begin(workflow, 2, computing_unit="cu", warehouse="results")
    new = cleaner.registry.begin(workflow, 3, computing_unit="cu", warehouse="results")
    assert [r.execution for r in cleaner.replace_previous(new, stale_before=NOW - HOUR).executions] == [1]
    other = cleaner.registry.begin(workflow, 4, computing_unit="other", warehouse="results")
    assert cleaner.replace_previous(other, stale_before=NOW + HOUR).executions == []
    third = cleaner.registry.begin(workflow, 5, computing_unit="cu", warehouse="results")
    died = cleaner.replace_previous(third, stale_before=datetime.now(UTC) + HOUR)
    assert [record.execution for record in died.executions] == [2, 3]


def test_sweep_drops_tables_of_expired_executions_first(cleaner: Cleaner, workflow: int) -> None:
    create_execution(cleaner, workflow, 1, ended=NOW - 25 * HOUR)
    create_execution(cleaner, workflow, 2, note=False, ended=NOW - 25 * HOUR)  # killed: its row lists no tables
    create_execution(cleaner, workflow, 3)
    dry = Cleaner(cleaner.config, cleaner.registry).sweep(NOW - 24 * HOUR, dry_run=True)
    assert [record.execution for record in dry.executions] == [1, 2]
    assert set(dry.tables) == {*addresses(workflow, 1), *addresses(workflow, 2)}
    assert len(list_remaining_kinds(cleaner, workflow, 1)) == 3
    swept = cleaner.sweep(NOW - 24 * HOUR)
    assert set(swept.tables) == set(dry.tables)
    assert build_sweep_error(swept) is None
    assert (list_remaining_kinds(cleaner, workflow, 1), list_remaining_kinds(cleaner, workflow, 2)) == ([], [])
    assert len(list_remaining_kinds(cleaner, workflow, 3)) == 3
    assert [record.execution for record in cleaner.registry.all()] == [3]


def test_sweep_ignores_missing_tables(cleaner: Cleaner, workflow: int) -> None:
    create_execution(cleaner, workflow, 1, ended=NOW - 25 * HOUR)
    ResultTables(cleaner.config, "results").drop(addresses(workflow, 1)[0])  # as after a killed sweep
    assert len(cleaner.sweep(NOW - 24 * HOUR).executions) == 1
    assert list_remaining_kinds(cleaner, workflow, 1) == []


def test_sweep_keeps_rows_while_the_catalog_is_down(cleaner: Cleaner, workflow: int) -> None:
    create_execution(cleaner, workflow, 1, ended=NOW - 25 * HOUR)
    nobody = cleaner.config.model_copy(update={"uri": "http://127.0.0.1:1/catalog"})
    with pytest.raises(CatalogUnreachableError):
        Cleaner(nobody, cleaner.registry).sweep(NOW)
    assert cleaner.registry.find(workflow, 1) is not None
    assert len(list_remaining_kinds(cleaner, workflow, 1)) == 3


def test_sweep_reports_a_removed_warehouse_and_keeps_its_rows(cleaner: Cleaner, workflow: int) -> None:
    cleaner.registry.begin(workflow, 1, computing_unit="cu", warehouse="sold", now=NOW - 25 * HOUR)
    cleaner.registry.record_tables(
        workflow, 1, [cleaner.list_written_tables(create_execution(cleaner, workflow, 2))[0]]
    )
    swept = cleaner.sweep(NOW - 24 * HOUR)
    error = build_sweep_error(swept)
    assert "execution 1 of workflow" in str(error)
    assert "has no warehouse 'sold'" in str(error)
    assert cleaner.registry.find(workflow, 1) is not None


def test_tables_without_rows_and_rows_without_tables(cleaner: Cleaner, workflow: int) -> None:
    create_execution(cleaner, workflow, 1)
    create_execution(cleaner, workflow, 2)
    create_execution(cleaner, workflow, 3)
    remove_row(cleaner, workflow, 1)
    result = addresses(workflow, 2)[0]
    ResultTables(cleaner.config, "results").drop(result)

    orphans = cleaner.find_orphans()
    assert {uri for uri in orphans.tables if uri.execution.workflow == workflow} == set(addresses(workflow, 1))
    assert [(record.execution, missing) for record, missing in orphans.rows] == [(2, [result])]

    class Texera:
        """Knows the first execution."""

        def knows(self, of: int, execution: int) -> bool:
            return (of, execution) == (workflow, 1)

        def find_warehouse(self, of: int, execution: int) -> str | None:
            return "results" if (of, execution) == (workflow, 1) else None

        def all(self) -> Iterator[ExecutionRecord]:
            yield create_execution(cleaner, workflow, 4)
            yield ExecutionRecord(workflow, 1, None, "results", None, ExecutionStatus.COMPLETED, NOW, NOW)

    assert not [uri for uri in cleaner.find_orphans([Texera()]).tables if uri.execution.workflow == workflow]

    done = cleaner.drop_orphans(orphans, younger_stay=timedelta(0))
    assert [
        uri for uri in done.tables if uri.execution.workflow == workflow
    ] == []  # all of them are younger than the floor
    assert [record.execution for record in done.rows] == [2]
    assert cleaner.find_orphans().rows == []


def test_old_orphan_tables_are_dropped(cleaner: Cleaner, workflow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    create_execution(cleaner, workflow, 1)
    create_execution(cleaner, workflow, 2)
    remove_row(cleaner, workflow, 1)
    orphans = cleaner.find_orphans()
    mine = [uri for uri in orphans.tables if uri.execution.workflow == workflow]
    monkeypatch.setattr("lakewright_spark.results.cleanup.YOUNGEST_ORPHAN", -HOUR)
    done = cleaner.drop_orphans(type(orphans)(mine, []), younger_stay=-HOUR)
    assert set(done.tables) == set(addresses(workflow, 1))
    assert list_remaining_kinds(cleaner, workflow, 1) == []
    assert timedelta(0) < YOUNGEST_ORPHAN


def test_empty_registry_reports_no_orphans(
    cleaner: Cleaner, registry: ExecutionRegistry, workflow: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new registry on another machine knows none of the results."""
    create_execution(cleaner, workflow, 1)
    empty = ExecutionRegistry(registry.tenant, f"sqlite:///{tmp_path}/empty.db")
    monkeypatch.setattr("lakewright_spark.results.cleanup.YOUNGEST_ORPHAN", -HOUR)
    by_empty = Cleaner(cleaner.config, empty)
    with pytest.raises(RegistryError, match="knows no execution of tenant"):
        by_empty.drop_orphans(by_empty.find_orphans(), younger_stay=-HOUR)
    with pytest.raises(RegistryError, match="Texera's database knows no execution"):
        cleaner.drop_orphans(cleaner.find_orphans([empty]), younger_stay=-HOUR, other_registries=[empty])
    empty.close()
    assert len(list_remaining_kinds(cleaner, workflow, 1)) == 3


def test_tables_outside_the_configuration_are_not_missing(cleaner: Cleaner, workflow: int) -> None:
    """A computing unit's configuration has some of the tenant's warehouses; the registry has runs of all."""
    elsewhere = Execution(workflow, 1, "curated").result(Port("Op-1"))
    cleaner.registry.begin(workflow, 1, computing_unit="cu", warehouse="curated")
    cleaner.registry.record_tables(workflow, 1, [WrittenTable(elsewhere, 3)])
    orphans = cleaner.find_orphans()
    assert orphans.rows == []
    cleaner.drop_orphans(orphans, younger_stay=HOUR)
    execution = cleaner.registry.find(workflow, 1)
    assert execution is not None
    assert [table.uri for table in execution.tables] == [elsewhere]


@pytest.fixture
def command_line(cleaner: Cleaner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return a function that runs `executions orphans` on tables of any age and types an answer."""
    (tmp_path / "catalog.json").write_text(cleaner.config.model_copy(update={"tenant": "acme"}).to_json())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("lakewright_spark.results.cleanup.YOUNGEST_ORPHAN", -HOUR)

    def run(*options: str, typed: str | None = None) -> Result:
        monkeypatch.setattr(executions, "has_terminal", lambda: typed is not None)
        line = ["executions", "orphans", "--config", str(tmp_path / "catalog.json"), *options]
        return CliRunner().invoke(app, [*line, "--older-than", "1s"], input=typed)

    return run


def test_dropping_orphans_requires_a_named_registry(
    cleaner: Cleaner, workflow: int, command_line: Callable[..., Result], tmp_path: Path
) -> None:
    create_execution(cleaner, workflow, 1)
    create_execution(cleaner, workflow, 2)
    remove_row(cleaner, workflow, 1)
    registry_options = ["--drop", "--registry", f"sqlite:///{tmp_path}/executions.db"]
    unnamed = command_line("--drop", "--no-texera", "--yes")
    assert isinstance(unnamed.exception, RegistryError)
    assert "expected the registry of the tenant's executions" in str(unnamed.exception)
    empty = command_line("--drop", "--registry", f"sqlite:///{tmp_path}/empty.db", "--no-texera", "--yes")
    assert isinstance(empty.exception, RegistryError)
    for options, message in ((["--yes"], "either --texera URL or --no-texera"), (["--no-texera"], "expected --yes")):
        refused = command_line(*registry_options, *options)
        assert refused.exit_code == 2
        assert message in " ".join(refused.output.replace("│", " ").split())
    declined = command_line(*registry_options, "--no-texera", typed="n\n")
    assert declined.exit_code == 1
    assert len(list_remaining_kinds(cleaner, workflow, 1)) == 3
    while list_remaining_kinds(cleaner, workflow, 1):  # tables written within the last second are kept
        confirmed = command_line(*registry_options, "--no-texera", typed="y\n")
        assert confirmed.exit_code == 0, confirmed.output
    assert len(list_remaining_kinds(cleaner, workflow, 2)) == 3


@pytest.fixture(
    params=[
        ("sqlite", "warehouse_name"),
        ("sqlite", "lakekeeper_warehouse_name"),
        pytest.param(("postgres", "lakekeeper_warehouse_name"), marks=pytest.mark.long),
    ],
    ids="-".join,
)
def texera(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TexeraDatabase]:
    """Texera's tables without an execution, as before and after texera#7754."""
    dialect, column = request.param
    if dialect == "sqlite":
        yield TexeraDatabase(f"sqlite:///{tmp_path}/texera.db", column)
        return
    with postgres() as url:
        yield TexeraDatabase(url, column)


def test_command_keeps_results_of_texera(
    cleaner: Cleaner, workflow: int, command_line: Callable[..., Result], texera: TexeraDatabase, tmp_path: Path
) -> None:
    """Texera's results are in the tenant's warehouse, and the tenant's registry has no row of them."""
    texera_execution, orphan = workflow, workflow + 1
    for execution in (1, texera_execution, orphan):
        create_execution(cleaner, workflow, execution)
    for execution in (texera_execution, orphan):
        remove_row(cleaner, workflow, execution)
    options = ["--registry", f"sqlite:///{tmp_path}/executions.db", "--texera", texera.url, "--json"]
    refused = command_line("--drop", "--yes", *options)
    assert "Texera's database knows no execution" in str(refused.exception)
    texera.add_execution(texera_execution, user=3)

    listing = json.loads(command_line(*options).stdout)
    assert listing["dropped"] == []
    assert list_addresses(listing["tables"], workflow) == set(addresses(workflow, orphan))
    while list_remaining_kinds(cleaner, workflow, orphan):  # tables written within the last second are kept
        dropped = json.loads(command_line("--drop", "--yes", *options).stdout)["dropped"]
        assert list_addresses(dropped, workflow) <= set(addresses(workflow, orphan))
    assert len(list_remaining_kinds(cleaner, workflow, texera_execution)) == 3


def list_addresses(tables: list[str], workflow: int) -> set[ResultUri]:
    """Return the addresses of tables of a workflow: all tests share the warehouse."""
    return {uri for uri in map(ResultUri.parse, tables) if uri.execution.workflow == workflow}


def test_drop_purges_but_keeps_a_new_table_of_that_name(
    catalog_config: CatalogConfig, sandbox: Sandbox, workflow: int
) -> None:
    proxy = FaultInjectingProxy(sandbox.lakekeeper.endpoint)
    with serve(proxy) as endpoint:
        config = catalog_config.model_copy(update={"uri": f"{endpoint}/catalog"})
        writer, uri = ResultWriter(config, "results"), Execution(workflow, 1, "results").result(Port("Again-1"))
        writer.write(uri, pa.table({"n": [1]}))
        writer.tables.drop(uri)
        writer.write(uri, pa.table({"n": [2]}))
    drops = [line for line in proxy.lines if line.startswith("DELETE")]
    assert drops
    assert all(line.lower().endswith("?purgerequested=true") for line in drops)
    tasks = f"{sandbox.lakekeeper.endpoint}/management/v1/warehouse/{config.warehouses[0].id}/task/list"
    open_states = {"status": ["SCHEDULED", "RUNNING"]}  # the server purges in the background
    wait_until(lambda: not httpx.post(tasks, json=open_states, timeout=60).json()["tasks"])
    assert ResultReader(catalog_config).read_all(uri)["n"].to_pylist() == [2]
