"""Sources of other kinds: a Hadoop catalog, and a REST catalog whose tables move to a database."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, cast

import pytest
from forwarding import ForwardedCatalog
from jdbc_catalog import jdbc_catalog_config
from lakewright_sandbox.in_process import serve
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.endpoint import HadoopMover
from lakewright_spark.migration.fence import FENCE
from lakewright_spark.migration.steps import TableMigration
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.pyiceberg_client.hadoop_catalog import HadoopCatalog
from lakewright_spark.pyiceberg_client.new_files import create_file
from migration_catalogs import NEW, Catalogs, build_catalogs, build_rows, count_rows, read_rows
from nessie_stand_in import NessieStandIn
from projects import Project
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier


def build_hadoop_catalogs(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    """Return catalogs whose source is a Hadoop catalog with the table `sales.orders` of the database."""
    warehouse = catalogs.source.warehouses[0]
    keys = warehouse.s3_keys
    assert keys
    root = f"{warehouse.location}/hadoop"
    location = f"{root}/sales/orders"
    database = catalogs.open_source()
    database.create_namespace("sales")
    rows = build_rows(3)
    table = database.create_table("sales.orders", rows.schema, location=location)
    table.append(rows)
    io = table.io
    for version, file in enumerate([table.metadata.metadata_log[0].metadata_file, table.metadata_location], start=1):
        with (
            io.new_input(file).open() as old,
            io.new_output(f"{location}/metadata/v{version}.metadata.json").create() as new,
        ):
            new.write(old.read())
    with io.new_output(f"{location}/metadata/version-hint.text").create() as hint:
        hint.write(b"1")
    database.drop_table("sales.orders")
    config = CatalogConfig(
        kind="hadoop", tenant="texera", uri=root, warehouses=[warehouse.model_copy(update={"name": "old"})]
    )
    assert isinstance(io, PyArrowFileIO)
    return Catalogs(config, catalogs.target, catalogs.ledger, catalogs.sandbox, source_warehouse="old")


def test_format_version_3_in_a_database(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyIceberg 0.12 cannot write such a metadata file, so the table cannot have a fence."""
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    catalogs.add_table("sales.returns")
    table = catalogs.add_table("sales.orders")
    with table.io.new_input(table.metadata_location).open() as stream:
        metadata = json.loads(stream.read()) | {"format-version": 3, "next-row-id": 6}
    location = table.metadata_location.replace("/metadata/", "/metadata/v3-")
    with table.io.new_output(location).create() as output:
        output.write(json.dumps(metadata).encode())
    assert cast(Any, catalogs.open_source()).swap_pointer(("sales", "orders"), table.metadata_location, location)
    with pytest.raises(MigrationError, match=r"1 of 2 tables.*sales.orders: it has format version 3, which PyIceberg"):
        catalogs.migrate()
    assert catalogs.open_target().list_tables("sales") == [("sales", "returns")]


@pytest.fixture
def hadoop_catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    return build_hadoop_catalogs(build_catalogs(project, tmp_path, monkeypatch), monkeypatch)


def test_hadoop_catalog_to_the_end(hadoop_catalogs: Catalogs) -> None:
    catalogs = hadoop_catalogs
    rows, objects = read_rows(catalogs.open_source(), "sales.orders"), catalogs.list_objects()
    plan = catalogs.migrate().plan
    assert "deletes the table's folder in spite of the fence" in plan.losses[-1]
    writer = catalogs.open_source().load_table("sales.orders")
    assert writer.metadata_location.endswith("/v3.metadata.json"), "the fence is a version of the source"
    writer.append(build_rows(2))
    catalogs.migrate(Action.CUT_OVER)
    with pytest.raises(NoSuchTableError):
        catalogs.open_source().load_table("sales.orders")
    with pytest.raises(NoSuchTableError):
        writer.append(build_rows(1))
    catalogs.migrate(Action.FINISH)
    target = catalogs.open_target()
    assert count_rows(target, "sales.orders") == 5
    assert FENCE not in target.load_table("sales.orders").properties
    target.load_table("sales.orders").append(build_rows(1))
    assert read_rows(target, "sales.orders").num_rows == rows.num_rows + 3
    assert objects <= catalogs.list_objects()


