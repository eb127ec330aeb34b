"""A standby through its life: nightly copies, the lag, and a promotion with and without the source."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import s3fs
from fault_proxy import FaultInjectingProxy
from lakewright_sandbox.in_process import serve
from lakewright_spark.errors import LakewrightSparkError, LeaseLostError, MigrationError, StandbyError
from lakewright_spark.migration.copy import list_copied_files
from lakewright_spark.migration.copy_stores import S3Store, open_copy_store
from lakewright_spark.migration.endpoint import RenamingMover
from lakewright_spark.migration.verify import Depth
from lakewright_spark.standby import tables
from lakewright_spark.standby.mark import MARK
from lakewright_spark.standby.status import State, find_problems
from lakewright_spark.standby.tables import CopyResult, StandbyTable
from projects import Project
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.typedef import Identifier
from store_keys import create_bucket_key

from tests.spark.standby.conftest import DAY, Pair, build_rows, list_snapshots, read_rows


def list_copied_objects(pair: Pair, name: str) -> set[str]:
    store = open_copy_store(pair.source.warehouse("results"), pair.standby.warehouse("copies"))
    return set(store.list_files(pair.copies.load_table(name).location()))


def test_standby_to_the_end(pair: Pair) -> None:
    table = pair.add_table("sales.orders")
    assert pair.measure()["sales.orders"].state is State.MISSING
    assert pair.copy()["sales.orders"].state is State.CURRENT
    copy = pair.copies.load_table("sales.orders")
    assert copy.location() != table.location()
    assert copy.metadata.table_uuid == table.metadata.table_uuid
    assert copy.metadata.refs == table.metadata.refs
    assert copy.properties["gc.enabled"] == "false", "no client deletes files of the copy"
    assert pair.copy(depth=Depth.METADATA)["sales.orders"].detail == "unchanged"
    assert "with 6 rows" in pair.copy()["sales.orders"].detail, "the rows are compared on request"

    table.append(build_rows(4))
    pair.now += DAY
    behind = pair.measure()["sales.orders"]
    assert (behind.state, behind.snapshots) == (State.BEHIND, 1)
    assert DAY - timedelta(minutes=2) < behind.lag <= DAY, "since the first commit that the standby lacks"
    assert re.fullmatch(r"sales.orders: 23:5\d:\d\d behind its source", find_problems([behind], DAY / 2)[0])
    assert find_problems([behind], 2 * DAY) == []
    pair.copy()
    assert read_rows(pair.copies, "sales.orders") == read_rows(pair.catalog, "sales.orders")

    table.append(build_rows(5))
    rows = read_rows(pair.catalog, "sales.orders")
    assert pair.promote()["sales.orders"].state is State.PROMOTED
    with pytest.raises(NoSuchTableError):
        pair.catalog.load_table("sales.orders")
    promoted = pair.copies.load_table("sales.orders")
    assert read_rows(pair.copies, "sales.orders") == rows, "the last commit of the source is there"
    assert {name: promoted.properties.get(name) for name in ("owner", "gc.enabled", "lakewright.policy.lock")} == {
        "owner": "ada",
        "gc.enabled": "true",
        "lakewright.policy.lock": None,
    }
    promoted.append(build_rows(1))
    assert pair.promote()["sales.orders"].state is State.PROMOTED, "a second promotion changes nothing"
    assert read_rows(pair.copies, "sales.orders").num_rows == rows.num_rows + 1
    assert pair.measure()["sales.orders"].state is State.PROMOTED
    pair.copies.drop_table("sales.orders")  # no longer protected


@pytest.mark.parametrize("pair", ["from-database"], indirect=True)
@pytest.mark.parametrize("format_version", ["1", "2"])
def test_lag_counts_commits_that_the_source_expired(pair: Pair, format_version: str) -> None:
    pair.catalog.create_namespace("sales")
    properties = {"format-version": format_version, "gc.enabled": "true"}
    table = pair.catalog.create_table("sales.orders", build_rows(1).schema, properties=properties)
    table.append(build_rows(1))
    pair.copy()
    table.append(build_rows(2))
    first = table.current_snapshot()
    assert first
    table.append(build_rows(3))
    pair.now += DAY
    assert pair.measure()["sales.orders"].lag < DAY, "since the first commit"

    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()

    behind = pair.measure()["sales.orders"]
    assert (behind.state, behind.snapshots, behind.lag) == (State.BEHIND, 1, DAY), "since the last copy"


def test_promotion_compares_a_copy_that_was_killed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.add_table("sales.orders")
    with monkeypatch.context() as patch:
        patch.setattr(tables, "verify", _end_process)
        with pytest.raises(KeyboardInterrupt):
            pair.copy()
    assert pair.copies.table_exists("sales.orders")
    with monkeypatch.context() as patch:
        patch.setattr(tables, "verify", _find_difference)
        assert "the tables differ" in pair.promote()["sales.orders"].detail
    assert pair.promote()["sales.orders"].state is State.PROMOTED


def _end_process(*_: object) -> None:
    raise KeyboardInterrupt


def _find_difference(*_: object) -> None:
    raise MigrationError("the tables differ")


def test_promotion_without_the_source(pair: Pair) -> None:
    table = pair.add_table("sales.orders")
    pair.copy()
    rows = read_rows(pair.catalog, "sales.orders")
    table.append(build_rows(4))
    assert pair.promote(is_source_lost=True)["sales.orders"].state is State.PROMOTED
    assert read_rows(pair.copies, "sales.orders") == rows
    pair.copies.load_table("sales.orders").append(build_rows(1))
    failed = pair.copy()["sales.orders"]
    assert failed.state is State.FAILED, "the source does not overwrite what was promoted"
    assert "was promoted and is no longer a standby" in failed.detail
    assert read_rows(pair.copies, "sales.orders").num_rows == rows.num_rows + 1


def test_missing_data_file_is_an_error_of_its_table(pair: Pair) -> None:
    for name in ("damaged", "orders", "returns", "shops", "zones"):
        pair.add_table(f"sales.{name}")
    pair.copy()
    copy = pair.copies.load_table("sales.damaged")
    copy.io.delete(next(iter(copy.scan().plan_files())).file.file_path)
    statuses = pair.copy(depth=Depth.FULL)
    assert (statuses["sales.damaged"].state, "a file is missing" in statuses["sales.damaged"].detail) == (
        State.FAILED,
        True,
    )
    assert {status.state for name, status in statuses.items() if name != "sales.damaged"} == {State.CURRENT}


@pytest.mark.long
def test_files_remain_for_readers_of_the_state_before(pair: Pair) -> None:
    table = pair.add_table("sales.orders")
    pair.copy()
    first = list_copied_objects(pair, "sales.orders")
    table.overwrite(build_rows(2))
    table.maintenance.expire_snapshots().by_id(list_snapshots(table)[1]).commit()
    pair.copy()
    assert first <= list_copied_objects(pair, "sales.orders")
    table.append(build_rows(1))
    pair.copy()
    remaining = list_copied_objects(pair, "sales.orders")
    assert first - remaining, "files of the first state are deleted"
    assert read_rows(pair.copies, "sales.orders") == read_rows(pair.catalog, "sales.orders")
    first_snapshot = pair.copies.load_table("sales.orders").metadata.refs["first"].snapshot_id
    assert pair.copies.load_table("sales.orders").scan(snapshot_id=first_snapshot).to_arrow().num_rows == 3


@pytest.mark.long
def test_tables_that_are_no_copies_are_left_alone(pair: Pair) -> None:
    """A table of the standby's own, commits of other writers, and a table that the source has dropped."""
    for name in ("sales.own", "sales.written", "sales.dropped", "sales.good"):
        pair.add_table(name)
    pair.copies.create_namespace_if_not_exists("sales")
    own_table = pair.copies.create_table("sales.own", build_rows(1).schema)
    own_table.append(build_rows(1))
    statuses = pair.copy()
    assert statuses["sales.own"].state is State.FAILED
    assert "found a table that is no standby" in statuses["sales.own"].detail
    assert {statuses[name].state for name in statuses if name != "sales.own"} == {State.CURRENT}
    pair.copies.load_table("sales.written").append(build_rows(1))
    pair.catalog.load_table("sales.written").append(build_rows(1))
    pair.catalog.drop_table("sales.dropped")
    statuses = pair.copy()
    assert "has commits of other writers. Nothing was changed" in statuses["sales.written"].detail
    assert statuses["sales.good"].state is State.CURRENT
    measured = pair.measure()
    assert {name: status.state.value for name, status in measured.items()} == {
        "sales.dropped": "dropped",
        "sales.good": "current",
        "sales.own": "failed",
        "sales.written": "written",
    }
    assert find_problems(list(measured.values()))[1:] == ["sales.written: other writers changed it in the standby"]
    assert read_rows(pair.copies, "sales.own").num_rows == 1


