"""Results written by row and read by page, after a cursor, or whole, through PyIceberg without a JVM."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace

import httpx
import pyarrow as pa
import pytest
from fault_proxy import FaultInjectingProxy
from lakewright_sandbox.in_process import serve
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import (
    BadAddressError,
    CatalogUnreachableError,
    ColumnRefusedError,
    ConfigMissingError,
    JobFailedError,
    LakewrightSparkError,
    NoSuchResultError,
    RowsMovedError,
    WarehouseRefusedError,
)
from lakewright_spark.result_uris import Execution, Port, ResultUri
from lakewright_spark.results import file_index
from lakewright_spark.results.reader import Cursor, ResultReader
from lakewright_spark.results.schemas import CONSOLE_MESSAGES, LOOP_STATE, RUNTIME_STATISTICS, Status
from lakewright_spark.results.table_credentials import LEAD_SECONDS, refresh_credentials
from lakewright_spark.results.tables import ResultTables
from lakewright_spark.results.writer import EVERY_BATCH, CommitInterval, ResultWriter
from waiting import wait_until

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
ROWS = [(number, f"row {number}") for number in range(10)]
NOON = datetime.fromisoformat("2026-11-21T12:00:00")
NEVER = CommitInterval(rows=None, bytes=None, seconds=None)


@pytest.fixture
def writer(catalog_config: CatalogConfig) -> ResultWriter:
    return ResultWriter(catalog_config, "results")


@pytest.fixture
def reader(catalog_config: CatalogConfig) -> ResultReader:
    return ResultReader(catalog_config)


def create_writer(config: CatalogConfig, interval: CommitInterval) -> ResultWriter:
    return ResultWriter(config, "results", commit=interval)


def numbers(table: pa.Table) -> list[int]:
    return table["number"].to_pylist()


@pytest.fixture
def uri(request: pytest.FixtureRequest) -> ResultUri:
    """Return a unique address."""
    return Execution(abs(hash(request.node.name)) % 10**9, 1, "results").result(Port("Op-1"))


def test_rows_are_read_in_commit_order(catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri) -> None:
    create_writer(catalog_config, CommitInterval(rows=3)).write_rows(uri, SCHEMA, iter(ROWS), batch=3)
    assert len(list(reader.table(uri).scan().plan_files())) == 4  # one file per commit: 3, 3, 3 and 1 rows
    assert reader.count(uri) == 10
    assert numbers(reader.read_all(uri)) == list(range(10))
    for offset, limit in [(0, 10), (2, 3), (3, 3), (5, 100), (9, 1), (10, 1), (4, 0), (99, 5)]:
        assert numbers(reader.range(uri, offset, limit)) == list(range(10))[offset : offset + limit]


def test_commit_intervals(catalog_config: CatalogConfig, reader: ResultReader) -> None:
    def commits(interval: CommitInterval, execution: int) -> int:
        uri = Execution(2, execution).result(Port("Apart-1"))
        create_writer(catalog_config, interval).write_rows(uri, SCHEMA, ROWS, batch=2)
        return len(reader.table(uri).snapshots())

    assert commits(NEVER, 1) == 1
    assert commits(CommitInterval(rows=4, bytes=None, seconds=None), 2) == 3
    assert commits(CommitInterval(rows=None, bytes=1, seconds=None), 3) == 5  # every batch is larger than a byte
    assert EVERY_BATCH.rows == 4096


def test_rows_are_committed_after_the_interval(
    catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri
) -> None:
    slow = create_writer(catalog_config, CommitInterval(rows=None, bytes=None, seconds=0.2))
    with slow.stream(uri, SCHEMA) as stream:
        stream.append(ROWS[0])
        wait_until(lambda: reader.count(uri), seconds=30)  # no other row is added and nothing is flushed
    assert reader.count(uri) == 1


def test_statistics_console_and_loop_state(writer: ResultWriter, reader: ResultReader) -> None:
    run = Execution(7, 42, "results")
    statistics = dict.fromkeys(RUNTIME_STATISTICS.names, 1)
    statistics |= {"operatorId": "Op-1", "time": NOON, "status": int(Status.COMPLETED)}
    writer.write_rows(run.runtime_statistics(), RUNTIME_STATISTICS, [statistics])
    writer.write_rows(run.console_messages("Op-1"), CONSOLE_MESSAGES, [("hello",)])
    state = {"content": '{"i": 2}', "loop_counter": 1, "loop_start_id": "LoopStart-operator-1"}
    writer.write_rows(run.state(Port("Op-1")), LOOP_STATE, [state])
    assert reader.read_all(run.runtime_statistics()).to_pylist() == [statistics]
    assert reader.read_all(run.console_messages("Op-1")).to_pylist() == [{"message": "hello"}]
    assert reader.read_all(run.state(Port("Op-1"))).to_pylist() == [state]
    # The columns of `State.schema` in Texera, in its order and with its types.
    columns = reader.table(run.state(Port("Op-1"))).schema().fields
    assert [(column.name, str(column.field_type)) for column in columns] == [
        ("content", "string"),
        ("loop_counter", "long"),
        ("loop_start_id", "string"),
    ]
    table = reader.table(run.runtime_statistics())
    assert table.properties["commit.manifest-merge.enabled"] == "true"
    assert table.properties["commit.retry.num-retries"] == "10"
    assert str(table.schema().find_type("time")) == "timestamp"
    assert [(field.field_id, field.required) for field in table.schema().fields] == [(n, False) for n in range(1, 12)]


def test_operator_without_rows(writer: ResultWriter, reader: ResultReader, uri: ResultUri) -> None:
    assert writer.write_rows(uri, SCHEMA, []) == 0
    assert reader.count(uri) == 0
    assert reader.range(uri, 0, 20).num_rows == 0
    assert reader.read_all(uri).schema.names == ["number", "text"]
    assert reader.read_after(uri).rows.num_rows == 0


def test_second_write_replaces_or_appends(writer: ResultWriter, reader: ResultReader, uri: ResultUri) -> None:
    writer.write_rows(uri, SCHEMA, ROWS)
    writer.write(uri, pa.table({"number": [1, 2]}))
    assert reader.read_all(uri).to_pylist() == [{"number": 1}, {"number": 2}]
    writer.write_rows(uri, SCHEMA, ROWS[:4])
    assert reader.count(uri) == 4
    with writer.stream(uri, SCHEMA, reuse=True) as stream:  # an operator in a loop
        stream.append_batch(pa.record_batch({"number": [4], "text": ["row 4"]}, schema=SCHEMA))
    assert numbers(reader.read_all(uri)) == [0, 1, 2, 3, 4]


def test_readers_see_old_rows_until_the_first_commit(
    catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri
) -> None:
    writer = create_writer(catalog_config, NEVER)
    writer.write_rows(uri, SCHEMA, ROWS)
    with writer.stream(uri, pa.schema([("text", pa.string()), ("number", pa.int32())])) as stream:
        assert numbers(reader.read_all(uri)) == list(range(10))
        stream.append(("new", 5))
        assert numbers(reader.read_all(uri)) == list(range(10))
        stream.flush()
        assert reader.read_all(uri).to_pylist() == [{"text": "new", "number": 5}]
        stream.append(("newer", 6))
    assert numbers(reader.read_all(uri)) == [5, 6]
    with writer.stream(uri, SCHEMA):
        assert reader.count(uri) == 2
    assert reader.count(uri) == 0
    assert reader.read_all(uri).schema.names == SCHEMA.names


def test_failed_write_keeps_the_old_result(catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri) -> None:
    def rows() -> Iterator[tuple[int, str]]:
        yield ROWS[0]
        raise ZeroDivisionError

    writer = create_writer(catalog_config, NEVER)
    writer.write_rows(uri, SCHEMA, ROWS)
    with pytest.raises(ZeroDivisionError):
        writer.write_rows(uri, SCHEMA, rows())
    with pytest.raises(ColumnRefusedError, match="'number': expected a type that Texera reads"):
        writer.write(uri, pa.table({"number": [Decimal("1.5")]}))
    assert numbers(reader.read_all(uri)) == list(range(10))


def test_concurrent_replacements_leave_one_result(
    catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri
) -> None:
    create_writer(catalog_config, NEVER).write_rows(uri, SCHEMA, ROWS)
    ready = threading.Barrier(3)
    failures: list[Exception] = []

    def write(number: int) -> None:
        table = pa.table({"number": [number] * 4})
        ready.wait()
        try:
            create_writer(catalog_config, NEVER).write(uri, table)
        except LakewrightSparkError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    remaining_numbers = numbers(reader.read_all(uri))
    assert remaining_numbers in [[number] * 4 for number in range(3)]


@pytest.mark.parametrize("reuse", [True, False])
def test_write_to_another_branch_does_not_fail_a_commit(
    catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri, *, reuse: bool
) -> None:
    """It takes the sequence number of the next commit to `main`, which Lakekeeper refuses with 400, not 409."""
    writer = create_writer(catalog_config, NEVER)
    writer.write_rows(uri, SCHEMA, ROWS[:2])
    with writer.stream(uri, SCHEMA, reuse=reuse) as stream:
        stream.append(ROWS[2])
        table = reader.table(uri)
        current = table.current_snapshot()
        assert current is not None
        table.manage_snapshots().create_branch(current.snapshot_id, "audit").commit()
        table.append(pa.table({"number": [9], "text": ["on a branch"]}), branch="audit")
    assert numbers(reader.read_all(uri)) == ([0, 1, 2] if reuse else [2])


def test_clock_that_is_behind_is_reported(
    writer: ResultWriter, uri: ResultUri, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write_rows(uri, SCHEMA, ROWS)
    late = SimpleNamespace(time=lambda: time.time() - 120)
    monkeypatch.setattr("pyiceberg.table.snapshots.time", late)
    with pytest.raises(JobFailedError, match=r"Invalid snapshot timestamp .* clocks of this machine and of"):
        writer.write_rows(uri, SCHEMA, ROWS)


@pytest.mark.stand_in("plays a response of the server")
@pytest.mark.parametrize(
    ("message", "attempts"),
    [('duplicate key value violates unique constraint "table_schema_pkey"', 2), ("connection closed", 1)],
)
def test_commit_refused_by_the_database_is_repeated(
    catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri, message: str, attempts: int
) -> None:
    """Lakekeeper 0.13.3 responds 503 if another commit took the id of the new schema. Other 503 may hide a commit."""
    create_writer(catalog_config, NEVER).write_rows(uri, SCHEMA, ROWS)
    proxy = FaultInjectingProxy(catalog_config.uri.removesuffix("/catalog"))
    commits: list[str] = []

    def refuse_first_commit(line: str, forward: Callable[[], httpx.Response]) -> httpx.Response:
        if not line.startswith("POST") or "/tables/" not in line:
            return forward()
        commits.append(line)
        error = {"message": f"error returned from database: {message}", "type": "CatalogBackendError", "code": 503}
        return httpx.Response(503, json={"error": error}) if len(commits) == 1 else forward()

    with serve(proxy) as endpoint, proxy.inject(refuse_first_commit):
        writer = create_writer(catalog_config.model_copy(update={"uri": f"{endpoint}/catalog"}), NEVER)
        with nullcontext() if attempts > 1 else pytest.raises(CatalogUnreachableError, match=message):
            writer.write(uri, pa.table({"number": [7]}))

    assert len(commits) == attempts
    assert numbers(reader.read_all(uri)) == ([7] if attempts > 1 else list(range(10)))


def test_columns_are_converted_to_texera_types(writer: ResultWriter, reader: ResultReader, uri: ResultUri) -> None:
    berlin = timezone(timedelta(hours=2))
    columns = {
        "instant": pa.array([datetime(2026, 7, 1, 14, tzinfo=berlin)], pa.timestamp("us", "Europe/Berlin")),
        "day": pa.array([date(2026, 7, 1)]),
        "small": pa.array([1.5], pa.float32()),
        "short": pa.array([7], pa.int16()),
        "category": pa.array(["a"]).dictionary_encode(),
        "hash": pa.array([b"ab"], pa.binary(2)),
    }
    writer.write(uri, pa.table(columns))
    with writer.stream(uri, pa.table(columns).schema, reuse=True) as stream:
        stream.append_batch(pa.table(columns))
        stream.append((datetime(2026, 7, 1, 14, tzinfo=berlin), date(2026, 7, 1), 1.5, 7, "a", b"ab"))
    kinds = {field.name: str(field.field_type) for field in reader.table(uri).schema().fields}
    assert kinds == {
        "instant": "timestamp",
        "day": "timestamp",
        "small": "double",
        "short": "int",
        "category": "string",
        "hash": "binary",
    }
    noon, midnight = datetime.fromisoformat("2026-07-01T12:00:00"), datetime.fromisoformat("2026-07-01T00:00:00")
    row = {"instant": noon, "day": midnight, "small": 1.5, "short": 7, "category": "a", "hash": b"ab"}
    assert reader.read_all(uri).to_pylist() == [row] * 3


def test_address_that_texera_cannot_parse(writer: ResultWriter) -> None:
    port = "(logicalOpId=a,b,layerName=main,portId=0,isInternal=false,isInput=false)"
    address = ResultUri.parse(f"vfs:///wid/1/eid/1/globalportid/{port}/result")
    with pytest.raises(BadAddressError, match="expected \\(logicalOpId=ID"):
        writer.write_rows(address, SCHEMA, ROWS)
    assert not writer.tables.exists(address)


def test_failed_stream_commits_nothing_more(
    catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri
) -> None:
    def rows() -> Iterator[tuple[int, str]]:
        yield from ROWS[:5]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        create_writer(catalog_config, CommitInterval(rows=4)).write_rows(uri, SCHEMA, rows(), batch=2)
    assert reader.count(uri) == 4


def test_row_of_wrong_type_fails_the_stream(writer: ResultWriter, reader: ResultReader, uri: ResultUri) -> None:
    with pytest.raises(pa.ArrowInvalid), writer.stream(uri, SCHEMA) as stream:
        stream.append(("not a number", "x"))
    assert reader.count(uri) == 0


def test_follower_reads_new_rows(catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri) -> None:
    with create_writer(catalog_config, NEVER).stream(uri, SCHEMA) as stream:
        first = reader.read_after(uri)
        assert first.rows.num_rows == 0
        stream.extend(ROWS[:3])
        stream.flush()
        second = reader.read_after(uri, first.cursor)
        stream.extend(ROWS[3:])
    assert numbers(second.rows) == [0, 1, 2]
    page = reader.read_after(uri, second.cursor, limit=4)
    assert numbers(page.rows) == [3, 4, 5, 6]
    parsed_cursor = Cursor.parse(str(page.cursor))  # as a browser returns it
    last = reader.read_after(uri, parsed_cursor)
    assert numbers(last.rows) == [7, 8, 9]
    assert reader.read_after(uri, last.cursor).rows.num_rows == 0
    # A new reader continues from the cursor as well.
    assert numbers(ResultReader(catalog_config).read_after(uri, parsed_cursor).rows) == [7, 8, 9]


def test_cursor_into_rewritten_rows_is_refused(
    catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri
) -> None:
    writer = create_writer(catalog_config, CommitInterval(rows=2))
    writer.write_rows(uri, SCHEMA, ROWS, batch=2)
    cursor = reader.read_after(uri, limit=5).cursor
    reader.table(uri).overwrite(pa.table({"number": [1], "text": ["x"]}, schema=SCHEMA))
    with pytest.raises(RowsMovedError, match="was rewritten since this cursor"):
        reader.read_after(uri, cursor)
    writer.write_rows(uri, SCHEMA, ROWS)
    with pytest.raises(RowsMovedError, match="was rewritten since this cursor"):
        reader.read_after(uri, cursor)
    ResultTables(catalog_config, "results").drop(uri)
    writer.write_rows(uri, SCHEMA, ROWS)
    with pytest.raises(RowsMovedError, match="was created again"):
        reader.read_after(uri, cursor)
    with pytest.raises(BadAddressError, match="expected a cursor"):
        Cursor.parse("17")


def test_only_new_manifests_are_read(
    catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    entries = file_index._read_entries

    def record_and_read(table, manifests):
        manifests = list(manifests)
        read.extend(manifest.manifest_path for manifest in manifests)
        return entries(table, manifests)

    monkeypatch.setattr(file_index, "_read_entries", record_and_read)
    with create_writer(catalog_config, CommitInterval(rows=1)).stream(uri, SCHEMA, batch=1) as stream:
        stream.extend(ROWS)
        stream.flush()
        assert reader.count(uri) == 10
        before = len(read)
        assert reader.count(uri) == 10
        assert len(read) == before  # same snapshot: no manifest is read again
        stream.append((10, "row 10"))
        stream.flush()
        assert reader.count(uri) == 11
    assert (before, len(read)) == (10, 11)
    assert numbers(reader.read_all(uri)) == list(range(11))


def test_concurrent_writers_lose_no_rows(catalog_config: CatalogConfig, reader: ResultReader, uri: ResultUri) -> None:
    ResultTables(catalog_config, "results").create_or_load(uri, SCHEMA)

    def write(start: int) -> None:
        with create_writer(catalog_config, CommitInterval(rows=2)).stream(uri, SCHEMA, reuse=True, batch=2) as stream:
            stream.extend((number, "x") for number in range(start, start + 8))

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers(reader.read_all(uri))) == [*range(8), *range(100, 108)]


def test_expiring_credentials_are_refreshed(writer: ResultWriter, reader: ResultReader, uri: ResultUri) -> None:
    table = writer.tables.create_or_load(uri, SCHEMA)
    name = "s3.session-token-expires-at-ms"
    first, end = table.io, int(table.io.properties[name]) / 1000
    assert refresh_credentials(table).io is first
    assert refresh_credentials(table, now=end - LEAD_SECONDS - 1).io is first
    assert refresh_credentials(table, now=end - LEAD_SECONDS + 1).io is not first
    # A stream that is open for longer than they live asks for them by itself.
    with writer.stream(uri, SCHEMA) as stream:
        opened = stream._table.io
        opened.properties[name] = "0"
        stream.extend(ROWS)
        stream.flush()
        assert stream._table.io is not opened
    assert reader.count(uri) == 10


class KnownExecutions:
    """Knows one execution, which wrote to the warehouse `elsewhere`."""

    def find_warehouse(self, workflow: int, execution: int) -> str | None:
        return "elsewhere" if (workflow, execution) == (3, 1) else None


def test_warehouse_of_an_address(catalog_config: CatalogConfig) -> None:
    (results,) = catalog_config.warehouses
    two = catalog_config.model_copy(update={"warehouses": [results, CatalogWarehouse(name="elsewhere", id="2")]})
    reader = ResultReader(two, "results", executions=KnownExecutions())
    port = Port("Op-1")
    assert reader.find_warehouse(Execution(3, 1, "results").result(port)) == "results"
    assert reader.find_warehouse(Execution(3, 1).result(port)) == "elsewhere"
    assert reader.find_warehouse(Execution(3, 2).result(port)) == "results"
    assert ResultReader(catalog_config).find_warehouse(Execution(3, 2).result(port)) == "results"
    with pytest.raises(ConfigMissingError, match=r"names no warehouse.*set --warehouse: results, elsewhere"):
        ResultReader(two).find_warehouse(Execution(3, 2).result(port))
    with pytest.raises(WarehouseRefusedError, match="no warehouse 'curated'"):
        ResultReader(two).count(Execution(3, 2, "curated").result(port))
    with pytest.raises(WarehouseRefusedError, match="is in warehouse 'curated'"):
        ResultTables(two, "results").load(Execution(3, 2, "curated").result(port))


def test_missing_result_and_unreachable_catalog(catalog_config: CatalogConfig, reader: ResultReader) -> None:
    nothing = Execution(9, 9).runtime_statistics()
    with pytest.raises(NoSuchResultError, match=r"has no vfs:///wid/9/eid/9/runtimestatistics"):
        reader.count(nothing)
    assert ResultTables(catalog_config, "results").drop(nothing) is False
    unreachable = catalog_config.model_copy(update={"uri": "http://127.0.0.1:1/catalog"})
    with pytest.raises(CatalogUnreachableError):
        ResultReader(unreachable).count(nothing)


@pytest.mark.parametrize("operator", ["a.b", "x=1", "(x=1)", "größe"])
def test_operator_ids_with_special_characters(writer: ResultWriter, reader: ResultReader, operator: str) -> None:
    uri = Execution(8, 1).console_messages(operator)
    writer.write_rows(uri, CONSOLE_MESSAGES, [("hello",)])
    assert reader.read_all(ResultUri.parse(str(uri)))["message"].to_pylist() == ["hello"]
    kinds = {name: kind for kind, name in writer.tables.list_tables()}
    assert kinds[uri.table] is uri.kind
    assert writer.tables.drop(uri)


@pytest.fixture(autouse=True)
def _no_commit_thread_remains() -> Iterator[None]:
    yield
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("result-commit")]
