"""Tables that are registered in place: from a database to Lakekeeper, back, and to the end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from lakewright_spark.errors import MigrationError
from lakewright_spark.handed_over import HandedOverTable, is_key, parse_document
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.endpoint import Endpoint, RenamingMover
from lakewright_spark.migration.fence import FENCE
from lakewright_spark.migration.ledger import Entry, Ledger, Step
from lakewright_spark.migration.steps import TableMigration
from migration_catalogs import NEW, Catalogs, build_catalogs, build_rows, count_rows, read_rows
from projects import Project, post
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.typedef import Identifier


@pytest.fixture
def catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    return build_catalogs(project, tmp_path, monkeypatch)


def test_migration_to_the_end(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    catalogs.add_table("sales.returns", rows=5)
    expected = {name: read_rows(catalogs.open_source(), name) for name in ("sales.orders", "sales.returns")}
    objects = catalogs.list_objects()

    plan = catalogs.migrate(Action.PLAN).plan
    assert [(str(entry), entry.rows) for entry in plan.entries] == [("sales.orders", 6), ("sales.returns", 10)]
    assert not plan.blocked
    assert plan.bytes > 1000

    catalogs.migrate()
    for name, rows in expected.items():
        assert read_rows(catalogs.open_target(), name) == rows
        assert catalogs.open_target().load_table(name).properties["gc.enabled"] == "false"
        assert FENCE in catalogs.open_source().load_table(name).properties
    catalogs.migrate(Action.CUT_OVER)
    with pytest.raises(NoSuchTableError):
        catalogs.open_source().load_table("sales.orders")
    entries = catalogs.migrate(Action.FINISH).entries

    assert [entry.step for entry in entries] == [Step.FINISHED] * 2
    assert {owner.table: owner.warehouse_id for owner in list_owners(catalogs)} == dict.fromkeys(
        ("sales.orders", "sales.returns"), catalogs.target.warehouses[0].id
    )
    assert catalogs.open_source().list_tables("sales") == []
    table = catalogs.open_target().load_table("sales.orders")
    assert table.properties["owner"] == "ada"
    assert not {FENCE, "gc.enabled", "lakewright.policy.lock"} & set(table.properties)
    assert list(table.metadata.refs) == ["main", "first"] or set(table.metadata.refs) == {"main", "first"}
    assert read_rows(catalogs.open_target(), "sales.orders") == expected["sales.orders"]
    assert objects <= catalogs.list_objects(), "no file of either side was deleted"
    catalogs.open_target().drop_table("sales.orders")  # no longer protected


def list_owners(catalogs: Catalogs) -> list[HandedOverTable]:
    """Return the owners that objects under the tables' locations record."""
    _, _, bucket, folder = (catalogs.source.warehouses[0].location or "").split("/", 3)
    documents = [
        catalogs.connect_s3().get_object(Bucket=bucket, Key=key)["Body"].read()
        for key in sorted(catalogs.list_objects())
        if key.startswith(folder) and is_key(key)
    ]
    return [owner for document in documents if (owner := parse_document(document))]


@pytest.mark.parametrize("is_before_the_switch", [False, True])
def test_undo_forgets_the_owner_of_the_cut_over(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, *, is_before_the_switch: bool
) -> None:
    """The cut-over records the owner before the source's name is free."""
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    if is_before_the_switch:
        with monkeypatch.context() as killed:
            killed.setattr(RenamingMover, "stop_writers", _end_process)
            with pytest.raises(KeyboardInterrupt):
                catalogs.migrate(Action.CUT_OVER)
    else:
        catalogs.migrate(Action.CUT_OVER)
    assert [owner.table for owner in list_owners(catalogs)] == ["sales.orders"]

    catalogs.migrate(Action.UNDO)

    assert list_owners(catalogs) == []
    assert count_rows(catalogs.open_source(), "sales.orders") == 6


def test_undo_of_a_second_migration_restores_the_first_owner(catalogs: Catalogs, tmp_path: Path) -> None:
    """A table moves from A to B, and then from B to C: after an undo, B owns its files."""
    catalogs.add_table("sales.orders")
    for action in (Action.REGISTER, Action.CUT_OVER, Action.FINISH):
        catalogs.migrate(action)
    owners = list_owners(catalogs)
    name = f"{catalogs.target.project_id}/{NEW}"
    warehouse = catalogs.target.warehouses[0].model_copy(update={"name": "old", "location": name, "id": None})
    config = catalogs.target.model_copy(update={"kind": "rest", "project_id": None, "warehouses": [warehouse]})
    target = catalogs.source.model_copy(update={"uri": f"sqlite:///{tmp_path}/new.db"})
    second = Catalogs(config, target, tmp_path / "second.db", catalogs.sandbox, "old", catalogs.source_warehouse)
    second.migrate()
    second.migrate(Action.CUT_OVER)
    assert [owner.warehouse for owner in list_owners(catalogs)] == [catalogs.source_warehouse]

    second.migrate(Action.UNDO)

    assert list_owners(catalogs) == owners
    assert count_rows(catalogs.open_target(), "sales.orders") == 6


