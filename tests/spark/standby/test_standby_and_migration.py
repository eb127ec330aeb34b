"""A warehouse that has a standby is migrated, and a warehouse whose standby was promoted."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.actions import Action, MigrationRoute, migrate_tables
from lakewright_spark.migration.fence import FENCE, FINISHED, build_view_fence
from lakewright_spark.migration.plan import Plan
from lakewright_spark.migration.steps import TableMigration
from lakewright_spark.migration.view_catalog import ViewCatalog
from lakewright_spark.standby.status import State
from lakewright_spark.standby.tables import StandbyTable
from projects import Project
from pyiceberg.typedef import Identifier
from rest_views import VIEW, find_location, list_names, require

from tests.spark.standby.conftest import Pair

NAME = "sales.large_orders"
"""The view."""


def list_objects(pair: Pair) -> list[str]:
    """Return the tables and views of the source."""
    return sorted([*(name for _, name in pair.catalog.list_tables("sales")), *list_names(pair.source_views)])


@pytest.fixture
def target(project: Project) -> CatalogConfig:
    """Return the configuration of a third project, whose warehouse is `new`."""
    own_project = Project(project.server, project.sandbox, project.real)
    return own_project.config(own_project.warehouse("new"))


def migrate(pair: Pair, target: CatalogConfig, ledger: Path, *actions: Action, patterns: tuple[str, ...] = ()) -> Plan:
    """Copy tables and views of the source to the target by these actions, and return the last plan."""
    route, plan = MigrationRoute(pair.source, "results", target, "new"), Plan(())
    for action in actions:
        result = migrate_tables(route, ledger, action, patterns=patterns, copy=True, depth="metadata")
        if result.error:
            raise result.error
        plan = result.plan
    return plan


@pytest.mark.parametrize("last", [Action.CUT_OVER, Action.FINISH])
def test_what_a_migration_has_is_not_promoted(
    rest_pair: Pair, target: CatalogConfig, tmp_path: Path, last: Action
) -> None:
    rest_pair.add_table("sales.orders")
    rest_pair.copy()
    actions = (Action.REGISTER, Action.CUT_OVER, Action.FINISH)
    migrate(rest_pair, target, tmp_path / "migration.db", *actions[: actions.index(last) + 1])
    objects = list_objects(rest_pair)
    assert "orders__moved" in objects

    # A table that fails keeps its views from a promotion.
    failed = {**rest_pair.promote("sales.orders"), **rest_pair.promote(NAME)}

    assert {status.state for status in failed.values()} == {State.FAILED}
    expected = "it was moved by a finished migration" if last is Action.FINISH else "it belongs to migration"
    assert expected in failed["sales.orders"].detail
    assert ("found none" if last is Action.FINISH else expected) in failed[NAME].detail
    assert list_objects(rest_pair) == objects, "users of the source do not get what the target has"


def test_source_is_promoted_after_an_undo(rest_pair: Pair, target: CatalogConfig, tmp_path: Path) -> None:
    rest_pair.add_table("sales.orders")
    rest_pair.copy()
    migrate(rest_pair, target, tmp_path / "migration.db", Action.REGISTER, Action.CUT_OVER, Action.UNDO)
    properties = require(rest_pair.source_views.find(VIEW))["properties"]
    assert not {FENCE, FINISHED} & properties.keys()
    assert {status.state for status in rest_pair.promote().values()} == {State.PROMOTED}


def test_migrations_leave_out_what_was_promoted(rest_pair: Pair, target: CatalogConfig, tmp_path: Path) -> None:
    rest_pair.add_table("sales.orders")
    rest_pair.copy()
    rest_pair.promote()
    marked = find_location(rest_pair.source_views, ("sales", "large_orders__moved"))
    assert {status.detail for status in rest_pair.promote().values()} == {""}
    assert find_location(rest_pair.source_views, ("sales", "large_orders__moved")) == marked, "one commit"
    plan = migrate(rest_pair, target, tmp_path / "migration.db", Action.PLAN)
    assert (plan.entries, plan.blocked) == ((), {})
    assert sorted(plan.skipped) == ["sales.large_orders__moved", "sales.orders__moved"]
    assert {reason.startswith("promoted to warehouse copies of ") for reason in plan.skipped.values()} == {True}


@pytest.mark.parametrize("last", [Action.FINISH, Action.UNDO])
def test_view_that_was_promoted_and_renamed_is_migrated(
    rest_pair: Pair, target: CatalogConfig, tmp_path: Path, last: Action
) -> None:
    """Its mark of the promotion does not hold the migration up after the rename."""
    rest_pair.copy()
    rest_pair.promote()
    rest_pair.source_views.rename(("sales", "large_orders__moved"), ("sales", "earlier"))
    migrate(rest_pair, target, tmp_path / "migration.db", Action.REGISTER, Action.CUT_OVER, last)
    assert list_objects(rest_pair) == ([] if last is Action.FINISH else ["earlier"])


def test_table_of_a_migration_gets_no_mark_of_a_promotion(
    rest_pair: Pair, target: CatalogConfig, tmp_path: Path
) -> None:
    rest_pair.add_table("sales.orders")
    rest_pair.copy()
    rest_pair.promote(is_source_lost=True)
    migrate(rest_pair, target, tmp_path / "migration.db", Action.REGISTER, Action.CUT_OVER)
    assert {status.state for status in rest_pair.promote().values()} == {State.PROMOTED}
    assert FINISHED not in rest_pair.catalog.load_table("sales.orders__moved").properties
    moved_view = rest_pair.source_views.find(("sales", "large_orders__moved"))
    assert moved_view
    assert FINISHED not in moved_view.metadata["properties"]


def test_failures_of_marks_are_reported_by_name(
    rest_pair: Pair, target: CatalogConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest_pair.add_table("sales.orders")
    rest_pair.copy()
    find = ViewCatalog.find

    def refuse_moved(catalog: ViewCatalog, identifier: Identifier) -> object:
        if identifier[-1].endswith("__moved") and catalog.endpoint.warehouse == "results":
            raise MigrationError("the server refuses: 403")
        return find(catalog, identifier)

    rest_pair.promote("sales.orders")
    rest_pair.promote(NAME)
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "find", refuse_moved)
        promoted = rest_pair.promote()[NAME]
        assert (promoted.state, promoted.detail.partition(": ")[2]) == (State.PROMOTED, "the server refuses: 403")
        plan = migrate(rest_pair, target, tmp_path / "migration.db", Action.PLAN)
    assert (plan.blocked, list(plan.skipped)) == (
        {"sales.large_orders__moved": "the server refuses: 403"},
        ["sales.orders__moved"],
    )


def test_undo_does_not_give_back_what_was_promoted(
    rest_pair: Pair, target: CatalogConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The migration has planned the table, and copied the view. Neither has a fence yet."""
    rest_pair.add_table("sales.orders")
    rest_pair.copy()
    ledger = tmp_path / "migration.db"

    def refuse(*_: object) -> None:
        raise MigrationError("the server refuses the fence")

    with monkeypatch.context() as patch:
        patch.setattr(TableMigration, "_fence", refuse)
        with pytest.raises(MigrationError, match="the server refuses the fence"):
            migrate(rest_pair, target, ledger, Action.REGISTER)
    rest_pair.promote()
    objects = list_objects(rest_pair)

    with pytest.raises(MigrationError, match=r"large_orders: it was promoted to .* Nothing was changed"):
        migrate(rest_pair, target, ledger, Action.CUT_OVER, patterns=(NAME,))
    with pytest.raises(MigrationError, match=r"orders: it was promoted to .* Nothing was changed"):
        migrate(rest_pair, target, ledger, Action.UNDO)

    assert list_objects(rest_pair) == objects == ["large_orders__moved", "orders__moved"]


