"""Texera's results move to one warehouse per user, and every address resolves before and afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from jdbc_catalog import jdbc_catalog_config
from lakewright_spark.errors import MigrationError, RegistryError
from lakewright_spark.execution_registry import database
from lakewright_spark.execution_registry.texera import TexeraExecutions
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.ledger import Ledger, Step, open_ledger
from lakewright_spark.migration.steps import TableMigration
from lakewright_spark.migration.texera import TexeraRows
from lakewright_spark.migration.verify import Depth
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.result_uris import ResultKind, ResultUri
from lakewright_spark.results.reader import ResultReader
from migration_catalogs import OLD, Catalogs
from projects import Project
from sqlalchemy import text
from texera_database import COMPLETED, PAUSING, RUNNING, TexeraDatabase, write_results
from waiting import wait_until

from tests.postgres_server import postgres


@pytest.fixture
def catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    """Return Texera's global warehouse in a database, and Lakekeeper warehouses of users 3 and 4."""
    own_project = Project(project.server, project.sandbox, project.real)
    target = own_project.config(own_project.warehouse("user-3-main"), own_project.warehouse("user-4-1"))
    location = own_project.location("shared")
    source = jdbc_catalog_config(project.sandbox, f"sqlite:///{tmp_path}/old.db", monkeypatch, location)
    return Catalogs(source, target, tmp_path / "migration.db", project.sandbox, target_warehouse=None)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def texera(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TexeraDatabase]:
    if request.param == "sqlite":
        yield TexeraDatabase(f"sqlite:///{tmp_path}/texera.db")
        return
    with postgres() as url:
        yield TexeraDatabase(url)


def write_executions(catalogs: Catalogs, texera: TexeraDatabase) -> dict[ResultUri, pa.Table]:
    """Add executions 1 and 2 of users 3 and 4, and return the rows of their results."""
    return {
        uri: rows
        for number, user in ((1, 3), (2, 4))
        for uri, rows in write_results(catalogs.source, OLD, texera.add_execution(number, user)).items()
    }


def check_results(catalogs: Catalogs, texera: TexeraDatabase, expected: dict[ResultUri, pa.Table]) -> None:
    """Read every result by the address in Texera's rows, and by its address without a warehouse."""
    executions = TexeraExecutions(texera.url)
    reader = ResultReader(catalogs.target, executions=executions)
    addresses = [table.uri for record in executions.all() for table in record.tables if table.uri.kind.value != "state"]
    assert {uri.with_warehouse(None) for uri in addresses} == set(expected)
    for uri in addresses:
        assert uri.warehouse == ("user-3-main" if uri.execution.execution == 1 else "user-4-1")
        assert reader.read_all(uri) == expected[uri.with_warehouse(None)]
        assert reader.read_all(uri.with_warehouse(None)) == expected[uri.with_warehouse(None)]
    executions.close()


