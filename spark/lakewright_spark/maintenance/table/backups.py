"""Backups of deleted rows: manifests under the table's location that name data files, which are kept.

A manifest holds each data file with its delete files, as Iceberg's scan tasks. Without the delete files, a restore
would also bring back rows that were deleted earlier.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate

FOLDER = ".backup"
VERSION = 2
"""Version of the manifest format. Manifests without a version hold data files only."""
_MANIFEST = re.compile(r"data_manifest_(\d+)\.json(?:\.restored)?")
_CASE_SENSITIVE = True
_SHARED = ("schema", "spec")
"""Parts of a scan task that most tasks of a table share."""


def manifest_path(location: str, now: datetime) -> str:
    """Return the path of the manifest that a run writes."""
    return f"{location}/{FOLDER}/data_manifest_{int(now.timestamp() * 1000)}.json"


def list_manifests(opened: IcebergTable) -> list[str]:
    """Return the paths of the table's backups, the oldest first."""
    return sorted(path for path in opened.list_files(f"{opened.location}/{FOLDER}/") if path.endswith(".json"))


def list_backed_up_files(opened: IcebergTable) -> frozenset[str]:
    """Return the data and delete files that manifests name. To release the files, delete the manifest."""
    return frozenset(file for path in list_manifests(opened) for file in json.loads(opened.read(path))["files"])


def find_later_manifest(opened: IcebergTable, path: str, data_files: Collection[str]) -> str | None:
    """Return a manifest, restored or not, that was written after a manifest and names some of these data files."""
    names = frozenset(data_files)
    for later in sorted(filter(_match_name, opened.list_files(f"{opened.location}/{FOLDER}/"))):
        if later > path and not names.isdisjoint(json.loads(opened.read(later))["files"]):
            return later
    return None


def delete_manifests(opened: IcebergTable, older_than: datetime, *, dry_run: bool) -> int:
    """Delete the manifests that were written before an instant, restored or not, and return their number.

    Nothing refers to their files from then on, so that `orphan-files` finds them.
    """
    expired_manifests: list[str] = []
    for path in opened.list_files(f"{opened.location}/{FOLDER}/"):
        written_at = _match_name(path)
        if written_at and int(written_at[1]) < older_than.timestamp() * 1000:
            expired_manifests.append(path)
    if dry_run or not expired_manifests:
        return len(expired_manifests)
    opened.delete_files(expired_manifests)
    refused = set(expired_manifests) & set(opened.list_files(f"{opened.location}/{FOLDER}/"))
    return len(expired_manifests) - len(refused)


def _match_name(path: str) -> re.Match[str] | None:
    """Return the match of a manifest's name, restored or not; None for another file in the folder."""
    return _MANIFEST.fullmatch(path.rpartition("/")[2])


def build_manifest(opened: IcebergTable, tasks: Iterable[Any]) -> dict[str, Any]:
    """Return the manifest of these scan tasks, one for each data file."""
    parser = opened.find_class("org.apache.iceberg.ScanTaskParser")
    shared: dict[str, list[Any]] = {name: [] for name in _SHARED}
    manifest_tasks: list[dict[str, Any]] = []
    paths: set[str] = set()
    for scan_task in tasks:
        task = json.loads(parser.toJson(scan_task))
        for name in _SHARED:
            if task[name] not in shared[name]:
                shared[name].append(task[name])
            task[name] = shared[name].index(task[name])
        paths.add(scan_task.file().location())
        paths.update(delete.location() for delete in iterate(scan_task.deletes()))
        manifest_tasks.append(task)
    return {
        "version": VERSION,
        "table_uuid": opened.uuid,
        "file_count": len(manifest_tasks),
        "files": sorted(paths),
        **shared,
        "tasks": manifest_tasks,
    }


def scan_tasks(opened: IcebergTable, path: str, manifest: Mapping[str, Any]) -> Iterator[Any]:
    """Yield Iceberg's scan tasks of a backup.

    Raises:
        JobFailedError: The manifest belongs to another table, or to a release that did not record delete files.
    """
    if manifest.get("version") != VERSION:
        raise JobFailedError(
            f"backup {path}: expected version {VERSION}, found {manifest.get('version', 'none')}; earlier releases did "
            "not record delete files, so deleted rows could come back"
        )
    if manifest["table_uuid"] != opened.uuid:
        raise JobFailedError(
            f"backup {path}: expected a backup of {opened.table} (UUID {opened.uuid}), found one of UUID "
            f"{manifest['table_uuid']}"
        )
    gateway = cast(Any, opened.spark.sparkContext)._gateway
    every_row = opened.find_class("org.apache.iceberg.expressions.Expressions").alwaysTrue()
    evaluator = opened.find_class("org.apache.iceberg.expressions.ResidualEvaluator")
    parser, delete_file, scan_task = (
        opened.find_class(f"org.apache.iceberg.{name}") for name in ("ScanTaskParser", "DeleteFile", "BaseFileScanTask")
    )
    for task in manifest["tasks"]:
        shared = {name: manifest[name][task[name]] for name in _SHARED}
        parsed = parser.fromJson(json.dumps({**task, **shared}), _CASE_SENSITIVE)
        # Spark refuses to split the parser's tasks, which count as split already.
        deletes = gateway.new_array(delete_file, parsed.deletes().size())
        for number, delete in enumerate(iterate(parsed.deletes())):
            deletes[number] = delete
        residuals = evaluator.of(parsed.spec(), every_row, _CASE_SENSITIVE)
        schema, spec = (json.dumps(shared[name]) for name in _SHARED)
        yield scan_task(parsed.file(), deletes, schema, spec, residuals)
