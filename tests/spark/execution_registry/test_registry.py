"""ExecutionRegistry on SQLite and Postgres, its migrations, and Texera's tables."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from lakewright_spark.errors import RegistryError
from lakewright_spark.execution_registry import database
from lakewright_spark.execution_registry.models import Base
from lakewright_spark.execution_registry.records import ExecutionStatus, WrittenTable
from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.execution_registry.texera import TexeraExecutions
from lakewright_spark.result_uris import Execution, Port
from sqlalchemy import text

from tests.postgres_server import postgres

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RESULT = Execution(7, 42, "results").result(Port("Op-1"))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/folder/executions.db"
    server = request.getfixturevalue("server")
    with database.connect(server).begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    database.upgrade(database.connect(server))
    return server


@pytest.fixture
def registry(url: str) -> Iterator[ExecutionRegistry]:
    opened = ExecutionRegistry("acme", url)
    yield opened
    opened.close()


def begin(registry: ExecutionRegistry, execution: int, unit: str = "notebook", **more: datetime) -> None:
    registry.begin(7, execution, computing_unit=unit, warehouse="results", submitter="ann", **{"now": NOON, **more})


def test_life_of_an_execution(registry: ExecutionRegistry, url: str) -> None:
    begin(registry, 42)
    registry.record_heartbeat(7, 42, now=NOON + HOUR)
    registry.record_tables(7, 42, [WrittenTable(RESULT, rows=10)])
    registry.record_tables(
        7, 42, [WrittenTable(RESULT, rows=20, bytes=999), WrittenTable(RESULT.execution.runtime_statistics())]
    )
    registry.finish(7, 42, ExecutionStatus.COMPLETED, now=NOON + 2 * HOUR)
    execution = ExecutionRegistry("acme", url).find(7, 42)
    assert execution is not None
    assert (execution.warehouse, execution.computing_unit, execution.submitter) == ("results", "notebook", "ann")
    assert (execution.status, execution.started_at, execution.finished_at) == (
        ExecutionStatus.COMPLETED,
        NOON,
        NOON + 2 * HOUR,
    )
    assert WrittenTable(RESULT, rows=20, bytes=999) in execution.tables
    assert len(execution.tables) == 2
    assert registry.find_warehouse(7, 42) == "results"
    assert ExecutionRegistry("other", url).find(7, 42) is None
    assert registry.remove(execution)
    assert registry.find(7, 42) is None
    assert registry.find_warehouse(7, 42) is None


def test_execution_that_starts_again_is_not_removed(registry: ExecutionRegistry) -> None:
    begin(registry, 42)
    registry.finish(7, 42, ExecutionStatus.COMPLETED, now=NOON + HOUR)
    ended = registry.find(7, 42)
    assert ended is not None
    assert registry.is_current(ended)
    begin(registry, 42, now=NOON + 2 * HOUR)
    assert not registry.is_current(ended)
    assert not registry.remove(ended)
    assert registry.find(7, 42) is not None


def test_restart_elsewhere_keeps_the_earlier_tables(registry: ExecutionRegistry) -> None:
    begin(registry, 42)
    registry.record_tables(7, 42, [WrittenTable(RESULT)])
    registry.finish(7, 42, ExecutionStatus.COMPLETED)
    record = registry.begin(7, 42, computing_unit="notebook", warehouse="curated")
    assert (record.warehouse, record.tables) == ("results", (WrittenTable(RESULT),))
    record = registry.record_restart(7, 42, "curated")
    assert (record.warehouse, record.tables, record.status) == ("curated", (), ExecutionStatus.RUNNING)
    assert registry.find(7, 42) == record


def test_running_execution_is_not_started_again(registry: ExecutionRegistry) -> None:
    begin(registry, 42)
    with pytest.raises(RegistryError, match=r"is running \(last heartbeat 2026-11-21 12:00:00 UTC\)"):
        begin(registry, 42)
    begin(registry, 42, stale_before=NOON + HOUR, now=NOON + 2 * HOUR)
    registry.finish(7, 42, ExecutionStatus.FAILED, error="division by zero")
    begin(registry, 42)
    execution = registry.find(7, 42)
    assert execution is not None
    assert (execution.status, execution.error, execution.finished_at) == (ExecutionStatus.RUNNING, None, None)


def test_concurrent_starts_of_one_execution(url: str) -> None:
    refused: list[str] = []

    def start() -> None:
        mine = ExecutionRegistry("acme", url)
        try:
            begin(mine, 42)
        except RegistryError as error:
            refused.append(str(error))
        mine.close()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert all("is running" in message for message in refused)


def test_replaced_and_expired_executions(registry: ExecutionRegistry) -> None:
    begin(registry, 1)
    begin(registry, 2, unit="other")
    begin(registry, 3)
    assert [record.execution for record in registry.list_previous(7, 3, "notebook")] == [1]
    registry.mark_replaced(7, 1)
    assert registry.list_previous(7, 3, "notebook") == []
    registry.finish(7, 1, ExecutionStatus.COMPLETED, now=NOON + HOUR)
    registry.record_heartbeat(7, 2, now=NOON + 3 * HOUR)
    assert [record.execution for record in registry.list_expired(NOON + 2 * HOUR)] == [
        1,
        3,
    ]  # 3 died without reporting its end
    assert [record.execution for record in registry.all()] == [1, 2, 3]


def test_migrations_match_the_models(url: str) -> None:
    engine = database.connect(url)
    database.upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "lakewright_registry_version"})
        assert compare_metadata(context, Base.metadata) == []


def test_postgres_is_upgraded_explicitly_only(server: str) -> None:
    engine = database.connect(server)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    with pytest.raises(
        RegistryError, match="found none: upgrade older tables with `lakewright-spark registry upgrade`"
    ):
        ExecutionRegistry("acme", server)
    assert database.upgrade(engine) == "0001"
    ExecutionRegistry("acme", server).close()


def test_unreachable_database_is_reported_without_password(tmp_path: Path) -> None:
    for url in ("no address", "mysql://me:s3cret@db/x", "postgresql://me:s3cret@127.0.0.1:1/x"):
        with pytest.raises(RegistryError) as error:
            ExecutionRegistry("acme", url)
        assert "s3cret" not in str(error.value)
    (tmp_path / "x.db").write_text("no database at all, but long enough to look at")
    with pytest.raises(RegistryError, match="not a database"):
        ExecutionRegistry("acme", f"sqlite:///{tmp_path}/x.db")


TEXERA = """
CREATE TABLE {s}workflow_version (vid INT PRIMARY KEY, wid INT NOT NULL, content TEXT NOT NULL);
CREATE TABLE {s}user_warehouse (whid INT PRIMARY KEY, uid INT, name TEXT, {name_column} TEXT);
CREATE TABLE {s}workflow_executions (eid INT PRIMARY KEY, vid INT NOT NULL, uid INT NOT NULL, cuid INT,
  status SMALLINT NOT NULL, result TEXT, starting_time TIMESTAMP NOT NULL, last_update_time TIMESTAMP,
  runtime_stats_uri TEXT, runtime_stats_size INT, whid INT);