@pytest.mark.parametrize("has_renamed", [True, False])
def test_view_that_a_migration_takes_in_the_meantime(
    rest_pair: Pair, monkeypatch: pytest.MonkeyPatch, *, has_renamed: bool
) -> None:
    """A migration sets its fence, and renames the view, while the promotion copies it."""
    rest_pair.copy()
    rename, views = ViewCatalog.rename, rest_pair.source_views

    def take_view(catalog: ViewCatalog, *names: Identifier) -> None:
        if names[0] == VIEW:
            views.set_properties(VIEW, build_view_fence("other"))
            if has_renamed:
                rename(views, *names)
        rename(catalog, *names)

    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "rename", take_view)
        assert rest_pair.promote()[NAME].state is State.FAILED
    assert list_objects(rest_pair) == ["large_orders__moved" if has_renamed else "large_orders"]
    assert rest_pair.measure()[NAME].state is not State.PROMOTED


def test_promotion_of_a_renamed_table_continues(
    rest_pair: Pair, target: CatalogConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has the mark of a finished migration, after which its owner renamed it. The promotion is killed."""
    rest_pair.add_table("sales.orders")
    migrate(rest_pair, target, tmp_path / "migration.db", Action.REGISTER, Action.CUT_OVER, Action.FINISH)
    rest_pair.catalog.rename_table("sales.orders__moved", "sales.earlier")
    rest_pair.copy()

    def end_process(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StandbyTable, "_release", end_process)
        patch.setattr(StandbyTable, "_resume_writers", lambda *_, **__: True)
        with pytest.raises(KeyboardInterrupt):
            rest_pair.promote()
    assert list_objects(rest_pair) == ["earlier__moved"]
    assert rest_pair.promote()["sales.earlier"].state is State.PROMOTED
