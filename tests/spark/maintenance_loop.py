"""Maintenance beside a migration: the jobs that delete files, on the tables of several warehouses in turns."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import NoSuchResultError
from lakewright_spark.maintenance.job_runner import run_job
from lakewright_spark.maintenance.jobs.snapshot_expiration import SnapshotExpirationMetrics
from lakewright_spark.migration.fence import FENCE
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.pyiceberg_client.catalog import list_namespaces, open_catalog
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyspark.sql import SparkSession
from waiting import wait_until

DELETING_JOBS: list[JobName] = ["snapshot-expiration", "orphan-files", "staged-files"]
MOST_TABLES = 20
"""Tables of a namespace in each turn."""


class MaintenanceLoop:
    """A thread with maintenance, until the end of the `with` block, which raises the thread's errors.

    A job that does not skip a fenced table is an error.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouses: list[tuple[CatalogConfig, str]],
        fenced_days: int,
        other_days: int = 0,
    ) -> None:
        """Maintain fenced tables and other tables as if it were these numbers of days later.

        Iceberg deletes no orphan files of the last 24 hours, whatever the time: that job of other tables runs now.
        """
        self._spark, self._warehouses = spark, warehouses
        self._days = {True: fenced_days, False: other_days}
        self.states: Counter[tuple[str, str]] = Counter()
        """Number of jobs by warehouse and state."""
        self.expired_snapshots: Counter[str] = Counter()
        """Number of snapshots by warehouse that were old enough, and are expired."""
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="maintenance")

    def __enter__(self) -> Self:
        self._result = self._pool.submit(self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._pool.shutdown()
        if error is None:
            self._result.result()

    def wait_for_fenced_tables(self, seconds: float) -> None:
        """Wait until a job has skipped a fenced table of each warehouse from now on."""
        before = self.states.copy()
        keys = [(name, "SKIPPED") for _, name in self._warehouses]
        wait_until(lambda: self._result.done() or all(self.states[key] > before[key] for key in keys), seconds)
        if self._result.done():
            self._result.result()

    def wait_for_expired_snapshots(self, warehouses: list[str], seconds: float) -> None:
        """Wait until a job has expired a snapshot of each warehouse."""
        wait_until(lambda: self._result.done() or all(self.expired_snapshots[name] for name in warehouses), seconds)
        if self._result.done():
            self._result.result()

    def _run(self) -> None:
        for config, warehouse in itertools.cycle(self._warehouses):
            if self._stopped.is_set():
                return
            catalog = open_catalog(config, warehouse)
            for namespace in list_namespaces(catalog):
                names = [identifier[-1] for identifier in catalog.list_tables(namespace)]
                for name, job in itertools.product(names[:: len(names) // MOST_TABLES + 1], DELETING_JOBS):
                    if self._stopped.is_set():
                        return
                    self._maintain(catalog, TableIdentifier(warehouse, namespace, name), job)

    def _maintain(self, catalog: Catalog, table: TableIdentifier, job: JobName) -> None:
        try:
            is_fenced = _is_fenced(catalog, table)
            days = self._days[is_fenced] if is_fenced or job != "orphan-files" else 0
            now = datetime.now(UTC) + timedelta(days=days)
            metrics = run_job(job, self._spark, table, TablePolicies(), dry_run=False, now=now)
            if is_fenced and metrics.state != "SKIPPED" and _is_fenced(catalog, table):
                raise AssertionError(f"{job} of the fenced table {table}: {metrics.state}")
        except (NoSuchTableError, NoSuchResultError):  # a cut-over gives tables another name
            return
        self.states[table.warehouse, metrics.state] += 1
        if isinstance(metrics, SnapshotExpirationMetrics):
            self.expired_snapshots[table.warehouse] += metrics.snapshots


def _is_fenced(catalog: Catalog, table: TableIdentifier) -> bool:
    return FENCE in catalog.load_table((*table.namespace, table.name)).properties