CREATE TABLE {s}operator_executions (workflow_execution_id INT NOT NULL, operator_id VARCHAR(100) NOT NULL,
  console_messages_uri TEXT, console_messages_size INT);
CREATE TABLE {s}operator_port_executions (workflow_execution_id INT NOT NULL, global_port_id VARCHAR(200) NOT NULL,
  result_uri TEXT, result_size INT);
INSERT INTO {s}workflow_version VALUES (70, 7, '');
INSERT INTO {s}user_warehouse VALUES (1, 3, 'main', 'user-3-main');
INSERT INTO {s}workflow_executions VALUES
  (41, 70, 3, 5, 3, NULL, '2026-11-21 11:00:00', '2026-11-21 12:00:00',
   'vfs:///wid/7/eid/41/runtimestatistics', 9, NULL),
  (42, 70, 3, NULL, 1, NULL, '2026-11-21 12:00:00', NULL, NULL, 0, 1);
INSERT INTO {s}operator_executions VALUES
  (42, 'Op-1', 'vfs:///wh/user-3-main/wid/7/eid/42/opid/Op-1/consolemessages', 5);
INSERT INTO {s}operator_port_executions VALUES (42, 'p', 'vfs:///wh/user-3-main/wid/7/eid/42/globalportid/{port}', 99);
"""


@pytest.fixture(params=["warehouse_name", "lakekeeper_warehouse_name"])
def texera(url: str, request: pytest.FixtureRequest) -> str:
    """Create Texera's tables in a database, as before and after texera#7754; return its URL."""
    engine, schema = database.connect(url), ""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("DROP SCHEMA IF EXISTS texera_db CASCADE"))
            connection.execute(text("CREATE SCHEMA texera_db"))
            schema = "texera_db."
        for statement in TEXERA.format(s=schema, port=Port("Op-1"), name_column=request.param).split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    engine.dispose()
    return url