def test_undo_without_rights_to_delete_the_owner(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    monkeypatch.setattr(PyArrowFileIO, "delete", _refuse_write)
    assert not catalogs.migrate(Action.UNDO).plan.losses, "no cut-over wrote an object"
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.CUT_OVER)
    (note,) = catalogs.migrate(Action.UNDO).plan.losses
    assert note.startswith("sales.orders: s3://")
    assert "could not be deleted: Access Denied. Delete it" in note
    assert count_rows(catalogs.open_source(), "sales.orders") == 6


@pytest.mark.parametrize("has_new_table", [False, True])
def test_undo_after_a_finish_that_removed_the_source(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, *, has_new_table: bool
) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.CUT_OVER)
    with monkeypatch.context() as killed:
        killed.setattr(TableMigration, "_remove_fence", _end_process)
        with pytest.raises(KeyboardInterrupt):
            catalogs.migrate(Action.FINISH)
    if has_new_table:
        catalogs.add_table("sales.orders", rows=1)
    with pytest.raises(MigrationError, match=r"only warehouse results of .* can have|without the migration's fence"):
        catalogs.migrate(Action.UNDO)
    catalogs.migrate(Action.FINISH)
    assert count_rows(catalogs.open_target(), "sales.orders") == 6


def _end_process(*_: object) -> None:
    raise KeyboardInterrupt


def test_cut_over_without_rights_to_record_the_owner(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    with monkeypatch.context() as refused:
        refused.setattr(PyArrowFileIO, "new_output", _refuse_write)
        with pytest.raises(MigrationError, match="the new owner of its files could not be recorded at s3://"):
            catalogs.migrate(Action.CUT_OVER)
    catalogs.open_source().load_table("sales.orders").append(build_rows(1))

    catalogs.migrate(Action.CUT_OVER)
    assert [owner.table for owner in list_owners(catalogs)] == ["sales.orders"]


def _refuse_write(*_: object) -> None:
    raise PermissionError("Access Denied")


@pytest.mark.long
def test_commits_before_the_cut_over_reach_the_target(catalogs: Catalogs) -> None:
    source_table = catalogs.add_table("sales.orders")
    catalogs.migrate()
    source_table.refresh()
    source_table.append(build_rows(2))
    catalogs.migrate(Action.CUT_OVER)
    assert count_rows(catalogs.open_target(), "sales.orders") == 8


def test_writer_of_the_source_fails_after_the_cut_over(catalogs: Catalogs) -> None:
    writer = catalogs.add_table("sales.orders")
    catalogs.migrate()
    writer.refresh()
    catalogs.migrate(Action.CUT_OVER)
    with pytest.raises(NoSuchTableError):
        writer.append(build_rows(1))


def test_undo_keeps_the_commits_of_the_target(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    properties = catalogs.open_source().load_table("sales.orders").properties
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    catalogs.open_target().load_table("sales.orders").append(build_rows(4))
    objects = {key for key in catalogs.list_objects() if not is_key(key)}

    entries = catalogs.migrate(Action.UNDO).entries

    assert [entry.step for entry in entries] == [Step.UNDONE]
    table = catalogs.open_source().load_table("sales.orders")
    assert table.properties == properties
    assert count_rows(catalogs.open_source(), "sales.orders") == 10
    assert catalogs.open_target().list_tables("sales") == []
    assert objects <= catalogs.list_objects()
    table.append(build_rows(1))
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    assert count_rows(catalogs.open_target(), "sales.orders") == 11


def rename_after_cut_over(catalogs: Catalogs) -> Catalog:
    """Cut a table over, commit to it and rename it in the target. Return the target."""
    catalogs.add_table("sales.orders")
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.CUT_OVER, depth="metadata")
    target = catalogs.open_target()
    target.load_table("sales.orders").append(build_rows(4))
    target.rename_table("sales.orders", "sales.renamed")
    return target


def test_undo_refuses_a_table_that_the_target_lacks(catalogs: Catalogs) -> None:
    """A user renamed the target's table, or its identity lost sight of it: its commits are not given up."""
    target = rename_after_cut_over(catalogs)
    with pytest.raises(MigrationError, match=r"found none. Nothing was changed: its commits since"):
        catalogs.migrate(Action.UNDO)
    assert not catalogs.open_source().table_exists("sales.orders")
    assert count_rows(target, "sales.renamed") == 10

    target.rename_table("sales.renamed", "sales.orders")
    catalogs.migrate(Action.UNDO)

    assert count_rows(catalogs.open_source(), "sales.orders") == 10


def test_undo_gives_up_commits_of_a_table_that_was_dropped(catalogs: Catalogs) -> None:
    """The file that the message names is registered in the target again."""
    catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True, depth="metadata")
    catalogs.migrate(Action.CUT_OVER, depth="metadata")
    target = catalogs.open_target()
    target.load_table("sales.orders").append(build_rows(4))
    Endpoint.open(catalogs.target, NEW).drop(("sales", "orders"))
    with pytest.raises(MigrationError, match="To give up these commits, register ") as error:
        catalogs.migrate(Action.UNDO)
    target.register_table("sales.orders", str(error.value).partition(", register ")[2].partition(" there ")[0])

    catalogs.migrate(Action.UNDO)

    assert count_rows(catalogs.open_source(), "sales.orders") == 6
    assert target.list_tables("sales") == []


