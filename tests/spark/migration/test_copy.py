"""Tables that are copied within a store: to a warehouse with another prefix, with every snapshot, branch and tag."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs
from jdbc_catalog import create_bucket
from lakewright_spark.errors import MigrationError
from lakewright_spark.migration import copy_stores
from lakewright_spark.migration.actions import Action
from lakewright_spark.migration.copy_stores import CopyStore, S3Store, StorePair, open_copy_store
from lakewright_spark.migration.endpoint import RenamingMover
from lakewright_spark.migration.fence import FENCE
from lakewright_spark.migration.steps import TableMigration
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from migration_catalogs import Catalogs, build_catalogs, build_rows, count_rows, read_rows
from projects import Project
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry, ManifestFile
from pyiceberg.typedef import Identifier
from store_keys import create_bucket_key


@pytest.fixture
def catalogs(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    """Return catalogs with separate prefixes in one bucket, so that the files may not remain in place."""
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    warehouse = catalogs.source.warehouses[0]
    assert warehouse.location
    bucket = "/".join(warehouse.location.split("/")[:3])
    moved = warehouse.model_copy(update={"location": f"{bucket}/shared"})
    catalogs.source = catalogs.source.model_copy(update={"warehouses": [moved]})
    return catalogs


def test_copy_to_the_end(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    source_table = catalogs.add_table("sales.orders")
    rows, objects = read_rows(catalogs.open_source(), "sales.orders"), catalogs.list_objects()
    snapshots = {s.snapshot_id: s.sequence_number for s in source_table.snapshots()}
    first = min(source_table.snapshots(), key=lambda s: s.sequence_number or 0).snapshot_id
    read_files: list[str] = []
    monkeypatch.setattr(S3Store, "read", _count_reads(read_files))

    with pytest.raises(MigrationError, match="is not a valid sublocation"):
        catalogs.migrate()
    catalogs.migrate(Action.UNDO)
    catalogs.migrate(copy=True)
    assert not [path for path in read_files if path.endswith(".parquet")], "no data passed through this process"
    catalogs.open_source().load_table("sales.orders").append(build_rows(2))
    catalogs.migrate(Action.CUT_OVER)
    catalogs.migrate(Action.FINISH)

    target = catalogs.open_target()
    table = target.load_table("sales.orders")
    assert count_rows(target, "sales.orders") == 8
    assert snapshots.items() <= {s.snapshot_id: s.sequence_number for s in table.snapshots()}.items()
    assert table.metadata.refs["first"].snapshot_id == first
    assert table.scan(snapshot_id=first).to_arrow().num_rows == 3
    assert {schema.schema_id for schema in table.metadata.schemas} == {0, 1}
    assert all(task.file.file_path.startswith(table.location()) for task in table.scan().plan_files())
    assert table.properties == {"owner": "ada"}
    table.append(build_rows(1))
    assert objects <= catalogs.list_objects(), "no file of the source was deleted"
    moved = catalogs.open_source().load_table("sales.orders__moved")
    assert FENCE not in moved.properties, "the source's files can be deleted by its owner"
    assert moved.scan().to_arrow().num_rows == rows.num_rows + 2


def test_new_ledger_leaves_out_finished_copies(catalogs: Catalogs, tmp_path: Path) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True, depth="metadata")
    catalogs.migrate(Action.CUT_OVER, depth="metadata")
    catalogs.migrate(Action.FINISH)

    catalogs.ledger = tmp_path / "second.db"
    result = catalogs.migrate(copy=True)
    assert (list(result.entries), list(result.plan.skipped)) == ([], ["sales.orders__moved"])
    assert result.plan.skipped["sales.orders__moved"].startswith("moved by a finished migration (")
    with pytest.raises(MigrationError, match=r"moved by a finished migration .*: rename it to migrate"):
        catalogs.migrate(Action.REGISTER, "sales.*__moved", copy=True)

    source = catalogs.open_source()
    source.rename_table("sales.orders__moved", "sales.earlier_orders")
    source.create_table("sales.returns__moved", build_rows(1).schema)
    plan = catalogs.migrate(Action.PLAN, copy=True).plan
    assert [str(entry) for entry in plan.entries] == ["sales.earlier_orders"]
    assert plan.blocked["sales.returns__moved"].startswith("expected a name without __moved"), "it has no mark"


@pytest.mark.long
def test_copy_keeps_partitions_and_deletes(catalogs: Catalogs) -> None:
    catalog = catalogs.open_source()
    catalog.create_namespace("sales")
    content = pa.table(
        {
            "number": pa.array([1, 2, 3], pa.int64()),
            "day": pa.array([0, 20_000, -1], pa.date32()),
            "time": pa.array([0, 86_400_000_000, -86_400_000_001], pa.timestamp("us")),
            "name": ["a", None, "c"],
        }
    )
    table = catalog.create_table("sales.orders", content.schema)
    with table.update_spec() as change:
        change.add_identity("day").add_identity("name").add_identity("time")
    table.append(content)
    table.append(content)
    table.delete("number = 2")
    catalogs.migrate(copy=True)
    copy = catalogs.open_target().load_table("sales.orders")
    assert copy.scan().to_arrow().sort_by("number") == table.refresh().scan().to_arrow().sort_by("number")
    assert [f.file.partition for f in sorted(copy.scan().plan_files(), key=lambda task: task.file.file_path)] == [
        f.file.partition for f in sorted(table.scan().plan_files(), key=lambda task: task.file.file_path)
    ]
    assert copy.scan("name = 'a'").to_arrow().num_rows == 2
    first = min(copy.snapshots(), key=lambda s: s.sequence_number or 0)
    assert copy.scan(snapshot_id=first.snapshot_id).to_arrow().num_rows == 3


@pytest.mark.long
def test_undo_of_a_copy_refuses_to_lose_commits(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True)
    catalogs.migrate(Action.CUT_OVER)
    catalogs.open_target().load_table("sales.orders").append(build_rows(2))
    with pytest.raises(MigrationError, match="the source cannot continue from them"):
        catalogs.migrate(Action.UNDO)
    assert count_rows(catalogs.open_target(), "sales.orders") == 8


def test_undo_of_a_copy_keeps_a_late_commit(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer of the target commits between the undo's check and the stop."""
    catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True, depth="metadata")
    catalogs.migrate(Action.CUT_OVER)
    table = catalogs.open_target().load_table("sales.orders")
    monkeypatch.setattr(RenamingMover, "stop_writers", _run_before_stop(lambda: table.append(build_rows(2))))
    with pytest.raises(MigrationError, match="the source cannot continue from them"):
        catalogs.migrate(Action.UNDO)
    assert count_rows(catalogs.open_target(), "sales.orders") == 8