def test_texera_executions(texera: str) -> None:
    executions = TexeraExecutions(texera)
    first, second = executions.all()
    assert (first.workflow, first.execution, first.computing_unit, first.submitter) == (7, 41, "5", "3")
    assert (first.status, first.finished_at, first.warehouse) == (ExecutionStatus.COMPLETED, NOON, None)
    assert [(str(t.uri), t.bytes) for t in first.tables] == [("vfs:///wid/7/eid/41/runtimestatistics", 9)]
    assert (second.status, second.finished_at) == (ExecutionStatus.RUNNING, None)
    # A port has a result and a state.
    assert sorted(t.uri.kind.value for t in second.tables) == ["consolemessages", "result", "state"]
    assert executions.find_warehouse(7, 42) == "user-3-main"
    assert executions.find_warehouse(7, 41) is None
    assert executions.find_warehouse(8, 42) is None


def test_pausing_execution_of_texera_has_not_ended(texera: str) -> None:
    """Texera stores -1 for all states without a number, such as pausing and resuming."""
    executions = TexeraExecutions(texera)
    name = executions._tables["workflow_executions"].fullname
    engine = database.connect(texera)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {name} SET status = -1 WHERE eid = 41")
    engine.dispose()

    first, _ = executions.all()

    assert (first.status, first.finished_at) == (ExecutionStatus.RUNNING, None)


def test_texera_tables_are_read_only(texera: str) -> None:
    executions = TexeraExecutions(texera)
    name = executions._tables["workflow_executions"].fullname
    with (
        pytest.raises(RegistryError, match=r"read-?only"),
        database.explain_errors(executions._engine),
        executions._engine.begin() as connection,
    ):
        connection.exec_driver_sql(f"DELETE FROM {name}")
    assert len(list(executions.all())) == 2


def test_unknown_name_of_the_warehouse_column_is_refused(texera: str) -> None:
    """Without the name, every result in a user's warehouse would be an orphan."""
    engine = database.connect(texera)
    schema = "texera_db." if engine.dialect.name == "postgresql" else ""
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {schema}user_warehouse")
        connection.exec_driver_sql(f"CREATE TABLE {schema}user_warehouse (whid INT PRIMARY KEY, catalog TEXT)")
    engine.dispose()
    executions = TexeraExecutions(texera)

    with pytest.raises(RegistryError, match="expected column lakekeeper_warehouse_name or warehouse_name"):
        list(executions.all())

    executions.close()


def test_database_without_texera_tables(url: str) -> None:
    ExecutionRegistry("acme", url).close()
    with pytest.raises(RegistryError, match=r"expected Texera's tables.*found no workflow_executions"):
        TexeraExecutions(url, schema="public")