def test_new_ledger_reports_stopped_hadoop_tables(hadoop_catalogs: Catalogs, tmp_path: Path) -> None:
    catalogs = hadoop_catalogs
    first, second = catalogs.ledger, tmp_path / "second.db"
    catalogs.migrate(copy=True, depth="metadata")
    catalogs.migrate(Action.CUT_OVER, depth="metadata")
    catalogs.ledger = second
    assert catalogs.migrate(Action.PLAN).plan.blocked["sales.orders"].startswith("migration ")
    catalogs.ledger = first
    catalogs.migrate(Action.FINISH)
    catalogs.ledger = second
    plan = catalogs.migrate(Action.PLAN).plan
    assert (plan.entries, plan.blocked) == ((), {})
    assert plan.skipped["sales.orders"].startswith("moved by a finished migration ")


def test_undo_after_the_block_was_deleted(hadoop_catalogs: Catalogs) -> None:
    """The target has the table under another name. The message names the versions that stop the source's table."""
    catalogs = hadoop_catalogs
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.CUT_OVER, depth="metadata")
    catalogs.open_target().rename_table("sales.orders", "sales.renamed")
    with pytest.raises(MigrationError, match=r"delete the metadata files of the versions after \S+/v3\.metadata\.json"):
        catalogs.migrate(Action.UNDO)
    bucket, _, key = catalogs.source.uri.removeprefix("s3://").partition("/")
    catalogs.connect_s3().delete_object(Bucket=bucket, Key=f"{key}/sales/orders/metadata/v4.metadata.json")

    catalogs.migrate(Action.UNDO)

    assert count_rows(catalogs.open_source(), "sales.orders") == 3


