"""Random changes of a table before, between and during jobs, and every file that it references."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from tests.spark.maintenance.conftest import Maintained, s3

STEPS = ("append", "overwrite", "delete", "branch", "tag", "write branch", "roll back", "fail")
MEANWHILE = ("nothing", "append", "append and tag", "begin and end")
"""Changes by another process while a job runs; `begin and end` is a write that takes longer than the job."""

ROWS = pa.schema([pa.field("n", pa.int32())])


@dataclass
class TableHistory:
    """A table and a second client that is independent of jobs and of Spark's caches."""

    table: Maintained
    config: CatalogConfig
    uncommitted_writes: list[tuple[int, Sequence[DataFile]]] = field(default_factory=list)
    """Uncommitted writes: their row and their files."""
    added: list[int] = field(default_factory=list)
    """Rows that were committed to `main` during jobs."""
    _rows: Iterator[int] = field(default_factory=lambda: count(10_000))
    _manifests: dict[str, set[str]] = field(default_factory=dict)
    """Files that each manifest references."""

    @property
    def other(self) -> Table:
        """Load the current table through a separate catalog client."""
        name = self.table.table
        return open_catalog(self.config, name.warehouse).load_table((*name.namespace, name.name))

    def take(self, step: str, number: int) -> None:
        """Apply one step; a step whose target does not exist does nothing."""
        table = self.table
        table.spark.catalog.refreshTable(table.sql)  # Spark caches the table as it was before the other client's commit
        if step == "append":
            self.other.append(_frame(number, number + 100))
        elif step == "overwrite":
            table.do(f"INSERT OVERWRITE THIS VALUES ({number})")
        elif step == "delete":
            table.do(f"DELETE FROM THIS WHERE n >= 100 AND n < {100 + number}")
        elif step in {"branch", "tag"}:
            table.do(f"ALTER TABLE THIS CREATE {step} {step}_{number}")
        elif step == "fail":
            self.fail(number)
        elif step == "write branch":
            branches = sorted(table.column("SELECT name FROM THIS.refs WHERE type = 'BRANCH' AND name <> 'main'"))
            if branches:
                table.do(f"INSERT INTO THIS.branch_{branches[-1]} VALUES ({1000 + number})")
        else:
            line = table.column(
                "SELECT snapshot_id FROM THIS.history WHERE is_current_ancestor ORDER BY made_current_at"
            )
            if len(line) > 1:
                name, sql = table.table, "CALL {}.system.rollback_to_snapshot({}, {})"
                table.do(sql.format(name.warehouse, name.argument, line[-2]))

    def fail(self, number: int) -> None:
        """Create the data file and the manifest of a write that failed before its commit."""
        bucket, prefix = self.table.bucket_and_prefix
        for path in (f"data/lost-{number}.parquet", f"metadata/lost-{number}-m0.avro"):
            s3(self.table.sandbox).put_object(Bucket=bucket, Key=prefix + path, Body=b"lost")

    def lost_files(self) -> list[str]:
        return [path for path in self.table.objects() if "/lost-" in path]

    def begin(self) -> None:
        """Write the files of a write without committing it."""
        row, table = next(self._rows), self.other
        self.uncommitted_writes.append((row, list(_dataframe_to_data_files(table.metadata, _frame(row), table.io))))

    def end(self) -> None:
        """Commit the oldest uncommitted write."""
        row, files = self.uncommitted_writes.pop(0)

        def commit(table: Table) -> None:
            with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
                for file in files:
                    append.append_data_file(file)

        self._commit_with_retries(commit)
        self.added.append(row)

    def append(self) -> None:
        row = next(self._rows)
        self._commit_with_retries(lambda table: table.append(_frame(row)))
        self.added.append(row)

    @contextmanager
    def change_concurrently(self, change: str) -> Iterator[None]:
        """Change the table from another thread until the block ends."""
        over, failures = threading.Event(), list[BaseException]()

        def work() -> None:
            try:
                if change == "begin and end":
                    self.begin()
                    over.wait()
                    self.end()
                for number in range(6):
                    if over.is_set() or not change.startswith("append"):
                        break
                    self.append()
                    if number == 0 and change.endswith("tag"):
                        newest = self.other
                        tag = newest.manage_snapshots().create_tag(
                            newest.metadata.current_snapshot_id, f"t{self.added[-1]}"
                        )
                        tag.commit()
            except BaseException as error:
                failures.append(error)
                raise

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        assert not failures, failures

    def list_referenced_files(self) -> set[str]:
        """Return every file that the current metadata references, by snapshots, refs and the metadata log."""
        table = self.other
        paths = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
        for snapshot in table.metadata.snapshots:
            paths.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                manifest_files = self._manifests.get(manifest.manifest_path)
                if manifest_files is None:
                    entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                    manifest_files = {manifest.manifest_path, *(entry.data_file.file_path for entry in entries)}
                    self._manifests[manifest.manifest_path] = manifest_files
                paths |= manifest_files
        return paths

    def list_uncommitted_files(self) -> set[str]:
        return {file.file_path for _, files in self.uncommitted_writes for file in files}

    def rows(self, ref: str) -> list[int]:
        """Return the rows of a branch or tag, as the other client reads them."""
        table = self.other
        return sorted(table.scan(snapshot_id=table.metadata.refs[ref].snapshot_id).to_arrow()["n"].to_pylist())

    def refs(self) -> set[str]:
        return set(self.other.metadata.refs)

    def _commit_with_retries(self, commit: Any) -> None:
        """Retry a commit that conflicts, as any writer does."""
        for attempt in range(20):
            try:
                commit(self.other)
            except CommitFailedException:
                if attempt == 19:
                    raise
            else:
                return


@dataclass
class FileComparison:
    """Compares every object before and after a job."""

    history: TableHistory
    before: dict[str, str] = field(default_factory=dict)
    referred: set[str] = field(default_factory=set)

    def look(self) -> None:
        self.before, self.referred = self.history.table.objects(), self.history.list_referenced_files()

    def compare(self, job: str) -> None:
        """Check that referenced files exist, no file changed, and only files that the job may delete are gone."""
        uncommitted = self.history.list_uncommitted_files()
        referred = (
            self.history.list_referenced_files()
        )  # before the listing: only jobs delete files, and the job has ended
        now = self.history.table.objects()
        assert referred | uncommitted <= now.keys(), job
        changed = {path for path in self.before.keys() & now.keys() if self.before[path] != now[path]}
        assert not changed, job
        deleted = self.before.keys() - now.keys()
        if job == "snapshot-expiration":
            assert deleted <= self.referred, "only files of expired snapshots"
        elif job == "staged-files":
            assert not deleted & self.referred
        elif job != "maintain":  # which runs all jobs
            assert not deleted, f"{job} deletes no file"
        self.before, self.referred = now, referred


def _frame(*rows: int) -> pa.Table:
    return pa.table({"n": pa.array(rows, pa.int32())}, schema=ROWS)
