"""Views of a standby: copies with their history, the lag, and a promotion with and without the source."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from lakewright_spark.errors import LeaseLostError, StandbyError
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.view_catalog import StoredView, ViewCatalog
from lakewright_spark.standby import views
from lakewright_spark.standby.mark import MARK, StandbyMark
from lakewright_spark.standby.status import State, find_problems
from lakewright_spark.standby.tables import StandbyTable
from lakewright_spark.standby.views import StandbyView
from pyiceberg.typedef import Identifier
from rest_views import (
    VIEW,
    build_version,
    commit,
    create_view,
    find_location,
    list_names,
    make_current,
    require,
    set_comment,
)

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


def test_views_to_the_end(rest_pair: Pair) -> None:
    rest_pair.add_table("sales.orders")
    assert rest_pair.measure()[NAME].state is State.MISSING
    copied = rest_pair.copy()
    assert {name: (status.state, status.is_view) for name, status in copied.items()} == {
        "sales.orders": (State.CURRENT, False),
        NAME: (State.CURRENT, True),
    }
    assert describe(rest_pair.copied_views) == describe(rest_pair.source_views)
    stored = rest_pair.copied_views.find(VIEW)
    assert stored
    assert rest_pair.copy()[NAME].detail == "view, unchanged"
    assert find_location(rest_pair.copied_views) == stored.location, "an equal view is left as it is"

    add_version(rest_pair.source_views, 4)
    rest_pair.now += DAY
    behind = rest_pair.measure()[NAME]
    assert (behind.state, behind.snapshots) == (State.BEHIND, 1)
    assert DAY - timedelta(minutes=2) < behind.lag <= DAY
    assert find_problems([behind], DAY / 2)
    rest_pair.copy()
    assert describe(rest_pair.copied_views) == describe(rest_pair.source_views)
    changed = rest_pair.copied_views.find(VIEW)
    assert changed
    assert changed.metadata["view-uuid"] == stored.metadata["view-uuid"], "readers have the view all the time"
    set_comment(rest_pair.source_views, "larger")
    assert rest_pair.measure()[NAME].state is State.BEHIND, "a change without a version"

    assert {status.state for status in rest_pair.promote().values()} == {State.PROMOTED}
    assert list_names(rest_pair.source_views) == ["large_orders__moved"]
    assert describe(rest_pair.copied_views)["properties"]["comment"] == "larger", "the last change of the source"
    set_comment(rest_pair.copied_views, "by the standby")
    assert rest_pair.promote()[NAME].state is State.PROMOTED, "a second promotion changes nothing"
    assert rest_pair.measure()[NAME].state is State.PROMOTED
    assert describe(rest_pair.copied_views)["properties"]["comment"] == "by the standby"


def test_lag_counts_versions_that_the_source_deleted(rest_pair: Pair) -> None:
    """The source keeps ten versions of a view, and none of these was copied."""
    rest_pair.copy()
    for number in range(4, 15):
        add_version(rest_pair.source_views, number)
    rest_pair.now += DAY

    behind = rest_pair.measure()[NAME]

    assert (behind.state, behind.snapshots, behind.lag) == (State.BEHIND, 10, DAY), "since the last copy"


def test_promotion_without_the_source(rest_pair: Pair) -> None:
    rest_pair.copy()
    add_version(rest_pair.source_views, 4)
    last_copy = describe(rest_pair.copied_views)
    assert rest_pair.promote(is_source_lost=True)[NAME].state is State.PROMOTED
    assert describe(rest_pair.copied_views) == last_copy
    failed = rest_pair.copy()[NAME]
    assert failed.state is State.FAILED
    assert "was promoted and is no longer a standby" in failed.detail


def test_views_that_are_no_copies_are_left_alone(rest_pair: Pair) -> None:
    rest_pair.copy()
    set_comment(rest_pair.copied_views, "by a user")
    assert rest_pair.measure()[NAME].state is State.WRITTEN
    assert find_problems([rest_pair.measure()[NAME]])
    add_version(rest_pair.source_views, 4)
    failed = rest_pair.copy()[NAME]
    assert "has changes of other programs. Nothing was changed" in failed.detail
    assert describe(rest_pair.copied_views)["properties"]["comment"] == "by a user"
    rest_pair.copied_views.drop(VIEW)
    assert rest_pair.copy()[NAME].state is State.CURRENT
    rest_pair.source_views.drop(VIEW)
    assert rest_pair.measure()[NAME].state is State.DROPPED
    assert describe(rest_pair.copied_views)["properties"] == {
        "comment": "large",
        "replace.drop-dialect.allowed": "true",
    }


@pytest.mark.parametrize("is_source_lost", [False, True])
def test_run_that_was_killed_before_a_copy_has_its_name(
    rest_pair: Pair, monkeypatch: pytest.MonkeyPatch, *, is_source_lost: bool
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "finish_copy", _end_process)
        with pytest.raises(KilledError):
            rest_pair.copy()
    assert list_names(rest_pair.copied_views) == ["large_orders__copying"]
    expected = describe(rest_pair.source_views)
    if is_source_lost:
        assert rest_pair.promote(is_source_lost=True)[NAME].state is State.PROMOTED
    else:
        assert rest_pair.measure()[NAME].state is State.MISSING, "readers do not find the view"
        assert rest_pair.copy()[NAME].state is State.CURRENT
    assert list_names(rest_pair.copied_views) == ["large_orders"]
    assert describe(rest_pair.copied_views) == expected


def _end_process(*_: object) -> None:
    raise KilledError


def test_failed_promotion_gives_the_view_back(rest_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    rest_pair.copy()
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "set_properties", _fail)
        assert rest_pair.promote()[NAME].state is State.FAILED
    assert list_names(rest_pair.source_views) == ["large_orders"]
    assert rest_pair.promote()[NAME].state is State.PROMOTED


def _fail(*_: object) -> NoReturn:
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


def test_rebuilt_source_changes_no_view(rest_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that was restored from a backup, and another view of the same name."""
    rest_pair.copy()
    last_copy = describe(rest_pair.copied_views)
    add_version(rest_pair.source_views, 4)
    with monkeypatch.context() as patch:
        patch.setattr(views, "find_last_time", lambda _: 0)
        assert "has an older state than the copy" in rest_pair.copy()[NAME].detail
    rest_pair.source_views.drop(VIEW)
    create_view(rest_pair.source_views)
    set_comment(rest_pair.source_views, "rebuilt")
    assert "has another view of this name. The copy was not changed" in rest_pair.copy()[NAME].detail
    assert describe(rest_pair.copied_views) == last_copy


