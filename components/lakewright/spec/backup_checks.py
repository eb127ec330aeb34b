"""Backups of deleted rows that the catalog's server would break."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakewright_spark.policies.model import PolicyPattern
from lakewright_spark.policies.server_queues import describe_lost_backups, find_server_jobs

from lakewright.spec.maintenance import MaintenanceSpec
from lakewright.spec.table import TableSpec
from lakewright.validation.problems import Path


def find_backup_mistakes(
    maintenance: MaintenanceSpec | None, tables: Sequence[TableSpec], policies: Sequence[PolicyPattern]
) -> Iterator[tuple[Path, str]]:
    """Yield backups of deleted rows of declared tables where the server deletes the files that only the backup names.

    Other tables that a pattern matches may have no such queue; the job refuses a backup when it runs.
    """
    for index, spec in enumerate(tables):
        table = spec.path
        jobs = find_server_jobs(maintenance.server_jobs(table.warehouse) if maintenance else (), spec.properties)
        retention, path = spec.policies.retention, ("tables", index, "policies", "retention", "backup")
        for number, pattern in enumerate(policies):
            matches = pattern.matches(table.warehouse, table.namespace, table.name)
            if spec.policies.retention is None and pattern.retention is not None and matches:
                retention, path = pattern.retention, ("policies", number, "retention", "backup")
        if jobs and retention is not None and retention.backup:
            yield path, f"table {table}: {describe_lost_backups(jobs)}"