def test_undo_after_the_source_has_its_name_again(catalogs: Catalogs) -> None:
    """The target has the table under a name of its own, so it refuses to register the table again."""
    target = rename_after_cut_over(catalogs)
    with pytest.raises(MigrationError, match=r"or rename sales\.orders__moved in warehouse .* to sales\.orders\. "):
        catalogs.migrate(Action.UNDO)
    catalogs.open_source().rename_table("sales.orders__moved", "sales.orders")

    catalogs.migrate(Action.UNDO)

    assert count_rows(catalogs.open_source(), "sales.orders") == 6
    assert count_rows(target, "sales.renamed") == 10


def test_undo_of_a_copy_that_was_deleted(catalogs: Catalogs) -> None:
    """The target's table was dropped with its files, so that its metadata file cannot be registered again."""
    catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True, depth="metadata")
    location = catalogs.migrate(Action.CUT_OVER, depth="metadata").entries[0].target_location
    assert location
    drop_with_files(catalogs, ("sales", "orders"), location)

    result = catalogs.migrate(Action.UNDO)

    assert [entry.step for entry in result.entries] == [Step.UNDONE]
    assert "has lost the copy and its files" in " ".join(result.plan.losses)
    table = catalogs.open_source().load_table("sales.orders")
    assert (table.scan().to_arrow().num_rows, FENCE in table.properties) == (6, False)


def drop_with_files(catalogs: Catalogs, identifier: Identifier, location: str) -> None:
    """Drop a table of the target, and delete its files."""
    Endpoint.open(catalogs.target, NEW).drop(identifier)
    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    for key in catalogs.list_objects():
        if key.startswith(f"{prefix}/"):
            catalogs.connect_s3().delete_object(Bucket=bucket, Key=key)


@pytest.mark.parametrize("is_dropped", [False, True])
def test_undone_table_that_the_plan_lacks(catalogs: Catalogs, *, is_dropped: bool) -> None:
    """The source's owner drops the table, or the target has a table of its name by now: it remains as it is."""
    for name in ("sales.orders", "sales.returns"):
        catalogs.add_table(name)
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.UNDO, "sales.orders")
    if is_dropped:
        catalogs.open_source().drop_table("sales.orders")
        assert [str(entry) for entry in catalogs.migrate(depth="metadata").entries] == ["sales.returns"]
        return
    catalogs.open_target().create_table("sales.orders", build_rows(1).schema)
    with pytest.raises(MigrationError, match=r"1 of 2 tables are not migrated: .* has a table or view of this name"):
        catalogs.migrate(depth="metadata")
    assert FENCE not in catalogs.open_source().load_table("sales.orders").properties