def test_results_move_to_their_users(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    expected = write_executions(catalogs, texera)
    write_results(catalogs.source, OLD, texera.add_execution(3, user=3, status=RUNNING))
    write_results(catalogs.source, OLD, texera.add_execution(4, user=9))
    write_results(catalogs.source, OLD, texera.add_execution(5, user=3, status=PAUSING))
    catalogs.add_table("other.orders")

    result = catalogs.migrate(copy=True, texera=texera.url)
    assert {(entry.warehouse, entry.name.split("_")[1]) for entry in result.entries} == {
        ("user-3-main", "1"),
        ("user-4-1", "2"),
    }
    reasons = " ".join(result.plan.skipped.values())
    assert len(result.plan.skipped) == 10
    assert "its execution is running" in reasons
    assert "user 9 has no warehouse user-9-NAME in --to" in reasons
    assert "no result of an execution" in reasons
    assert texera.read("whid", "user_warehouse", "whid") == []

    catalogs.migrate(Action.CUT_OVER, texera=texera.url)
    check_results(catalogs, remove_executions(texera, 3, 4, 5), expected)
    columns = "uid, name, lakekeeper_warehouse_name, flavor, CAST(lakekeeper_warehouse_id AS TEXT)"
    ids = {warehouse.name: warehouse.id for warehouse in catalogs.target.warehouses}
    assert texera.read(columns, "user_warehouse", "uid") == [
        (3, "main", "user-3-main", "local", ids["user-3-main"]),
        (4, "1", "user-4-1", "local", ids["user-4-1"]),
    ]
    entries = catalogs.migrate(Action.FINISH, texera=texera.url).entries
    assert {entry.step for entry in entries} == {Step.FINISHED}
    check_results(catalogs, texera, expected)


def test_nothing_moves_if_a_row_is_refused(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    """User 4 has another warehouse with the display name of `user-4-1`."""
    expected = write_executions(catalogs, texera)
    catalogs.migrate(copy=True, texera=texera.url)
    texera.add_warehouse(4, "1", "user-4-7")

    with pytest.raises(RegistryError, match=r"(?i)unique.*user_warehouse"):
        catalogs.migrate(Action.CUT_OVER, texera=texera.url)

    with open_ledger(catalogs.ledger, str(catalogs.route)) as ledger:
        assert {entry.step for entry in ledger.list_entries()} == {Step.VERIFIED}
    assert texera.read("lakekeeper_warehouse_name", "user_warehouse", "whid") == [("user-4-7",)]
    reader = ResultReader(catalogs.source, OLD)
    assert all(reader.read_all(uri) == rows for uri, rows in expected.items())


def test_running_execution_is_not_cut_over(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    expected = write_executions(catalogs, texera)
    catalogs.migrate(copy=True, texera=texera.url)
    texera.set_status(2, PAUSING)

    result = catalogs.migrate(Action.CUT_OVER, texera=texera.url)

    assert {(entry.name.split("_")[1], entry.step) for entry in result.entries} == {("1", Step.CUT_OVER)}
    assert len(result.plan.skipped) == 3
    assert set(result.plan.skipped.values()) == {"its execution is running; run the migration again after its end"}
    assert texera.read("whid", "workflow_executions", "eid")[1] == (None,)
    texera.set_status(2, COMPLETED)
    catalogs.migrate(Action.CUT_OVER, texera=texera.url)
    check_results(catalogs, texera, expected)


@pytest.mark.parametrize("is_deleted_later", [False, True])
def test_deleted_execution_holds_up_nothing(
    catalogs: Catalogs, texera: TexeraDatabase, *, is_deleted_later: bool
) -> None:
    write_executions(catalogs, texera)
    catalogs.migrate(copy=True, texera=texera.url)
    note = "execution 2 of workflow 2 is not in Texera's database: its tables move, and it has no rows to change"
    if not is_deleted_later:
        remove_executions(texera, 2)
    result = catalogs.migrate(Action.CUT_OVER, texera=texera.url)
    assert {entry.step for entry in result.entries} == {Step.CUT_OVER}
    if not is_deleted_later:
        assert [loss for loss in result.plan.losses if "Texera's database" in loss] == [note]
        return
    remove_executions(texera, 2)
    result = catalogs.migrate(Action.UNDO, texera=texera.url)
    assert {entry.step for entry in result.entries} == {Step.UNDONE}
    assert result.plan.losses == (note,)
    assert texera.read("eid, whid", "workflow_executions", "eid") == [(1, None)]


def remove_executions(texera: TexeraDatabase, *numbers: int) -> TexeraDatabase:
    """Remove executions from Texera's tables."""
    with texera.engine.begin() as connection:
        for number in numbers:
            for table, column in (
                ("operator_executions", "workflow_execution_id"),
                ("operator_port_executions", "workflow_execution_id"),
                ("workflow_executions", "eid"),
            ):
                connection.exec_driver_sql(f"DELETE FROM {texera.schema}{table} WHERE {column} = {number}")
    return texera


@pytest.mark.long
def test_undo_restores_the_rows(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    expected = write_executions(catalogs, texera)
    columns = ("eid, whid, runtime_stats_uri", "workflow_executions", "eid")
    addresses = ("workflow_execution_id, result_uri", "operator_port_executions", "workflow_execution_id")
    before = texera.read(*columns), texera.read(*addresses)
    catalogs.migrate(copy=True, texera=texera.url)
    catalogs.migrate(Action.CUT_OVER, texera=texera.url)
    assert (texera.read(*columns), texera.read(*addresses)) != before
    catalogs.migrate(Action.UNDO, texera=texera.url)
    assert (texera.read(*columns), texera.read(*addresses)) == before
    reader = ResultReader(catalogs.source, OLD)
    for uri, rows in expected.items():
        assert reader.read_all(uri) == rows


def read_addresses(texera: TexeraDatabase) -> list[tuple[object, ...]]:
    """Return execution, warehouse and address of the statistics of each execution."""
    return texera.read("eid, whid, runtime_stats_uri", "workflow_executions", "eid")


def test_undo_leaves_the_rows_of_finished_executions(
    catalogs: Catalogs, texera: TexeraDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Execution 1 is finished, execution 2 is finished in part, and execution 3 is cut over."""
    expected = write_executions(catalogs, texera)
    write_results(catalogs.source, OLD, texera.add_execution(3, user=3))
    before = read_addresses(texera)
    catalogs.migrate(copy=True, depth="metadata", texera=texera.url)
    catalogs.migrate(Action.CUT_OVER, depth="metadata", texera=texera.url)
    moved = read_addresses(texera)
    catalogs.migrate(Action.FINISH, "*_1_*", texera=texera.url)
    with monkeypatch.context() as patch:
        patch.setattr(TableMigration, "finish", _refuse_statistics(TableMigration.finish))
        with pytest.raises(MigrationError, match="out of order"):
            catalogs.migrate(Action.FINISH, "*_2_*", texera=texera.url)

    with pytest.raises(MigrationError, match=r"1 of 4 tables.*another table of its execution is finished"):
        catalogs.migrate(Action.UNDO, texera=texera.url)
    assert read_addresses(texera) == [*moved[:2], before[2]]
    catalogs.migrate(Action.FINISH, "*_2_*", texera=texera.url)
    plan = catalogs.migrate(Action.UNDO, texera=texera.url).plan
    assert len(plan.skipped) == 6
    assert {reason.split(":")[0] for reason in plan.skipped.values()} == {"it is finished"}
    check_results(catalogs, remove_executions(texera, 3), expected)


def _refuse_statistics(finish: Callable[[TableMigration], None]) -> Callable[[TableMigration], None]:
    def finish_without_statistics(migration: TableMigration) -> None:
        if "statistics" in migration.entry.namespace[0]:
            raise MigrationError("out of order")
        finish(migration)

    return finish_without_statistics


def test_finish_updates_rows_that_the_cut_over_left(
    catalogs: Catalogs, texera: TexeraDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texera's database fails after the tables have moved. Nothing is finished while it fails."""
    expected = write_executions(catalogs, texera)
    catalogs.migrate(copy=True, depth="metadata", texera=texera.url)
    with monkeypatch.context() as patch:
        patch.setattr(TexeraRows, "_update", _refuse)
        for action in (Action.CUT_OVER, Action.FINISH):
            with pytest.raises(MigrationError, match=r"of 6 tables.*out of order"):
                catalogs.migrate(action, depth="metadata", texera=texera.url)
    with open_ledger(catalogs.ledger, str(catalogs.route)) as ledger:
        assert {entry.step for entry in ledger.list_entries()} == {Step.CUT_OVER}
    assert {whid for _, whid, _ in read_addresses(texera)} == {None}

    entries = catalogs.migrate(Action.FINISH, texera=texera.url).entries

    assert {entry.step for entry in entries} == {Step.FINISHED}
    check_results(catalogs, texera, expected)


def test_finish_refuses_an_execution_cut_over_in_part(
    catalogs: Catalogs, texera: TexeraDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(catalogs.source, OLD, texera.add_execution(1, user=3))
    catalogs.migrate(copy=True, depth="metadata", texera=texera.url)
    cut_over, calls = TableMigration.cut_over, list[str]()

    def cut_over_first_table(migration: TableMigration, depth: Depth) -> None:
        calls.append(str(migration.entry))
        if len(calls) > 1:
            raise MigrationError("out of order")
        cut_over(migration, depth)

    with monkeypatch.context() as patch:
        patch.setattr(TableMigration, "cut_over", cut_over_first_table)
        with pytest.raises(MigrationError, match="out of order"):
            catalogs.migrate(Action.CUT_OVER, depth="metadata", texera=texera.url)
    with pytest.raises(MigrationError, match="whose tables are all cut over, found verified; run --cut-over first"):
        catalogs.migrate(Action.FINISH, texera=texera.url)
    with open_ledger(catalogs.ledger, str(catalogs.route)) as ledger:
        assert [entry.step for entry in ledger.list_entries()].count(Step.FINISHED) == 0
    assert {whid for _, whid, _ in read_addresses(texera)} == {None}


def test_tables_that_the_source_lost_hold_up_nothing(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    """Texera drops the result of an execution before the cut-over. Its other tables move to the end."""
    expected = write_results(catalogs.source, OLD, texera.add_execution(1, user=3))
    lost = next(uri for uri in expected if uri.kind is ResultKind.RESULT)
    names = [str(entry) for entry in catalogs.migrate(copy=True, depth="metadata", texera=texera.url).entries]
    (lost_name,) = (name for name in names if name.endswith(lost.table))
    catalogs.open_source().drop_table(lost_name)

    for action, step in (
        (Action.CUT_OVER, Step.CUT_OVER),
        (Action.UNDO, Step.UNDONE),
        (Action.REGISTER, Step.VERIFIED),
        (Action.CUT_OVER, Step.CUT_OVER),
        (Action.FINISH, Step.FINISHED),
    ):
        result = catalogs.migrate(action, copy=True, depth="metadata", texera=texera.url)
        assert {str(entry): entry.step for entry in result.entries} == dict.fromkeys({*names} - {lost_name}, step)
        assert result.plan.skipped[lost_name].startswith("the source lost it before its cut-over")
    assert open_catalog(catalogs.target, "user-3-main").table_exists(lost_name)
    check_results(catalogs, texera, expected)


def test_execution_finished_and_undone_in_part(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    """A former release undid the tables of an execution that were not finished."""
    expected = write_results(catalogs.source, OLD, texera.add_execution(1, user=3))
    catalogs.migrate(copy=True, depth="metadata", texera=texera.url)
    catalogs.migrate(Action.CUT_OVER, depth="metadata", texera=texera.url)
    catalogs.migrate(Action.FINISH, "workflow-runtime-statistics.*")
    catalogs.migrate(Action.UNDO, "operator-port-result.*")

    with pytest.raises(MigrationError, match=r"1 of 1 tables are not migrated: operator-console-messages\."):
        catalogs.migrate(Action.UNDO, texera=texera.url)
    with pytest.raises(MigrationError, match="found undone; run without --finish first, and then --cut-over"):
        catalogs.migrate(Action.FINISH, texera=texera.url)
    catalogs.migrate(copy=True, depth="metadata", texera=texera.url)
    catalogs.migrate(Action.CUT_OVER, depth="metadata", texera=texera.url)
    entries = catalogs.migrate(Action.FINISH, texera=texera.url).entries
    assert {entry.step for entry in entries} == {Step.FINISHED}
    check_results(catalogs, texera, expected)


def test_undo_leaves_out_undone_tables_of_finished_executions(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    write_results(catalogs.source, OLD, texera.add_execution(1, user=3))
    catalogs.migrate(copy=True, depth="metadata", texera=texera.url)
    catalogs.migrate(Action.CUT_OVER, depth="metadata", texera=texera.url)
    moved = read_addresses(texera)
    catalogs.migrate(Action.FINISH, "workflow-runtime-statistics.*")
    catalogs.migrate(Action.UNDO, "operator-*")

    result = catalogs.migrate(Action.UNDO, texera=texera.url)

    assert (list(result.entries), result.plan.blocked) == ([], {})
    assert sorted(reason.split(":")[0] for reason in result.plan.skipped.values()) == [
        "it is finished",
        "it is undone",
        "it is undone",
    ]
    assert read_addresses(texera) == moved


def test_repeated_command_clears_the_error_of_rows(
    catalogs: Catalogs, texera: TexeraDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(catalogs.source, OLD, texera.add_execution(1, user=3))
    catalogs.migrate(copy=True, depth="metadata", texera=texera.url)
    for action, step in ((Action.CUT_OVER, Step.CUT_OVER), (Action.UNDO, Step.UNDONE)):
        with monkeypatch.context() as patch:
            patch.setattr(TexeraRows, "_update", _refuse)
            with pytest.raises(MigrationError, match="out of order"):
                catalogs.migrate(action, depth="metadata", texera=texera.url)
        entries = catalogs.migrate(action, texera=texera.url).entries
        assert {(entry.step, entry.error) for entry in entries} == {(step, "")}


def _refuse(*_: object) -> None:
    raise MigrationError("out of order")


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.long
def test_killed_between_tables_and_rows(
    catalogs: Catalogs, texera: TexeraDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = write_executions(catalogs, texera)
    catalogs.migrate(copy=True, texera=texera.url)
    record = Ledger.record_execution

    def end_process(self: Ledger, key: tuple[int, int], previous: dict[str, object]) -> None:
        record(self, key, previous)
        raise Killed

    monkeypatch.setattr(Ledger, "record_execution", end_process)
    with pytest.raises(Killed):
        catalogs.migrate(Action.CUT_OVER, texera=texera.url)
    monkeypatch.setattr(Ledger, "record_execution", record)
    assert texera.read("whid", "workflow_executions", "eid") == [(None,), (None,)]
    catalogs.migrate(Action.CUT_OVER, texera=texera.url)
    check_results(catalogs, texera, expected)


@pytest.mark.long
def test_part_of_an_execution_is_not_cut_over(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    write_executions(catalogs, texera)
    catalogs.migrate(Action.REGISTER, "operator-port-result.*", copy=True, texera=texera.url)
    with pytest.raises(MigrationError, match="is not migrated, and the tables of an execution move together"):
        catalogs.migrate(Action.CUT_OVER, texera=texera.url)


@pytest.mark.long
def test_texera_without_warehouses_is_refused(catalogs: Catalogs, texera: TexeraDatabase) -> None:
    with texera.engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {texera.schema}user_warehouse")
    with pytest.raises(MigrationError, match="expected a Texera with warehouses"):
        catalogs.migrate(texera=texera.url)


@pytest.mark.long
def test_row_that_another_process_adds(catalogs: Catalogs, tmp_path: Path) -> None:
    """Texera or another migration adds the row of the user's warehouse at the same time."""
    with postgres() as url, open_ledger(tmp_path / "other.db", "route") as ledger:
        texera = TexeraDatabase(url)
        texera.add_execution(1, user=3)
        rows = TexeraRows(url, catalogs.target)
        engine = database.connect(url)
        with engine.begin() as other, ThreadPoolExecutor(1) as pool:
            number = texera.insert_warehouse(other, 3, "main", "user-3-main")
            pointed = pool.submit(rows.point, next(iter(rows.executions)), "user-3-main", ledger)
            with engine.connect() as observer:
                query = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
                wait_until(lambda: observer.execute(query).scalar_one() == 1)
            other.commit()
            pointed.result(60)
        with engine.connect() as connection:
            query = text("SELECT whid FROM texera_db.workflow_executions WHERE eid = 1")
            assert connection.execute(query).scalar_one() == number
            assert connection.execute(text("SELECT count(*) FROM texera_db.user_warehouse")).scalar_one() == 1
        rows.close()
        engine.dispose()


def test_row_of_a_warehouse_outside_the_target_is_not_added(catalogs: Catalogs, tmp_path: Path) -> None:
    """The cut-over of its own tables fails, and that of other users' tables does not."""
    database_of_texera = TexeraDatabase(f"sqlite:///{tmp_path}/texera.db")
    for number, user in ((1, 3), (2, 4)):
        database_of_texera.add_execution(number, user)
    rows = TexeraRows(database_of_texera.url, catalogs.target)

    keys = sorted(rows.executions)
    rows.add_warehouses(zip(keys, ("user-3-former", "user-4-1"), strict=True))

    assert database_of_texera.read("uid, lakekeeper_warehouse_name", "user_warehouse", "uid") == [(4, "user-4-1")]
    rows.close()