def test_only_one_process_copies(pair: Pair) -> None:
    pair.add_table("sales.orders")
    pair.copy()
    other = pair.open()
    with other._claim(), pytest.raises(StandbyError, match="another process copies or promotes it"):
        pair.copy()
    pair.copy()


@pytest.mark.parametrize("pair", ["from-server"], indirect=True)
def test_source_that_does_not_respond(pair: Pair) -> None:
    pair.add_table("sales.orders")
    with serve(FaultInjectingProxy(pair.source.uri.removesuffix("/catalog"))) as address:
        pair.source = pair.source.model_copy(update={"uri": f"{address}/catalog"})
        pair.copy()
    pair.now += DAY
    status = pair.measure()["sales.orders"]
    assert (status.state, status.lag) == (State.UNKNOWN, DAY)
    assert address in status.detail
    with pytest.raises(LakewrightSparkError, match=address):
        pair.promote()
    pair.promote(is_source_lost=True)
    pair.copies.load_table("sales.orders").append(build_rows(1))


@pytest.mark.long
@pytest.mark.stand_in("creates a user of IAM")
def test_two_stores(pair: Pair, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standby has a key of its own, so this process copies the files."""
    table = pair.add_table("sales.orders")
    (source,), (copies,) = pair.source.warehouses, pair.standby.warehouses
    bucket = str(source.location or copies.location).split("/")[2]  # both sides have it
    key = create_bucket_key(project.sandbox, bucket, monkeypatch)
    with_key = copies.model_copy(update={"s3": source.s3, "s3_keys": key})
    pair.standby = pair.standby.model_copy(update={"warehouses": [with_key]})
    pair.copy(depth=Depth.METADATA)
    table.append(build_rows(2))
    pair.copy()
    assert MARK in pair.copies.load_table("sales.orders").properties
    assert read_rows(pair.copies, "sales.orders") == read_rows(pair.catalog, "sales.orders")


class Killed(BaseException):
    """The process was killed."""


@pytest.mark.long
@pytest.mark.parametrize("pair", ["from-database"], indirect=True)
def test_killed_copies_continue(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy is killed after each change of the store, and the next copy is killed one change later."""
    table = pair.add_table("sales.orders")
    changes = {name: getattr(S3Store, name) for name in ("write", "copy", "delete")}
    state = {"left": 0}

    def kill_after(name: str) -> Callable[..., None]:
        def change(self: S3Store, *values: Any) -> None:
            changes[name](self, *values)
            state["left"] -= 1
            if state["left"] == 0:
                raise Killed

        return change

    for name in changes:
        monkeypatch.setattr(S3Store, name, kill_after(name))
    kills = 0
    for step in range(1, 60):
        state["left"] = step
        try:
            assert pair.copy()["sales.orders"].state is State.CURRENT
        except Killed:
            kills += 1
            if step % 3 == 0:
                table.append(build_rows(1))
            continue
        break
    assert kills >= 4, "the copy was killed at several changes"
    state["left"] = 0
    pair.copy()
    assert read_rows(pair.copies, "sales.orders") == read_rows(pair.catalog, "sales.orders")
    copy = pair.copies.load_table("sales.orders")
    store = open_copy_store(pair.source.warehouse("results"), pair.standby.warehouse("copies"))
    assert list_copied_files(copy.metadata_location, store) <= store.list_files(copy.location()).keys()


@pytest.mark.long
def test_source_that_was_rebuilt_changes_no_copy(pair: Pair) -> None:
    """Another table of the same name, and a source that was restored from a backup."""
    table = pair.add_table("sales.orders")
    old_state = table.metadata_location
    table.append(build_rows(4))
    pair.copy()
    rows = read_rows(pair.copies, "sales.orders")
    pair.catalog.drop_table("sales.orders")
    pair.catalog.register_table("sales.orders", old_state)
    restored = pair.copy()["sales.orders"]
    assert "has an older state than the copy" in restored.detail
    pair.catalog.drop_table("sales.orders")
    dropped = pair.measure()["sales.orders"]
    assert find_problems([dropped], DAY) == ["sales.orders: the source no longer has it"]
    pair.add_table("sales.orders")
    rebuilt = pair.copy()["sales.orders"]
    assert "has another table of this name. The copy was not changed" in rebuilt.detail
    assert read_rows(pair.copies, "sales.orders") == rows
    assert pair.promote(is_source_lost=True)["sales.orders"].state is State.PROMOTED


@pytest.mark.long
def test_new_tables_are_promoted_too(pair: Pair) -> None:
    pair.add_table("sales.orders")
    pair.copy()
    pair.add_table("sales.returns")
    rows = read_rows(pair.catalog, "sales.returns")
    assert {status.state for status in pair.promote().values()} == {State.PROMOTED}
    assert read_rows(pair.copies, "sales.returns") == rows
    assert [name for _, name in pair.catalog.list_tables("sales") if not name.endswith("__moved")] == []


def test_failed_promotion_leaves_the_writers(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pair.add_table("sales.orders")
    pair.copy()
    table.append(build_rows(1))

    def fail(*_: object) -> None:
        raise PermissionError("the store refuses")

    with monkeypatch.context() as patch:
        patch.setattr(s3fs.S3FileSystem, "pipe_file", fail)
        failed = pair.promote()["sales.orders"]
    assert failed.state is State.FAILED
    assert "could not be written: PermissionError: the store refuses" in failed.detail
    pair.catalog.load_table("sales.orders").append(build_rows(1))
    with monkeypatch.context() as patch:
        patch.setattr(StandbyTable, "_release", fail)
        assert pair.promote()["sales.orders"].detail == "PermissionError: the store refuses"
    pair.catalog.load_table("sales.orders").append(build_rows(1))
    pair.copy()
    assert read_rows(pair.copies, "sales.orders") == read_rows(pair.catalog, "sales.orders")


def test_writers_do_not_continue_without_the_lease(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have loaded the table already: later commits of the writers would be lost."""
    table = pair.add_table("sales.orders")
    pair.copy()
    advance = StandbyTable._advance

    def promote_without_lease(*, are_writers_stopped: bool) -> str:
        def lose_lease(*_: object) -> None:
            raise LeaseLostError("another process has the lease")

        def advance_and_lose_lease(table: StandbyTable, *arguments: Any, **options: Any) -> CopyResult:
            result = advance(table, *arguments, **options)
            assert table.source
            if (table.source.find_table(table.identifier) is None) is are_writers_stopped:
                object.__setattr__(table, "check_claim", lose_lease)
            return result

        with monkeypatch.context() as patch:
            patch.setattr(StandbyTable, "_advance", advance_and_lose_lease)
            status = pair.promote()["sales.orders"]
        assert status.state is State.FAILED
        assert pair.measure()["sales.orders"].state is not State.PROMOTED, "another process may promote the table"
        return status.detail

    promote_without_lease(are_writers_stopped=False)
    table.append(build_rows(1))
    assert "the source may have" not in promote_without_lease(are_writers_stopped=False)
    assert "may have the table as sales.orders__moved" in promote_without_lease(are_writers_stopped=True)
    assert [name for _, name in pair.catalog.list_tables("sales")] == ["orders__moved"]
    assert pair.promote()["sales.orders"].state is State.PROMOTED


def test_lost_response_does_not_stop_the_writers(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.add_table("sales.orders")
    pair.copy()
    stop = RenamingMover.stop_writers

    def lose_response(mover: RenamingMover, identifier: Identifier) -> None:
        stop(mover, identifier)
        raise OSError("the response was lost")

    with monkeypatch.context() as patch:
        patch.setattr(RenamingMover, "stop_writers", lose_response)
        assert pair.promote()["sales.orders"].detail == "OSError: the response was lost"
    pair.catalog.load_table("sales.orders").append(build_rows(1))


def test_copy_that_differs_is_withdrawn(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pair.add_table("sales.orders")
    pair.copy()
    rows = read_rows(pair.copies, "sales.orders")
    table.append(build_rows(1))

    def differ(*_: object) -> str:
        raise MigrationError("the tables differ: rows")

    with monkeypatch.context() as patch:
        patch.setattr(tables, "verify", differ)
        assert pair.copy()["sales.orders"].state is State.FAILED
        assert pair.copy()["sales.orders"].state is State.FAILED, "the next night compares again"
    assert read_rows(pair.copies, "sales.orders") == rows
    assert pair.measure()["sales.orders"].state is State.BEHIND
    pair.copy()
    assert read_rows(pair.copies, "sales.orders") == read_rows(pair.catalog, "sales.orders")


@pytest.mark.stand_in("creates a user of IAM")
def test_interrupted_stream_leaves_no_file(pair: Pair, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.add_table("sales.orders", rows=1000)
    (source,), (copies,) = pair.source.warehouses, pair.standby.warehouses
    bucket = str(source.location or copies.location).split("/")[2]  # both sides have it
    key = create_bucket_key(project.sandbox, bucket, monkeypatch)
    with_key = copies.model_copy(update={"s3": source.s3, "s3_keys": key})
    pair.standby = pair.standby.model_copy(update={"warehouses": [with_key]})

    def interrupt(source_file: Any, target_file: Any, _: int) -> None:
        target_file.write(source_file.read(10))
        raise ConnectionResetError("the store ended the connection")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", interrupt)
        assert "ConnectionResetError" in pair.copy()["sales.orders"].detail
    assert pair.copy()["sales.orders"].state is State.CURRENT
    assert read_rows(pair.copies, "sales.orders") == read_rows(pair.catalog, "sales.orders")
