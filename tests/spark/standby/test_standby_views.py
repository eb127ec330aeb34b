"""Views of a standby: copies with their history, the lag, and a promotion with and without the source."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from lakewright_spark.errors import LeaseLostError, StandbyError
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.view_catalog import StoredView, ViewCatalog
from lakewright_spark.standby import views
from lakewright_spark.standby.mark import MARK
from lakewright_spark.standby.status import State, find_problems
from lakewright_spark.standby.tables import StandbyTable
from lakewright_spark.standby.views import StandbyView
from pyiceberg.typedef import Identifier
from rest_views import VIEW, build_version, commit, create_view, list_names, make_current, require, set_comment

from tests.spark.standby.conftest import DAY, Pair

NAME = "sales.large_orders"


class KilledError(BaseException):
    """The process ends here."""


def describe(catalog: ViewCatalog) -> dict[str, Any]:
    """Return the view without its mark."""
    description = require(catalog.find(VIEW))
    return {**description, "properties": {k: v for k, v in description["properties"].items() if k != MARK}}


def add_version(catalog: ViewCatalog, number: int) -> None:
    commit(catalog, *make_current(build_version(9, 0, {"spark": f"SELECT {number} AS id"})))


def test_views_to_the_end(servers: Pair) -> None:
    servers.add_table("sales.orders")
    assert servers.measure()[NAME].state is State.MISSING
    copied = servers.copy()
    assert {name: (status.state, status.is_view) for name, status in copied.items()} == {
        "sales.orders": (State.CURRENT, False),
        NAME: (State.CURRENT, True),
    }
    assert describe(servers.copied_views) == describe(servers.source_views)
    stored = servers.copied_views.find(VIEW)
    assert servers.copy()[NAME].detail == "view, unchanged"
    assert stored == servers.copied_views.find(VIEW), "an equal view is left as it is"

    add_version(servers.source_views, 4)
    servers.now += DAY
    behind = servers.measure()[NAME]
    assert (behind.state, behind.snapshots) == (State.BEHIND, 1)
    assert DAY - timedelta(minutes=2) < behind.lag <= DAY
    assert find_problems([behind], DAY / 2)
    servers.copy()
    assert describe(servers.copied_views) == describe(servers.source_views)
    changed = servers.copied_views.find(VIEW)
    assert stored
    assert changed
    assert changed.metadata["view-uuid"] == stored.metadata["view-uuid"], "readers have the view all the time"
    set_comment(servers.source_views, "larger")
    assert servers.measure()[NAME].state is State.BEHIND, "a change without a version"

    assert {status.state for status in servers.promote().values()} == {State.PROMOTED}
    assert list_names(servers.source_views) == ["large_orders__moved"]
    assert describe(servers.copied_views)["properties"]["comment"] == "larger", "the last change of the source"
    set_comment(servers.copied_views, "by the standby")
    assert servers.promote()[NAME].state is State.PROMOTED, "a second promotion changes nothing"
    assert servers.measure()[NAME].state is State.PROMOTED
    assert describe(servers.copied_views)["properties"]["comment"] == "by the standby"


def test_promotion_without_the_source(servers: Pair) -> None:
    servers.copy()
    add_version(servers.source_views, 4)
    last_copy = describe(servers.copied_views)
    assert servers.promote(is_source_lost=True)[NAME].state is State.PROMOTED
    assert describe(servers.copied_views) == last_copy
    failed = servers.copy()[NAME]
    assert failed.state is State.FAILED
    assert "was promoted and is no longer a standby" in failed.detail


def test_views_that_are_no_copies_are_left_alone(servers: Pair) -> None:
    servers.copy()
    set_comment(servers.copied_views, "by a user")
    assert servers.measure()[NAME].state is State.WRITTEN
    assert find_problems([servers.measure()[NAME]])
    add_version(servers.source_views, 4)
    failed = servers.copy()[NAME]
    assert "has changes of other programs. Nothing was changed" in failed.detail
    assert describe(servers.copied_views)["properties"]["comment"] == "by a user"
    servers.copied_views.drop(VIEW)
    assert servers.copy()[NAME].state is State.CURRENT
    servers.source_views.drop(VIEW)
    assert servers.measure()[NAME].state is State.DROPPED
    assert describe(servers.copied_views)["properties"] == {
        "comment": "large",
        "replace.drop-dialect.allowed": "true",
    }


@pytest.mark.parametrize("is_source_lost", [False, True])
def test_run_that_was_killed_before_a_copy_has_its_name(
    servers: Pair, monkeypatch: pytest.MonkeyPatch, *, is_source_lost: bool
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "finish_copy", _end_process)
        with pytest.raises(KilledError):
            servers.copy()
    assert list_names(servers.copied_views) == ["large_orders__copying"]
    expected = describe(servers.source_views)
    if is_source_lost:
        assert servers.promote(is_source_lost=True)[NAME].state is State.PROMOTED
    else:
        assert servers.measure()[NAME].state is State.MISSING, "readers do not find the view"
        assert servers.copy()[NAME].state is State.CURRENT
    assert list_names(servers.copied_views) == ["large_orders"]
    assert describe(servers.copied_views) == expected


def _end_process(*_: object) -> None:
    raise KilledError


def test_failed_promotion_gives_the_view_back(servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    servers.copy()
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "set_properties", _fail)
        assert servers.promote()[NAME].state is State.FAILED
    assert list_names(servers.source_views) == ["large_orders"]
    assert servers.promote()[NAME].state is State.PROMOTED


def _fail(*_: object) -> None:
    raise OSError("the server does not respond")


@pytest.mark.parametrize("pair", ["from-server"], indirect=True)
def test_standby_that_has_no_views(pair: Pair) -> None:
    """The tables are copied, and the view is no error: the standby can never have it."""
    pair.add_table("sales.orders")
    create_view(pair.source_views)
    statuses = pair.copy()
    assert statuses["sales.orders"].state is State.CURRENT
    view = statuses[NAME]
    assert (view.state, view.is_view) == (State.MISSING, True)
    assert "cannot be read and written" in view.detail
    assert find_problems(list(pair.measure().values()), DAY) == []
    assert pair.promote()["sales.orders"].state is State.PROMOTED
    with pytest.raises(StandbyError, match="expected tables to copy, found none"):
        pair.copy()


def test_rebuilt_source_changes_no_view(servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that was restored from a backup, and another view of the same name."""
    servers.copy()
    last_copy = describe(servers.copied_views)
    add_version(servers.source_views, 4)
    with monkeypatch.context() as patch:
        patch.setattr(views, "find_last_time", lambda _: 0)
        assert "has an older state than the copy" in servers.copy()[NAME].detail
    servers.source_views.drop(VIEW)
    create_view(servers.source_views)
    set_comment(servers.source_views, "rebuilt")
    assert "has another view of this name. The copy was not changed" in servers.copy()[NAME].detail
    assert describe(servers.copied_views) == last_copy


