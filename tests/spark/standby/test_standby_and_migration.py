"""A warehouse that has a standby is migrated, and a warehouse whose standby was promoted."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.actions import Action, MigrationRoute, migrate_tables
from lakewright_spark.migration.fence import FENCE, FINISHED
from lakewright_spark.migration.plan import Plan
from lakewright_spark.migration.view_catalog import ViewCatalog
from lakewright_spark.standby.status import State
from projects import Project
from pyiceberg.typedef import Identifier
from rest_views import VIEW, list_names, require

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


def migrate(pair: Pair, target: CatalogConfig, ledger: Path, *actions: Action) -> Plan:
    """Copy tables and views of the source to the target by these actions, and return the last plan."""
    route, plan = MigrationRoute(pair.source, "results", target, "new"), Plan(())
    for action in actions:
        result = migrate_tables(route, ledger, action, copy=True, depth="metadata")
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
    marked = rest_pair.source_views.find(("sales", "large_orders__moved"))
    assert {status.detail for status in rest_pair.promote().values()} == {""}
    assert marked == rest_pair.source_views.find(("sales", "large_orders__moved")), "one commit"
    plan = migrate(rest_pair, target, tmp_path / "migration.db", Action.PLAN)
    assert (plan.entries, plan.blocked) == ((), {})
    assert sorted(plan.skipped) == ["sales.large_orders__moved", "sales.orders__moved"]
    assert {reason.startswith("promoted to warehouse copies of ") for reason in plan.skipped.values()} == {True}


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
