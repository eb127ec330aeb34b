"""Runs that other runners completed since this runner made its plan, from the new rows of `ops.job_runs`."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntryStatus
from pyiceberg.table import DataScan, FileScanTask, Table
from pyiceberg.table.snapshots import Operation, Snapshot

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.pyiceberg_client.read_errors import is_damage
from lakewright_spark.scheduler.run_log.job_runs import NAME
from lakewright_spark.scheduler.run_log.ops_tables import find_table
from lakewright_spark.scheduler.run_log.records import KILLED, TIMED_OUT, RunState

_COLUMNS = ("table_uuid", "job", "state", "started_at", "metrics")


class CompletedRuns:
    """Jobs that ended since the object was created, by UUID of the table and name. Each new file is read once.

    Only files that appends added count: compaction, which runs at the same time, writes old rows again.
    """

    def __init__(self, config: CatalogConfig, warehouse: str, catalog: Catalog) -> None:
        """Start at the current state of the table.

        Raises:
            LakewrightSparkError: The table cannot be read.
        """
        self._config, self._warehouse, self._catalog = config, warehouse, catalog
        self._seen: set[int] = set()
        """Snapshots by ID: a commit that was repeated after a conflict may have an older sequence number."""
        self._ended: set[tuple[str, str]] = set()
        with self._explain_errors():
            if table := find_table(catalog, NAME):
                self._seen = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}

    def __contains__(self, run: tuple[str, str]) -> bool:
        """Return whether the job of the table ended, as of the last `refresh`."""
        return run in self._ended

    def refresh(self) -> None:
        """Read the files that were added since the last call.

        A job has to run again if it killed its runner, or was cancelled before its time limit.

        Raises:
            LakewrightSparkError: The table cannot be read.
        """
        with self._explain_errors():
            self._read_new_files()

    @contextmanager
    def _explain_errors(self) -> Generator[None, None, None]:
        """Ignore a damaged table: jobs that other runners completed may run once more."""
        with explain_errors(self._config, self._warehouse, f"ops.{NAME}"):
            try:
                yield
            except Exception as error:
                if not is_damage(error):
                    raise

    def _read_new_files(self) -> None:
        if (table := find_table(self._catalog, NAME)) is None:
            return
        new = [snapshot for snapshot in table.metadata.snapshots if snapshot.snapshot_id not in self._seen]
        tasks = [FileScanTask(file) for snapshot in new for file in _list_appended_files(table, snapshot)]
        if tasks:
            scan = DataScan(table_metadata=table.metadata, io=table.io, selected_fields=_COLUMNS)
            reader = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
            for row in reader.to_table(tasks).to_pylist():
                if row["started_at"] is not None and _is_completed(RunState(row["state"]), json.loads(row["metrics"])):
                    self._ended.add((row["table_uuid"], row["job"]))
        self._seen |= {snapshot.snapshot_id for snapshot in new}


def _is_completed(state: RunState, metrics: Mapping[str, Any]) -> bool:
    if state is RunState.CANCELLED:
        return bool(metrics.get(TIMED_OUT))
    return state.has_ended and not metrics.get(KILLED)


def _list_appended_files(table: Table, snapshot: Snapshot) -> Iterator[DataFile]:
    """Yield the data files that a snapshot appended. The manifests of a later snapshot may not say so: they merge."""
    if snapshot.summary is None or snapshot.summary.operation is not Operation.APPEND:
        return
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in manifest.fetch_manifest_entry(table.io):
            if entry.status == ManifestEntryStatus.ADDED and entry.data_file.content == DataFileContent.DATA:
                yield entry.data_file