def test_view_of_an_earlier_promotion_is_not_promoted(servers: Pair) -> None:
    servers.copy()
    last_copy = describe(servers.copied_views)
    create_view(servers.source_views, "large_orders__moved")
    failed = servers.promote()[NAME]
    assert "expected the name sales.large_orders__moved to be free" in failed.detail
    servers.source_views.drop(VIEW)
    assert "has another view of this name" in servers.promote()[NAME].detail
    assert list_names(servers.source_views) == ["large_orders__moved"]
    assert describe(servers.copied_views) == last_copy


def test_failed_promotion_after_a_kill_gives_the_view_back(servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    servers.copy()
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "set_properties", _end_process)
        patch.setattr(StandbyView, "_return_to_source", lambda *_: None)
        with pytest.raises(KilledError):
            servers.promote()
    assert list_names(servers.source_views) == ["large_orders__moved"]
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "set_properties", _fail)
        assert servers.promote()[NAME].state is State.FAILED
    assert list_names(servers.source_views) == ["large_orders"]
    with monkeypatch.context() as patch:
        patch.setattr(StandbyView, "_release", _break_standby(patch))
        detail = servers.promote()[NAME].detail
    assert "the server does not respond" in detail
    assert "may have the view as sales.large_orders__moved" in detail, "the standby may have users"
    assert servers.promote()[NAME].state is State.PROMOTED