def test_view_of_an_earlier_promotion_is_not_promoted(rest_pair: Pair) -> None:
    rest_pair.copy()
    last_copy = describe(rest_pair.copied_views)
    create_view(rest_pair.source_views, "large_orders__moved")
    failed = rest_pair.promote()[NAME]
    assert "expected the name sales.large_orders__moved to be free" in failed.detail
    rest_pair.source_views.drop(VIEW)
    assert "has another view of this name" in rest_pair.promote()[NAME].detail
    assert list_names(rest_pair.source_views) == ["large_orders__moved"]
    assert describe(rest_pair.copied_views) == last_copy


def test_failed_promotion_after_a_kill_gives_the_view_back(rest_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    rest_pair.copy()
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "set_properties", _end_process)
        patch.setattr(StandbyView, "_return_to_source", lambda *_, **__: None)
        with pytest.raises(KilledError):
            rest_pair.promote()
    assert list_names(rest_pair.source_views) == ["large_orders__moved"]
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "set_properties", _fail)
        assert rest_pair.promote()[NAME].state is State.FAILED
    assert list_names(rest_pair.source_views) == ["large_orders"]
    with monkeypatch.context() as patch:
        patch.setattr(StandbyView, "_release", _break_standby(patch))
        detail = rest_pair.promote()[NAME].detail
    assert "the server does not respond" in detail
    assert "may have the view as sales.large_orders__moved" in detail, "the standby may have users"
    assert rest_pair.promote()[NAME].state is State.PROMOTED


