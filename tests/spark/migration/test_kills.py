"""A migration that is killed before or after any of its calls continues where it stopped, and loses nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration import steps
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.endpoint import Endpoint, RenamingMover
from lakewright_spark.migration.fence import FENCE
from lakewright_spark.migration.ledger import Ledger
from migration_catalogs import NEW, Catalogs, build_catalogs, build_rows, count_rows
from projects import Project
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.table import Table

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
CALLS: list[tuple[Any, str]] = [
    (Ledger, "record"),
    (Endpoint, "register"),
    (Endpoint, "repoint"),
    (Endpoint, "drop"),
    (Endpoint, "change_properties"),
    (Endpoint, "protect"),
    (RenamingMover, "_rename"),
    (steps, "record_owner"),
    (steps, "forget_owner"),
]
"""Calls that change a catalog or the ledger."""


class Killed(BaseException):
    """The process ends here."""


class Killer:
    """Ends the process after its n-th call that changes something. Calls after that would run in no process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, calls: Sequence[tuple[Any, str]] = CALLS) -> None:
        self.remaining: int | None = None
        for owner, name in calls:
            monkeypatch.setattr(owner, name, self._wrap(getattr(owner, name)))

    def _wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def count(*args: Any, **values: Any) -> Any:
            if self.remaining is not None and self.remaining <= 0:
                raise Killed
            result = call(*args, **values)
            if self.remaining is not None:
                self.remaining -= 1
                if self.remaining == 0:
                    raise Killed
            return result

        return count

    def run(self, calls: int, act: Callable[[], object]) -> bool:
        """Run an action that is killed after this number of calls. Return whether it was killed."""
        self.remaining = calls
        try:
            act()
        except Killed:
            return True
        finally:
            self.remaining = None
        return False


@pytest.fixture
def catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    return build_catalogs(project, tmp_path, monkeypatch)