def test_view_of_another_process_is_not_given_back(servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process promotes the view before a paused process renames it, or takes over its lease after that."""
    servers.copy()
    rename = ViewCatalog.rename
    with monkeypatch.context() as patch:

        def find_renamed(source: ViewCatalog, *names: Identifier) -> None:
            rename(source, *names)
            patch.setattr(StandbyView, "find_promotion", lambda _: "promoted")
            _fail()

        patch.setattr(ViewCatalog, "rename", find_renamed)
        assert servers.promote()[NAME].state is State.FAILED
    assert list_names(servers.source_views) == ["large_orders__moved"]
    with monkeypatch.context() as patch:
        patch.setattr(StandbyView, "_release", _lose_lease)
        detail = servers.promote()[NAME].detail
    assert "may have the view as sales.large_orders__moved" in detail
    assert list_names(servers.source_views) == ["large_orders__moved"]
    assert servers.promote()[NAME].state is State.PROMOTED


def _lose_lease(*_: object) -> None:
    raise LeaseLostError("another process has the lease")


def _break_standby(patch: pytest.MonkeyPatch) -> Callable[..., None]:
    def fail(*_: object) -> None:
        patch.setattr(StandbyView, "find_promotion", _fail)
        _fail()

    return fail


def test_view_with_the_name_of_a_dropped_table(servers: Pair) -> None:
    servers.add_table("sales.totals")
    servers.copy()
    servers.catalog.drop_table("sales.totals")
    create_view(servers.source_views, "totals")
    states = {(status.name, status.is_view): status.state for status in servers.open().measure(servers.now)}
    assert states[("sales.totals", False)] is State.DROPPED
    assert states[("sales.totals", True)] is State.MISSING
    failed = servers.copy()["sales.totals"]
    assert "expected the name to be free" in failed.detail
    assert list_names(servers.copied_views) == ["large_orders"]


def test_failures_of_views_do_not_hold_up_tables(servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    servers.add_table("sales.orders")
    with monkeypatch.context() as patch:
        patch.setattr(Endpoint, "list_views", _fail)
        for statuses in (servers.copy(), servers.measure()):
            assert (statuses["sales.orders"].state, statuses["views"].state) == (State.CURRENT, State.FAILED)
    servers.copy()
    with monkeypatch.context() as patch:
        patch.setattr(StandbyTable, "promote", _fail)
        failed = servers.promote()[NAME]
    assert "it was not promoted, since tables failed" in failed.detail
    assert list_names(servers.source_views) == ["large_orders"]
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "find", _fail)
        statuses = servers.promote(is_source_lost=True)
    assert (statuses["sales.orders"].state, statuses[NAME].state) == (State.PROMOTED, State.FAILED)


def test_replacement_keeps_changes_of_other_programs(servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that a single commit cannot copy makes a new view."""
    servers.copy()
    add_version(servers.source_views, 4)
    monkeypatch.setattr(ViewCatalog, "update_copy", lambda *_: None)
    create_view(servers.copied_views, "large_orders__copying")
    assert "found a view that is no copy" in servers.copy()[NAME].detail
    servers.copied_views.drop(("sales", "large_orders__copying"))
    start_copy = ViewCatalog.start_copy

    def start_late(*values: Any) -> StoredView:
        set_comment(servers.copied_views, "by a user")
        return start_copy(*values)

    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "start_copy", start_late)
        assert "The view was not replaced" in servers.copy()[NAME].detail
    assert describe(servers.copied_views)["properties"]["comment"] == "by a user"
    set_comment(servers.copied_views, "large")
    assert servers.copy()[NAME].state is State.CURRENT
    assert describe(servers.copied_views) == describe(servers.source_views)
