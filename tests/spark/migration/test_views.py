"""Views move between two warehouses of Lakekeeper with their history; other catalogs have no views that are moved."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import pytest
from jdbc_catalog import jdbc_catalog_config
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.fence import FENCE
from lakewright_spark.migration.ledger import Ledger, Step
from lakewright_spark.migration.view_catalog import ViewCatalog
from lakewright_spark.migration.view_history import describe_view, limit_history, list_missing_versions
from lakewright_spark.migration.view_steps import ViewMigration
from migration_catalogs import NEW, OLD, Catalogs, build_catalogs, build_rows
from projects import Project
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import IcebergTables
from rest_views import VIEW, build_version, commit, create_view, list_names, make_current, require, set_comment
from sqlalchemy.orm import Session

CALLS: list[tuple[Any, str]] = [(Ledger, "record"), (ViewCatalog, "_request")]


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    """Return two warehouses of one project. The source has the view `sales.large_orders` with three versions."""
    own_project = Project(project.server, project.sandbox, project.real)
    source, target = (own_project.config(own_project.warehouse(name)) for name in ("old", NEW))
    catalogs = Catalogs(source, target, tmp_path / "migration.db", project.sandbox, "old")
    catalogs.open_source().create_namespace("sales")
    create_view(open_views(catalogs, "source"))
    return catalogs


def open_views(catalogs: Catalogs, side: str) -> ViewCatalog:
    if side == "source":
        return ViewCatalog(Endpoint.open(catalogs.source, catalogs.source_warehouse))
    return ViewCatalog(Endpoint.open(catalogs.target, catalogs.target_warehouse or ""))


def test_view_with_its_history(catalogs: Catalogs) -> None:
    source, target = open_views(catalogs, "source"), open_views(catalogs, "target")
    expected = require(source.find(VIEW))
    assert len(expected["versions"]) == 3
    plan = catalogs.migrate(Action.PLAN).plan
    assert [(str(entry), entry.is_view) for entry in plan.entries] == [("sales.large_orders", True)]

    catalogs.migrate()
    assert require(target.find(VIEW)) == expected
    stored = target.find(VIEW)
    assert stored
    versions = sorted(stored.metadata["versions"], key=itemgetter("version-id"))
    assert versions == sorted(versions, key=itemgetter("timestamp-ms"))
    catalogs.migrate()
    unchanged = target.find(VIEW)
    assert unchanged
    assert unchanged.location == stored.location, "an equal view is left as it is"
    set_comment(source, "larger")
    catalogs.migrate(Action.CUT_OVER)
    assert require(target.find(VIEW))["properties"]["comment"] == "larger"
    assert list_names(source) == ["large_orders__moved"]
    set_comment(target, "by the target")
    entries = catalogs.migrate(Action.FINISH).entries

    assert [entry.step for entry in entries] == [Step.FINISHED]
    assert list_names(source) == []
    assert list_names(target) == ["large_orders"]
    assert require(target.find(VIEW))["properties"]["comment"] == "by the target"


@pytest.mark.parametrize("has_change", [False, True])
def test_undo_keeps_changes_of_the_target(catalogs: Catalogs, *, has_change: bool) -> None:
    source, target = open_views(catalogs, "source"), open_views(catalogs, "target")
    before = source.find(VIEW)
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    if has_change:
        commit(target, *make_current(build_version(9, 0, {"spark": "SELECT 1 AS id"})))
    expected = require(target.find(VIEW))
    catalogs.migrate(Action.UNDO)
    after = source.find(VIEW)
    assert require(after) == expected
    assert (require(after) == require(before)) is not has_change
    assert before
    assert after
    assert FENCE not in after.metadata["properties"]
    assert after.metadata["view-uuid"] == before.metadata["view-uuid"], "grants on the view remain"
    assert list_names(source) == ["large_orders"]
    assert list_names(target) == []


def test_undo_refuses_a_view_that_the_target_lacks(catalogs: Catalogs) -> None:
    """A user dropped the target's view: its changes are given up only on request."""
    source, target = open_views(catalogs, "source"), open_views(catalogs, "target")
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    target.drop(VIEW)
    with pytest.raises(MigrationError, match=r"rename sales.large_orders__moved in .* to sales.large_orders. Then run"):
        catalogs.migrate(Action.UNDO)
    assert list_names(source) == ["large_orders__moved"]
    source.rename((*VIEW[:-1], "large_orders__moved"), VIEW)

    catalogs.migrate(Action.UNDO)

    stored = source.find(VIEW)
    assert stored
    assert FENCE not in stored.properties