def test_killed_cut_over_and_undo(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short form of the next test: one table, every kill of a cut-over and of an undo after it."""
    catalogs.add_table("sales.orders")
    killer = Killer(monkeypatch)
    catalogs.migrate(depth="metadata")
    source_table = catalogs.open_source().load_table("sales.orders")
    source_table.append(build_rows(2))
    kills = 0
    while killer.run(kills + 1, lambda: catalogs.migrate(Action.CUT_OVER)):
        kills += 1
        assert kills < 30
    assert kills >= 2
    catalogs.open_target().load_table("sales.orders").append(build_rows(1))
    kills = 0
    while killer.run(kills + 1, lambda: catalogs.migrate(Action.UNDO)):
        kills += 1
        assert kills < 30
    assert kills >= 2
    assert count_rows(catalogs.open_source(), "sales.orders") == 9
    assert FENCE not in catalogs.open_source().load_table("sales.orders").properties
    assert catalogs.open_target().list_tables("sales") == []


@pytest.mark.long
def test_undo_at_once_after_each_kill_of_a_cut_over(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source has a commit just before its writers stop: an undo keeps it, also if the target lacks it."""
    catalogs.add_table("sales.orders")
    # The ledger's rows are between these calls.
    killer = Killer(
        monkeypatch,
        [(RenamingMover, "_rename"), (Endpoint, "register"), (Endpoint, "repoint"), (steps, "record_owner")],
    )
    calls, is_killed, commits = 0, True, set[int]()
    while is_killed:
        calls += 1
        assert calls < 30
        catalogs.migrate(depth="metadata")
        source_table = catalogs.open_source().load_table("sales.orders")
        with monkeypatch.context() as patch:
            patch.setattr(
                RenamingMover, "stop_writers", _append_before(source_table, build_rows(2), RenamingMover.stop_writers)
            )
            is_killed = killer.run(calls, lambda: catalogs.migrate(Action.CUT_OVER, depth="metadata"))
        rows = source_table.scan().to_arrow().num_rows
        commits.add(rows)
        catalogs.migrate(Action.UNDO)
        assert count_rows(catalogs.open_source(), "sales.orders") == rows, calls
        assert FENCE not in catalogs.open_source().load_table("sales.orders").properties
        assert catalogs.open_target().list_tables("sales") == []
    assert calls > 3
    assert len(commits) > 2


def test_undo_refuses_commits_on_an_earlier_state(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut-over is killed between the stop and the registration, and a writer uses the target's earlier state."""
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    killer = Killer(monkeypatch, [(RenamingMover, "_rename")])
    with monkeypatch.context() as patch:
        source_table = catalogs.open_source().load_table("sales.orders")
        patch.setattr(
            RenamingMover, "stop_writers", _append_before(source_table, build_rows(2), RenamingMover.stop_writers)
        )
        assert killer.run(1, lambda: catalogs.migrate(Action.CUT_OVER, depth="metadata"))
    catalogs.open_target().load_table("sales.orders").append(build_rows(1))
    for _ in range(2):
        with pytest.raises(MigrationError, match="commits of other writers on an earlier state"):
            catalogs.migrate(Action.UNDO)
    assert count_rows(catalogs.open_target(), "sales.orders") == 7
    assert count_rows(catalogs.open_source(), "sales.orders__moved") == 8


def test_failed_undo_after_a_killed_undo(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target's writers continue, also if an earlier run stopped them."""
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.CUT_OVER, depth="metadata")
    catalogs.open_target().load_table("sales.orders").append(build_rows(1))
    killer = Killer(monkeypatch, [(RenamingMover, "_rename")])
    assert killer.run(1, lambda: catalogs.migrate(Action.UNDO))
    assert not catalogs.open_target().table_exists("sales.orders")
    with monkeypatch.context() as patch:
        patch.setattr(RenamingMover, "repoint_stopped", _refuse)
        with pytest.raises(MigrationError, match="out of order"):
            catalogs.migrate(Action.UNDO)
    assert count_rows(catalogs.open_target(), "sales.orders") == 7


def _refuse(*_: object) -> None:
    raise MigrationError("out of order")


def _append_before(table: Table, rows: pa.Table, call: Callable[..., None]) -> Callable[..., None]:
    """Return a call before which a writer of a table commits."""

    def append_and_call(*args: Any) -> None:
        table.append(rows)
        call(*args)

    return append_and_call


def test_killed_undo_on_a_server_that_overwrites_nothing(
    catalogs: Catalogs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source is a REST service that registers no table twice: a table is dropped, and then registered again."""
    name = f"{catalogs.target.project_id}/{NEW}"
    warehouse = catalogs.target.warehouses[0].model_copy(update={"name": "old", "location": name, "id": None})
    config = catalogs.target.model_copy(update={"kind": "rest", "project_id": None, "warehouses": [warehouse]})
    # The database is the target.
    target = catalogs.source.model_copy(update={"uri": f"sqlite:///{tmp_path}/new.db"})
    moving = Catalogs(config, target, catalogs.ledger, catalogs.sandbox, "old", catalogs.source_warehouse)
    monkeypatch.setattr(RestCatalog, "register_table", _register_without_overwriting(RestCatalog.register_table))
    killer = Killer(monkeypatch, [*CALLS, (RestCatalog, "drop_table"), (RestCatalog, "register_table")])
    source = moving.open_source()
    source.create_namespace("sales")
    source.create_table("sales.orders", build_rows(1).schema).append(build_rows(3))
    moving.migrate(depth="metadata")
    moving.migrate(Action.CUT_OVER)
    moving.open_target().load_table("sales.orders").append(build_rows(2))
    kills = 0
    while killer.run(kills + 1, lambda: moving.migrate(Action.UNDO)):
        kills += 1
        assert kills < 30
    assert kills >= 3
    assert count_rows(source, "sales.orders") == 5
    assert FENCE not in source.load_table("sales.orders").properties
    assert moving.open_target().list_tables("sales") == []


def _register_without_overwriting(register: Callable[..., Any]) -> Callable[..., Any]:
    def refuse_existing_tables(*args: Any, overwrite: bool = False) -> Any:
        if overwrite:
            raise TableAlreadyExistsError("the table exists")
        return register(*args)

    return refuse_existing_tables


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("last", [Action.FINISH, Action.UNDO])
def test_kill_after_each_call(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, last: Action) -> None:
    killer = Killer(monkeypatch)
    actions = (Action.REGISTER, Action.CUT_OVER, last)
    # The first two actions are the same in both forms of the test.
    for killed_action in actions if FULL or last is Action.UNDO else (last,):
        calls = 0
        while calls < 60:
            calls += 1
            name = f"sales.{killed_action.name.lower()}-{calls}"
            catalogs.add_table(name)
            objects = catalogs.list_objects()
            is_killed = False
            for action in actions:
                if action is killed_action:
                    is_killed = killer.run(calls, partial(catalogs.migrate, action, name, depth="metadata"))
                catalogs.migrate(action, name, depth="metadata")
                if action is Action.REGISTER:
                    catalogs.open_source().load_table(name).append(build_rows(2))
                elif action is Action.CUT_OVER:
                    catalogs.open_target().load_table(name).append(build_rows(1))
            owner, other = catalogs.open_target(), catalogs.open_source()
            if last is Action.UNDO:
                owner, other = other, owner
            assert count_rows(owner, name) == 9, name
            assert FENCE not in owner.load_table(name).properties, name
            assert not other.table_exists(name), name
            assert not other.table_exists(f"{name}__moved"), name
            assert objects <= catalogs.list_objects(), name
            if not is_killed:
                break
        assert 3 < calls < 60, killed_action