def test_commit_between_plan_and_fence(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence is not put on a table as the plan loaded it, if another writer has changed the table since then."""
    catalogs.add_table("sales.orders")
    add = Ledger.add

    def add_after_a_commit(ledger: Ledger, entries: Iterable[Entry]) -> None:
        source_table = catalogs.open_source().load_table("sales.orders")
        source_table.append(build_rows(2))
        source_table.transaction().set_properties({"gc.enabled": "true"}).commit_transaction()
        add(ledger, entries)

    monkeypatch.setattr(Ledger, "add", add_after_a_commit)
    catalogs.migrate()
    assert count_rows(catalogs.open_target(), "sales.orders") == 8
    catalogs.migrate(Action.UNDO)
    assert catalogs.open_source().load_table("sales.orders").properties["gc.enabled"] == "true"
    assert count_rows(catalogs.open_source(), "sales.orders") == 8


@pytest.mark.long
def test_undo_before_the_cut_over(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate()
    catalogs.migrate(Action.UNDO)
    assert catalogs.open_target().list_tables("sales") == []
    assert FENCE not in catalogs.open_source().load_table("sales.orders").properties
    assert count_rows(catalogs.open_source(), "sales.orders") == 6


def test_target_with_other_writers_is_left_alone(catalogs: Catalogs) -> None:
    source_table = catalogs.add_table("sales.orders")
    catalogs.migrate()
    catalogs.open_target().load_table("sales.orders").append(build_rows(1))
    source_table.refresh()
    source_table.append(build_rows(1))
    for action in (Action.CUT_OVER, Action.REGISTER, Action.UNDO):
        with pytest.raises(MigrationError, match="commits of other writers before the cut-over"):
            catalogs.migrate(action)
    assert count_rows(catalogs.open_target(), "sales.orders") == 7
    assert count_rows(catalogs.open_source(), "sales.orders") == 7


@pytest.mark.long
def test_existing_table_in_the_target_is_left_out(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    target = catalogs.open_target()
    target.create_namespace("sales")
    target.create_table("sales.orders", build_rows(1).schema)
    assert "sales.orders" in catalogs.migrate(Action.PLAN).plan.blocked
    with pytest.raises(MigrationError, match=r"1 of 1 tables are not migrated: .* has a table or view of this name"):
        catalogs.migrate()
    assert FENCE not in catalogs.open_source().load_table("sales.orders").properties


@pytest.mark.long
def test_patterns_select_tables_for_each_action(catalogs: Catalogs) -> None:
    for name in ("sales.orders", "sales.returns", "ops.runs"):
        catalogs.add_table(name)
    assert [str(entry) for entry in catalogs.migrate(Action.REGISTER, "sales.*").entries] == [
        "sales.orders",
        "sales.returns",
    ]
    catalogs.migrate(Action.CUT_OVER, "sales.orders")
    steps = {str(entry): entry.step for entry in catalogs.migrate().entries}
    assert steps == {"sales.orders": Step.CUT_OVER, "sales.returns": Step.VERIFIED, "ops.runs": Step.VERIFIED}
    with pytest.raises(MigrationError, match="found verified; run --cut-over first"):
        catalogs.migrate(Action.FINISH, "sales.returns")


@pytest.mark.long
def test_fenced_table_is_protected_from_drops(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    with pytest.raises(Exception, match="protected"):
        catalogs.open_target().purge_table("sales.orders")


@pytest.mark.long
def test_target_with_soft_deletion_gets_the_table_again(catalogs: Catalogs, project: Project) -> None:
    """An undo leaves no soft-deleted table behind, whose location would be taken and whose expiration would be due."""
    warehouse = catalogs.target.warehouses[0].id
    profile: dict[str, object] = {"delete-profile": {"type": "soft", "expiration-seconds": 3600}}
    post(project.server, f"/management/v1/warehouse/{warehouse}/delete-profile", profile)
    catalogs.add_table("sales.orders")
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    catalogs.migrate(Action.UNDO)
    deleted = project.server.get(f"/management/v1/warehouse/{warehouse}/deleted-tabulars").json()
    assert deleted["tabulars"] == []
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    catalogs.migrate(Action.FINISH)
    assert count_rows(catalogs.open_target(), "sales.orders") == 6


def test_table_that_lakekeeper_would_refuse_is_not_fenced(catalogs: Catalogs) -> None:
    """A registration of statistics without their snapshot fails in the server's database, after the fence."""
    table = catalogs.add_table("sales.orders")
    lost = StatisticsFile.model_validate(
        {
            "snapshot-id": 7,
            "statistics-path": f"{table.location()}/metadata/7.stats",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    )
    with table.update_statistics() as change:
        change.set_statistics(lost)

    with pytest.raises(MigrationError, match="has statistics of snapshots that it lacks, 7: remove these statistics"):
        catalogs.migrate()

    assert FENCE not in catalogs.open_source().load_table("sales.orders").properties
    with catalogs.open_source().load_table("sales.orders").update_statistics() as change:
        change.remove_statistics(7)
    catalogs.migrate()
    assert count_rows(catalogs.open_target(), "sales.orders") == 6