def _run_before_stop(act: Callable[[], object]) -> Callable[..., None]:
    stop = RenamingMover.stop_writers

    def act_and_stop(mover: RenamingMover, identifier: Identifier) -> None:
        act()
        stop(mover, identifier)

    return act_and_stop


@pytest.mark.long
def test_undo_of_an_unchanged_copy(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True)
    catalogs.migrate(Action.CUT_OVER)
    catalogs.migrate(Action.UNDO)
    assert count_rows(catalogs.open_source(), "sales.orders") == 6
    assert catalogs.open_target().list_tables("sales") == []


@pytest.mark.long
def test_copy_needs_keys(catalogs: Catalogs) -> None:
    catalogs.add_table("sales.orders")
    warehouse = catalogs.target.warehouses[0]
    moving = Catalogs(
        catalogs.target, catalogs.source, catalogs.ledger, catalogs.sandbox, warehouse.name, catalogs.source_warehouse
    )
    catalog = open_catalog(catalogs.target, warehouse.name)
    catalog.create_namespace("ops")
    catalog.create_table("ops.runs", build_rows(1).schema)
    with pytest.raises(MigrationError, match="expected `s3_keys`"):
        moving.migrate(copy=True)


@pytest.mark.stand_in("creates a user of IAM")
def test_copy_to_another_store(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side has its own bucket and a key that the other side refuses, so the files pass through this process."""
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    old = catalogs.source.warehouses[0]
    bucket = create_bucket(project.sandbox)
    key = create_bucket_key(project.sandbox, bucket, monkeypatch)
    moved = old.model_copy(update={"location": f"s3://{bucket}/shared", "s3_keys": key})
    assert old.location
    target_key = create_bucket_key(project.sandbox, old.location.split("/")[2], monkeypatch)
    new = catalogs.target.warehouses[0].model_copy(update={"s3": old.s3, "s3_keys": target_key})
    catalogs.source = catalogs.source.model_copy(update={"warehouses": [moved]})
    catalogs.target = catalogs.target.model_copy(update={"warehouses": [new]})
    source_table = catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True)
    source_table.refresh()
    source_table.append(build_rows(2))
    rows, objects = read_rows(catalogs.open_source(), "sales.orders"), catalogs.list_objects()
    catalogs.migrate(Action.CUT_OVER)
    catalogs.migrate(Action.FINISH)
    assert read_rows(catalogs.open_target(), "sales.orders") == rows
    assert objects <= catalogs.list_objects(), "the files of the source remain"
    # The copy does not need the source's store.
    client = catalogs.connect_s3()
    for name in objects:
        client.delete_object(Bucket=bucket, Key=name)
    assert read_rows(catalogs.open_target(), "sales.orders") == rows


def test_cut_over_reads_new_manifests_alone(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writers are stopped for the last commit's files: other manifests are neither read nor planned."""
    source_table = catalogs.add_table("sales.orders")
    for count in (1, 2, 3):
        source_table.append(build_rows(count))
    catalogs.migrate(copy=True)
    read_files: list[str] = []

    def append_late() -> None:
        source_table.refresh()
        source_table.append(build_rows(4))
        read_files.clear()

    with monkeypatch.context() as patch:
        patch.setattr(RenamingMover, "stop_writers", _run_before_stop(append_late))
        patch.setattr(S3Store, "read", _count_reads(read_files))
        patch.setattr(ManifestFile, "fetch_manifest_entry", _count_manifests(read_files))
        (entry,) = catalogs.migrate(Action.CUT_OVER).entries
    manifests = [path for path in read_files if path.endswith(".avro") and "/snap-" not in path]
    assert len(manifests) == 3, "the copy reads the new manifest, and the comparison reads it on both sides"
    assert {path.rpartition("/")[2] for path in manifests} == {manifests[0].rpartition("/")[2]}
    assert entry.stopped_seconds is not None
    assert "since then 4 columns in 1 of 1 files with 4 rows" in entry.verified
    assert count_rows(catalogs.open_target(), "sales.orders") == 16


def test_rows_of_the_last_commit_are_compared(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied file of the last commit has other rows; the writers of the source continue."""
    source_table = catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True)
    source_table.refresh()
    source_table.append(build_rows(2))
    with monkeypatch.context() as patch:
        patch.setattr(S3Store, "copy", _copy_other_rows)
        with pytest.raises(MigrationError, match=r"rows of /data/.* differ"):
            catalogs.migrate(Action.CUT_OVER)
    source_table.append(build_rows(1))


def test_killed_cut_over_compares_the_state_before_later_commits(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copied file has other rows. The target's writer commits before the comparison, which a later run completes."""
    source_table = catalogs.add_table("sales.orders")
    catalogs.migrate(copy=True, depth="metadata")
    source_table.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(RenamingMover, "stop_writers", _run_before_stop(lambda: source_table.append(build_rows(2))))
        patch.setattr(S3Store, "copy", _copy_other_rows)
        patch.setattr(RenamingMover, "resume_writers", _end_process)
        patch.setattr(TableMigration, "_limit_depth", _end_process)
        with pytest.raises(KeyboardInterrupt):
            catalogs.migrate(Action.CUT_OVER)
    catalogs.open_target().load_table("sales.orders").append(build_rows(1))
    with pytest.raises(MigrationError, match=r"rows of /data/.* differ"):
        catalogs.migrate(Action.CUT_OVER)
    assert not catalogs.open_source().table_exists("sales.orders"), "the target has a commit that the source lacks"


def _end_process(*_: object) -> None:
    raise KeyboardInterrupt


def test_files_of_a_killed_copy_are_compared(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs.add_table("sales.orders")

    def copy_other_content(store: S3Store, pairs: Mapping[str, str]) -> None:
        for source, target in pairs.items():
            store.write(target, store.read(source)[::-1])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(S3Store, "copy", copy_other_content)
        with pytest.raises(KeyboardInterrupt):
            catalogs.migrate(copy=True, depth="metadata")
    with pytest.raises(MigrationError, match="found a file that differs"):
        catalogs.migrate(copy=True, depth="metadata")
    catalogs.migrate(copy=True)
    assert read_rows(catalogs.open_target(), "sales.orders") == read_rows(catalogs.open_source(), "sales.orders")


@pytest.mark.parametrize("kind", [S3Store, StorePair])
def test_copies_that_cannot_be_compared_are_deleted(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, kind: type[CopyStore]
) -> None:
    (old,) = catalogs.source.warehouses
    store = open_copy_store(old, old)
    pair = S3Store(store.source) if kind is S3Store else StorePair(store.source, store.source)
    location = f"{old.location}/files"
    for name in ("a", "b"):
        store.write(f"{location}/{name}", b"rows")
    monkeypatch.setattr(copy_stores, "read_digests", _refuse_head)
    with pytest.raises(MigrationError, match="could not be compared"):
        pair.copy({f"{location}/{name}": f"{location}/copy-{name}" for name in ("a", "b")})
    assert set(store.list_files(location)) == {f"{location}/a", f"{location}/b"}


def _refuse_head(*_: object, **__: object) -> None:
    raise PermissionError("Access Denied")


@pytest.mark.stand_in("changes the encryption of a bucket")
def test_short_copy_of_a_file_without_digest_is_refused(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source ends early, and its ETag is no digest: the sizes differ."""
    (old,) = catalogs.source.warehouses
    store = open_copy_store(old, old)
    source, target, other = (f"{old.location}/{name}" for name in ("source", "target", "other"))
    for location, content in ((source, b"rows"), (other, b"row")):
        cast(Any, store.source).pipe_file(location, content, ServerSideEncryption="aws:kms")
    stream = cast(Any, StorePair)._stream
    monkeypatch.setattr(StorePair, "_stream", lambda pair, _, path: stream(pair, other, path))
    with pytest.raises(MigrationError, match=r"expected a copy of .* with its size and checksum"):
        StorePair(store.source, store.source).copy({source: target})
    assert target not in store.list_files(str(old.location))


def _copy_other_rows(store: S3Store, pairs: Mapping[str, str]) -> None:
    """Copy files with another number in each row, which takes as many bytes."""
    for source, target in pairs.items():
        rows = pq.read_table(io.BytesIO(store.read(source)))
        numbers = pa.array([number + 1 for number in rows["number"].to_pylist()], pa.int64())
        output = io.BytesIO()
        pq.write_table(rows.set_column(0, rows.schema.field(0), numbers), output)
        store.write(target, output.getvalue())


def _count_manifests(paths: list[str]) -> Callable[..., list[ManifestEntry]]:
    fetch = ManifestFile.fetch_manifest_entry

    def count(manifest: ManifestFile, io: FileIO, discard_deleted: bool = True) -> list[ManifestEntry]:  # noqa: FBT001, FBT002  # as in PyIceberg
        paths.append(manifest.manifest_path)
        return fetch(manifest, io, discard_deleted)

    return count


@pytest.mark.stand_in("changes the encryption of a bucket")
@pytest.mark.parametrize("is_one_store", [False, True])
def test_copy_between_objects_under_kms_keys(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, *, is_one_store: bool
) -> None:
    """Their ETags are no digests: the copy of a file has another ETag."""
    (old,) = catalogs.source.warehouses
    assert old.location
    bucket = old.location.split("/")[2]
    default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}
    catalogs.connect_s3().put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [default]})
    if not is_one_store:
        key = create_bucket_key(catalogs.sandbox, bucket, monkeypatch)
        new = catalogs.target.warehouses[0].model_copy(update={"s3": old.s3, "s3_keys": key})
        catalogs.target = catalogs.target.model_copy(update={"warehouses": [new]})
    catalogs.add_table("sales.orders")
    rows = read_rows(catalogs.open_source(), "sales.orders")
    catalogs.migrate(copy=True)
    assert read_rows(catalogs.open_target(), "sales.orders") == rows


@pytest.mark.stand_in("changes the encryption of a bucket")
@pytest.mark.parametrize("algorithm", ["AES256", "aws:kms"])
@pytest.mark.parametrize("kind", [S3Store, StorePair])
def test_copy_with_other_content_is_refused(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch, kind: type[CopyStore], algorithm: str
) -> None:
    """Another file of the same size: by its checksum where the ETag is no digest, or by reading it."""
    (old,) = catalogs.source.warehouses
    store = open_copy_store(old, old)
    pair = kind(store.source) if kind is S3Store else StorePair(store.source, store.source)
    source, target, other = (f"{old.location}/{name}" for name in ("source", "target", "other"))
    options = {"ServerSideEncryption": algorithm, "ChecksumAlgorithm": "SHA256"}
    for location, content in ((source, b"rows"), (other, b"swor")):
        cast(Any, store.source).pipe_file(location, content, **options)
    monkeypatch.setattr(store.source, "copy", _copy_other_file(store.source, other))
    monkeypatch.setattr(StorePair, "_stream", _stream_other_file(other))
    with pytest.raises(MigrationError, match=r"expected a copy of .* with its size and checksum"):
        pair.copy({source: target})
    assert target not in store.list_files(str(old.location))


def _copy_other_file(files: s3fs.S3FileSystem, other: str) -> Callable[..., None]:
    def copy_other(_: list[str], targets: list[str], **__: object) -> None:
        for target in targets:
            cast(Any, files).cp_file(other, target)

    return copy_other


def _stream_other_file(other: str) -> Callable[..., str]:
    stream = cast(Any, StorePair)._stream

    def stream_other(store: StorePair, source: str, target: str) -> str:
        stream(store, other, target)
        return hashlib.md5(store.read(source), usedforsecurity=False).hexdigest()

    return stream_other


def _count_reads(paths: list[str]) -> Callable[[S3Store, str], bytes]:
    read = S3Store.read

    def count(self: S3Store, location: str) -> bytes:
        paths.append(location)
        return read(self, location)

    return count