def test_lost_block_of_a_hadoop_table(hadoop_catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer without `If-None-Match` replaces the version that stops the writers: the source keeps its commit."""
    catalogs = hadoop_catalogs
    catalogs.migrate()
    writer = catalogs.open_source().load_table("sales.orders")
    check = TableMigration._check_unchanged

    def replace_block(migration: TableMigration, stopped: Table) -> None:
        HadoopMover(migration.source, cast(HadoopCatalog, migration.source.catalog)).resume_writers(("sales", "orders"))
        writer.append(build_rows(2))
        check(migration, stopped)

    with monkeypatch.context() as patch:
        patch.setattr(TableMigration, "_check_unchanged", replace_block)
        with pytest.raises(MigrationError, match=r"found none|changed the table"):
            catalogs.migrate(Action.CUT_OVER)
    catalogs.migrate(Action.CUT_OVER)
    assert count_rows(catalogs.open_target(), "sales.orders") == 5


@pytest.mark.parametrize("is_compressed", [False, True])
def test_commit_while_a_hadoop_table_is_stopped(
    hadoop_catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, *, is_compressed: bool
) -> None:
    """A writer commits the version that the block is about to have; the block gets the version after it."""
    catalogs = hadoop_catalogs
    catalogs.migrate()
    find_next, commits = HadoopCatalog._next_version, list[str]()

    def find_next_before_a_commit(catalog: HadoopCatalog, identifier: Identifier, last: str) -> str:
        location = find_next(catalog, identifier, last)
        if not commits:
            commits.append(location)
            if is_compressed:
                _write_compressed_version(catalogs, location)
            else:
                catalogs.open_source().load_table("sales.orders").append(build_rows(2))
        return location

    with monkeypatch.context() as patch:
        patch.setattr(HadoopCatalog, "_next_version", find_next_before_a_commit)
        catalogs.migrate(Action.CUT_OVER)
    assert commits[0].endswith("/v4.metadata.json")
    assert count_rows(catalogs.open_target(), "sales.orders") == (3 if is_compressed else 5)
    catalogs.migrate(Action.UNDO)
    table = catalogs.open_source().load_table("sales.orders")
    assert (table.properties.get("comment"), table.scan().to_arrow().num_rows) == (
        ("by a writer", 3) if is_compressed else (None, 5)
    )


def _write_compressed_version(catalogs: Catalogs, location: str) -> None:
    """Write a version as Iceberg's Java client does with `write.metadata.compression-codec=gzip`."""
    table = catalogs.open_source().load_table("sales.orders")
    with table.io.new_input(table.metadata_location).open() as stream:
        metadata = json.loads(stream.read())
    metadata["properties"]["comment"] = "by a writer"
    with table.io.new_output(location.replace(".metadata.json", ".gz.metadata.json")).create() as output:
        output.write(gzip.compress(json.dumps(metadata).encode()))


def test_new_object_under_the_scheme_of_hadoop(hadoop_catalogs: Catalogs) -> None:
    table = hadoop_catalogs.open_source().load_table("sales.orders")
    assert isinstance(table.io, PyArrowFileIO)
    location = f"{table.location()}/new".replace("s3://", "s3n://")
    create_file(table.io, location, b"first")
    with pytest.raises(CommitFailedException, match="written by another writer"):
        create_file(table.io, location, b"second")
    with table.io.new_input(f"{table.location()}/new").open() as stream:
        assert stream.read() == b"first"


def test_new_file_on_a_local_disk(tmp_path: Path) -> None:
    io = PyArrowFileIO({})
    location = f"file://{tmp_path}/metadata/v1.metadata.json"
    create_file(io, location, b"first")
    with pytest.raises(CommitFailedException, match="written by another writer"):
        create_file(io, location, b"second")
    assert {path.name: path.read_bytes() for path in (tmp_path / "metadata").iterdir()} == {
        "v1.metadata.json": b"first"
    }


@pytest.mark.long
def test_hadoop_catalog_continues_after_undo(hadoop_catalogs: Catalogs) -> None:
    catalogs = hadoop_catalogs
    catalogs.migrate()
    catalogs.migrate(Action.CUT_OVER)
    catalogs.open_target().load_table("sales.orders").append(build_rows(2))
    catalogs.migrate(Action.UNDO)
    table = catalogs.open_source().load_table("sales.orders")
    assert table.metadata_location.endswith("/v5.metadata.json")
    assert FENCE not in table.properties
    table.append(build_rows(1))
    assert count_rows(catalogs.open_source(), "sales.orders") == 6
    assert catalogs.open_target().list_tables("sales") == []


def test_hadoop_undo_fails_between_two_writes(hadoop_catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """An undo fails after the second block, before the metadata file takes the place of the first block."""
    catalogs = hadoop_catalogs
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.CUT_OVER, depth="metadata")
    target = catalogs.open_target()
    target.load_table("sales.orders").append(build_rows(2))
    write = HadoopCatalog._write

    def write_blocks_only(catalog: HadoopCatalog, location: str, text: str) -> None:
        if not location.endswith("/v5.metadata.json"):
            raise OSError("Please reduce your request rate")
        write(catalog, location, text)

    with monkeypatch.context() as patch:
        patch.setattr(HadoopCatalog, "_write", write_blocks_only)
        with pytest.raises(MigrationError, match="Please reduce your request rate"):
            catalogs.migrate(Action.UNDO)
    assert count_rows(target, "sales.orders") == 5, "the target's writers continue"

    catalogs.migrate(Action.UNDO)

    table = catalogs.open_source().load_table("sales.orders")
    assert (table.scan().to_arrow().num_rows, FENCE in table.properties) == (5, False)


def test_hint_of_hadoop_names_no_block(hadoop_catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iceberg's Java client fails if the hint's version does not exist."""
    catalogs = hadoop_catalogs
    catalogs.migrate(depth="metadata")
    catalogs.migrate(Action.CUT_OVER, depth="metadata")
    catalogs.open_target().load_table("sales.orders").append(build_rows(2))
    monkeypatch.setattr(TableMigration, "_remove_fence", _end_process)
    with pytest.raises(KeyboardInterrupt):
        catalogs.migrate(Action.UNDO)

    table = catalogs.open_source().load_table("sales.orders")
    with table.io.new_input(f"{table.location()}/metadata/version-hint.text").open() as stream:
        hint = stream.read().decode()
    assert table.metadata_location.endswith(f"/v{hint}.metadata.json")


def _end_process(*_: object) -> None:
    raise KeyboardInterrupt


def test_hadoop_catalog_is_no_target(hadoop_catalogs: Catalogs) -> None:
    catalogs = hadoop_catalogs
    swapped = Catalogs(
        catalogs.target,
        catalogs.source,
        catalogs.ledger,
        catalogs.sandbox,
        source_warehouse=NEW,
        target_warehouse="old",
    )
    with pytest.raises(MigrationError, match="expected a catalog of kind lakekeeper, rest or jdbc, found hadoop"):
        swapped.migrate()


def undo_and_finish(moving: Catalogs) -> None:
    """Undo a migration after commits in the target, and complete it then."""
    moving.migrate(Action.CUT_OVER)
    moving.open_target().load_table("sales.orders").append(build_rows(2))
    moving.migrate(Action.UNDO)
    assert count_rows(moving.open_source(), "sales.orders") == 5
    moving.migrate()
    moving.migrate(Action.CUT_OVER)
    moving.migrate(Action.FINISH)
    assert moving.open_source().list_tables("sales") == []


@pytest.mark.long
def test_rest_catalog_to_a_database(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is a REST service without Lakekeeper's calls; an undo gives it the commits of the database."""
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    name = f"{catalogs.target.project_id}/{NEW}"
    warehouse = catalogs.target.warehouses[0].model_copy(update={"name": "old", "location": name, "id": None})
    source = CatalogConfig(
        kind="rest", tenant="acme", uri=catalogs.target.uri, auth=catalogs.target.auth, warehouses=[warehouse]
    )
    own_project = project.location(NEW)
    target = jdbc_catalog_config(project.sandbox, f"sqlite:///{tmp_path}/new.db", monkeypatch, own_project)
    moving = Catalogs(source, target, catalogs.ledger, catalogs.sandbox, "old", target.warehouses[0].name)
    catalog = open_catalog(source, "old")
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", build_rows(1).schema).append(build_rows(3))
    moving.migrate()
    undo_and_finish(moving)
    assert count_rows(moving.open_target(), "sales.orders") == 5


def test_nessie_to_a_database(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nessie adds properties to tables that change with each commit, and forbids to delete files of all tables."""
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    nessie = NessieStandIn(ForwardedCatalog(catalogs.open_target()), "old")
    with serve(nessie.build_app()) as address:
        warehouse = catalogs.target.warehouses[0].model_copy(update={"name": "old", "id": None})
        source = CatalogConfig(kind="rest", tenant="acme", uri=f"{address}/iceberg", warehouses=[warehouse])
        own_project = project.location(NEW)
        target = jdbc_catalog_config(project.sandbox, f"sqlite:///{tmp_path}/new.db", monkeypatch, own_project)
        moving = Catalogs(source, target, catalogs.ledger, catalogs.sandbox, "old", target.warehouses[0].name)
        catalog = open_catalog(source, "old")
        catalog.create_namespace("sales")
        moving.open_target().create_namespace("sales")
        for table, properties in (("orders", {}), ("kept", {"gc.enabled": "false"})):
            catalog.create_table(("sales", table), build_rows(1).schema, properties=properties).append(build_rows(3))
        moving.migrate()
        moving.migrate()
        undo_and_finish(moving)
    assert nessie.refused == []
    assert count_rows(moving.open_target(), "sales.orders") == 5
    migrated = {table: moving.open_target().load_table(("sales", table)).properties for table in ("orders", "kept")}
    assert {table: properties.get("gc.enabled") for table, properties in migrated.items()} == {
        "orders": None,
        "kept": "false",
    }
    assert not any(key.startswith("nessie.") for properties in migrated.values() for key in properties)