def test_view_of_another_process_is_not_given_back(rest_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process promotes the view before a paused process renames it, or takes over its lease after that."""
    rest_pair.copy()
    rename = ViewCatalog.rename
    with monkeypatch.context() as patch:

        def find_renamed(source: ViewCatalog, *names: Identifier) -> None:
            rename(source, *names)
            patch.setattr(StandbyView, "find_promotion", lambda _: "promoted")
            _fail()

        patch.setattr(ViewCatalog, "rename", find_renamed)
        assert rest_pair.promote()[NAME].state is State.FAILED
    assert list_names(rest_pair.source_views) == ["large_orders__moved"]
    with monkeypatch.context() as patch:
        patch.setattr(StandbyView, "_release", _lose_lease)
        detail = rest_pair.promote()[NAME].detail
    assert "may have the view as sales.large_orders__moved" in detail
    assert list_names(rest_pair.source_views) == ["large_orders__moved"]
    assert rest_pair.promote()[NAME].state is State.PROMOTED


def test_view_is_not_given_back_without_the_lease(rest_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standby does not respond after the view was taken from the source's users, and the lease has ended."""
    rest_pair.copy()
    find_copy = StandbyView.find_copy

    def lose_lease_after_rename(view: StandbyView) -> tuple[StoredView, StandbyMark] | None:
        if view.find_in_source() is not None:
            return find_copy(view)
        object.__setattr__(view, "check_claim", _lose_lease)
        return _fail()

    with monkeypatch.context() as patch:
        patch.setattr(StandbyView, "find_copy", lose_lease_after_rename)
        detail = rest_pair.promote()[NAME].detail
    assert "the server does not respond" in detail
    assert "may have the view as sales.large_orders__moved" in detail
    assert list_names(rest_pair.source_views) == ["large_orders__moved"]
    assert rest_pair.promote()[NAME].state is State.PROMOTED


def _lose_lease(*_: object) -> None:
    raise LeaseLostError("another process has the lease")


def _break_standby(patch: pytest.MonkeyPatch) -> Callable[..., None]:
    def fail(*_: object) -> None:
        patch.setattr(StandbyView, "find_promotion", _fail)
        _fail()

    return fail


def test_view_with_the_name_of_a_dropped_table(rest_pair: Pair) -> None:
    rest_pair.add_table("sales.totals")
    rest_pair.copy()
    rest_pair.catalog.drop_table("sales.totals")
    create_view(rest_pair.source_views, "totals")
    states = {(status.name, status.is_view): status.state for status in rest_pair.open().measure(rest_pair.now)}
    assert states[("sales.totals", False)] is State.DROPPED
    assert states[("sales.totals", True)] is State.MISSING
    failed = rest_pair.copy()["sales.totals"]
    assert "expected the name to be free" in failed.detail
    assert list_names(rest_pair.copied_views) == ["large_orders"]


def test_failures_of_views_do_not_hold_up_tables(rest_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    rest_pair.add_table("sales.orders")
    with monkeypatch.context() as patch:
        patch.setattr(Endpoint, "list_views", _fail)
        for statuses in (rest_pair.copy(), rest_pair.measure()):
            assert (statuses["sales.orders"].state, statuses["views"].state) == (State.CURRENT, State.FAILED)
    rest_pair.copy()
    with monkeypatch.context() as patch:
        patch.setattr(StandbyTable, "promote", _fail)
        failed = rest_pair.promote()[NAME]
    assert "it was not promoted, since tables failed" in failed.detail
    assert list_names(rest_pair.source_views) == ["large_orders"]
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "find", _fail)
        statuses = rest_pair.promote(is_source_lost=True)
    assert (statuses["sales.orders"].state, statuses[NAME].state) == (State.PROMOTED, State.FAILED)


def test_replacement_keeps_changes_of_other_programs(rest_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that a single commit cannot copy makes a new view."""
    rest_pair.copy()
    add_version(rest_pair.source_views, 4)
    monkeypatch.setattr(ViewCatalog, "update_copy", lambda *_: None)
    create_view(rest_pair.copied_views, "large_orders__copying")
    assert "found a view that is no copy" in rest_pair.copy()[NAME].detail
    rest_pair.copied_views.drop(("sales", "large_orders__copying"))
    start_copy = ViewCatalog.start_copy

    def start_late(*values: Any) -> StoredView:
        set_comment(rest_pair.copied_views, "by a user")
        return start_copy(*values)

    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "start_copy", start_late)
        assert "The view was not replaced" in rest_pair.copy()[NAME].detail
    assert describe(rest_pair.copied_views)["properties"]["comment"] == "by a user"
    set_comment(rest_pair.copied_views, "large")
    assert rest_pair.copy()[NAME].state is State.CURRENT
    assert describe(rest_pair.copied_views) == describe(rest_pair.source_views)