def test_undo_keeps_a_change_during_the_undo(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    run_before_rename(monkeypatch, NEW, lambda: set_comment(open_views(catalogs, "target"), "last"))
    catalogs.migrate(Action.UNDO)
    assert require(open_views(catalogs, "source").find(VIEW))["properties"]["comment"] == "last"


def run_before_rename(monkeypatch: pytest.MonkeyPatch, warehouse: str, act: Callable[[], None]) -> None:
    """Run a function before the next view of a warehouse is taken from its users."""
    rename, calls = ViewCatalog.rename, [act]

    def act_and_rename(views: ViewCatalog, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        if calls and views.endpoint.warehouse == warehouse and new[-1].endswith("__moved"):
            calls.pop()()
        rename(views, old, new)

    monkeypatch.setattr(ViewCatalog, "rename", act_and_rename)


@pytest.mark.parametrize("has_new_view", [False, True])
def test_undo_after_a_killed_finish(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, *, has_new_view: bool) -> None:
    """The finish has removed the source's view, and the ledger does not have this step."""
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    with monkeypatch.context() as killed:
        killed.setattr(Ledger, "record", end_process)
        with pytest.raises(Killed):
            catalogs.migrate(Action.FINISH)
    if has_new_view:
        create_view(open_views(catalogs, "source"))
    with pytest.raises(MigrationError, match=f"Nothing was changed: only warehouse {NEW} of .* ha"):
        catalogs.migrate(Action.UNDO)
    assert list_names(open_views(catalogs, "target")) == ["large_orders"]
    assert catalogs.migrate(Action.FINISH).entries[0].step is Step.FINISHED


def end_process(*_: object) -> None:
    raise Killed


def test_default_namespaces_of_earlier_versions(catalogs: Catalogs) -> None:
    """Lakekeeper forgets the default namespace of a version if the warehouse lacks the namespace."""
    source, target = open_views(catalogs, "source"), open_views(catalogs, "target")
    catalogs.open_source().create_namespace("archive")
    version = build_version(9, 0, {"spark": "SELECT id FROM orders"}) | {"default-namespace": ["archive"]}
    commit(source, *make_current(version))
    catalogs.migrate()
    assert require(target.find(VIEW)) == require(source.find(VIEW))
    assert require(target.find(VIEW))["current version"]["default-namespace"] == ["archive"]


def test_killed_cut_over_without_the_last_change(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides change: the source until its view is taken from its users, the target before the next run."""
    source, target = open_views(catalogs, "source"), open_views(catalogs, "target")
    last = {"spark": "SELECT 2 AS id"}
    catalogs.migrate()
    with monkeypatch.context() as patch:
        run_before_rename(patch, "old", lambda: commit(source, *make_current(build_version(9, 0, last))))
        patch.setattr(ViewCatalog, "find", kill_at_moved(ViewCatalog.find))
        with pytest.raises(Killed):
            catalogs.migrate(Action.CUT_OVER)
    commit(target, *make_current(build_version(9, 0, {"spark": "SELECT 3 AS id"})))
    with pytest.raises(MigrationError, match=r"expected a view in .* with the last change of the source"):
        catalogs.migrate(Action.CUT_OVER)
    catalogs.migrate(Action.UNDO)
    queries = [version["representations"][0]["sql"] for version in require(source.find(VIEW))["versions"]]
    assert {"SELECT 2 AS id", "SELECT 3 AS id"} < set(queries)
    assert require(source.find(VIEW))["current version"]["representations"][0]["sql"] == "SELECT 3 AS id"


def test_failed_rerun_leaves_the_view_of_a_killed_cut_over(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The killed run took the view from the users of the source, and the users of the target may have changed it."""
    catalogs.migrate()
    with monkeypatch.context() as patch:
        patch.setattr(ViewCatalog, "find", kill_at_moved(ViewCatalog.find))
        with pytest.raises(Killed):
            catalogs.migrate(Action.CUT_OVER)
    with monkeypatch.context() as patch:
        patch.setattr(ViewMigration, "_is_written", refuse)
        with pytest.raises(MigrationError, match="the target does not respond"):
            catalogs.migrate(Action.CUT_OVER)
    assert list_names(open_views(catalogs, "source")) == ["large_orders__moved"]
    catalogs.migrate(Action.CUT_OVER)


def refuse(*_: object) -> None:
    raise MigrationError("the target does not respond")


def kill_at_moved(find: Callable[..., Any]) -> Callable[..., Any]:
    """End the process at the first look at a view that is taken from its users."""

    def find_or_end(views: ViewCatalog, identifier: tuple[str, ...]) -> Any:
        if identifier[-1].endswith("__moved"):
            raise Killed
        return find(views, identifier)

    return find_or_end


def test_failed_copy_gives_the_view_back(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_views(catalogs, "source")
    catalogs.migrate()

    def refuse_copy(*_: object) -> None:
        raise MigrationError("the target refuses the view")

    def change_and_refuse() -> None:
        set_comment(source, "last")
        monkeypatch.setattr(ViewCatalog, "start_copy", refuse_copy)

    with monkeypatch.context() as patch:
        run_before_rename(patch, "old", change_and_refuse)
        with pytest.raises(MigrationError, match="the target refuses the view"):
            catalogs.migrate(Action.CUT_OVER)
    assert list_names(source) == ["large_orders"]


@pytest.mark.parametrize(
    ("side", "name"),
    [("source", "large_orders__moved"), ("target", "large_orders__moved"), ("target", "large_orders__copying")],
)
def test_name_of_the_migration_is_taken(catalogs: Catalogs, side: str, name: str) -> None:
    views = open_views(catalogs, side)
    if side == "target":
        views.endpoint.create_namespace(("sales",))
    create_view(views, name)
    blocked = catalogs.migrate(Action.PLAN).plan.blocked
    assert f"has a table or view named sales.{name}" in blocked["sales.large_orders"]


def test_names_that_migrations_use_are_left_out(catalogs: Catalogs) -> None:
    create_view(open_views(catalogs, "source"), "other__copying")
    plan = catalogs.migrate(Action.PLAN).plan
    assert [str(entry) for entry in plan.entries] == ["sales.large_orders"]
    assert "the ledger has no sales.other: rename it" in plan.blocked["sales.other__copying"]


def test_server_that_does_not_list_views(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch_config = RestCatalog._fetch_config

    def fetch_without_views(catalog: Any) -> None:
        fetch_config(catalog)
        catalog._supported_endpoints = {call for call in catalog._supported_endpoints if "views" not in call.path}

    monkeypatch.setattr(RestCatalog, "_fetch_config", fetch_without_views)
    plan = catalogs.migrate(Action.PLAN).plan
    assert not plan.entries
    assert f"views of warehouse old of {catalogs.source.uri} cannot be listed" in str(plan.losses)


def test_server_that_does_not_rename_views(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch_config = RestCatalog._fetch_config

    def fetch_without_rename(catalog: Any) -> None:
        fetch_config(catalog)
        catalog._supported_endpoints = {call for call in catalog._supported_endpoints if "rename" not in call.path}

    monkeypatch.setattr(RestCatalog, "_fetch_config", fetch_without_rename)
    assert "cannot be read and written" in str(catalogs.migrate(Action.PLAN).plan.losses)


def test_history_in_any_order(catalogs: Catalogs) -> None:
    """Lakekeeper returns the versions and their log in any order, and deletes versions above a limit."""
    view = open_views(catalogs, "source").find(VIEW)
    assert view
    shuffled = {**view.metadata, "versions": view.metadata["versions"][::-1], "version-log": []}
    assert describe_view(shuffled) == describe_view(view.metadata)
    assert [version["version-id"] for version in list_missing_versions(shuffled, {"versions": []})] == [1, 2, 3]
    limited = limit_history({**shuffled, "properties": {"version.history.num-entries": "2"}, "current-version-id": 1})
    assert [version["version-id"] for version in limited["versions"]] == [3, 1]
    assert [version["version-id"] for version in limit_history(shuffled)["versions"]] == [1, 2, 3]


def test_change_in_the_target_before_the_cut_over(catalogs: Catalogs) -> None:
    catalogs.migrate()
    set_comment(open_views(catalogs, "target"), "too early")
    for action in (Action.REGISTER, Action.CUT_OVER, Action.UNDO):
        with pytest.raises(MigrationError, match="the target's view was changed before the cut-over"):
            catalogs.migrate(action)
    assert require(open_views(catalogs, "target").find(VIEW))["properties"]["comment"] == "too early"
    assert list_names(open_views(catalogs, "source")) == ["large_orders"]


def test_plan_names_the_catalog_of_queries(catalogs: Catalogs) -> None:
    version = build_version(9, 0, {"spark": "SELECT id FROM orders"}) | {"default-catalog": "lake"}
    commit(open_views(catalogs, "source"), *make_current(version))
    plan = catalogs.migrate(Action.PLAN).plan
    assert "sales.large_orders: its queries name the catalog lake: give the target this name in engines" in plan.losses


def test_name_is_taken_in_the_target(catalogs: Catalogs) -> None:
    catalogs.open_target().create_namespace("sales")
    catalogs.open_target().create_table("sales.large_orders", build_rows(1).schema)
    with pytest.raises(MigrationError, match="has a table or view of this name"):
        catalogs.migrate()


@pytest.mark.long
@pytest.mark.parametrize("last", [Action.FINISH, Action.UNDO])
def test_kill_after_each_call(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, last: Action) -> None:
    """Each command is killed after its first call, then after its second, until it ends as without kills."""
    source, target = open_views(catalogs, "source"), open_views(catalogs, "target")
    remaining: list[int] = []

    def end_process(call: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **values: Any) -> Any:
            result = call(*args, **values)
            if remaining:
                remaining[0] -= 1
                if remaining[0] == 0:
                    raise Killed
            return result

        return count

    expected = require(source.find(VIEW))
    with monkeypatch.context() as patch:
        for owner, name in CALLS:
            patch.setattr(owner, name, end_process(getattr(owner, name)))
        for action in (Action.REGISTER, Action.CUT_OVER, last):
            if action is last:
                remaining.clear()
                set_comment(target, "by the target")
                expected["properties"]["comment"] = "by the target"
            calls = 0
            for calls in range(1, 60):
                remaining[:] = [calls]
                try:
                    catalogs.migrate(action)
                except Killed:
                    continue
                break
            assert 2 < calls < 59, action
    owner, other = (source, target) if last is Action.UNDO else (target, source)
    assert require(owner.find(VIEW)) == expected
    assert list_names(owner) == ["large_orders"]
    assert list_names(other) == []


def test_database_as_target_lacks_views(catalogs: Catalogs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = jdbc_catalog_config(catalogs.sandbox, f"sqlite:///{tmp_path}/new.db", monkeypatch)
    moving = Catalogs(catalogs.source, target, tmp_path / "other.db", catalogs.sandbox, "old", OLD)
    plan = moving.migrate(Action.PLAN).plan
    assert not plan.entries
    (loss,) = (loss for loss in plan.losses if loss.startswith("sales.large_orders"))
    assert loss == (
        f"sales.large_orders: a view, which is not migrated: views of warehouse {OLD} of {target.uri} cannot be read "
        "and written"
    )


def test_views_in_a_database_are_losses(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iceberg's Java catalog writes views into the table of tables, with a type of their own."""
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    catalogs.add_table("sales.orders")
    source = cast(Any, catalogs.open_source())
    row = IcebergTables(
        catalog_name=OLD,
        table_namespace="sales",
        table_name="large_orders",
        metadata_location="s3://b/v.json",
        previous_metadata_location=None,
    )
    row.iceberg_type = "VIEW"
    with Session(source.engine) as session:
        session.add(row)
        session.commit()
    plan = catalogs.migrate(Action.PLAN).plan
    assert [str(entry) for entry in plan.entries] == ["sales.orders"]
    assert any(loss.startswith("sales.large_orders: a view, which is not migrated") for loss in plan.losses)
