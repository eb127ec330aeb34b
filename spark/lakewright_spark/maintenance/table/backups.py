"""Backups of deleted rows: manifests under the table's location that name files, which stay where they are.

A manifest has each data file with the delete files that applied to it, as Iceberg's own scan tasks: without those, rows
that were deleted before would come back with the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from lakewright_spark.errors import JobFailedError
from lakewright_spark.maintenance.table.iceberg import IcebergTable

FOLDER = ".backup"
VERSION = 2
"""Of a manifest's form. Earlier ones, which name no version, have data files alone."""
_SHARED = ("schema", "spec")
"""Parts of a scan task that most tasks of a table have in common."""


def manifest_path(location: str, now: datetime) -> str:
    """Where the manifest of a run is put."""
    return f"{location}/{FOLDER}/data_manifest_{int(now.timestamp() * 1000)}.json"


def manifests(opened: IcebergTable) -> list[str]:
    """Return the paths of the table's backups, the oldest first."""
    return sorted(path for path in opened.listed(f"{opened.location}/{FOLDER}/") if path.endswith(".json"))


def backed_up(opened: IcebergTable) -> frozenset[str]:
    """The data and delete files that a manifest names. A user who wants them gone deletes the manifest."""
    return frozenset(file for path in manifests(opened) for file in json.loads(opened.read(path))["files"])


def describe(opened: IcebergTable, tasks: Iterable[Any]) -> dict[str, Any]:
    """Return the manifest of these tasks of Iceberg's, one for each data file."""
    parser = opened.jvm.org.apache.iceberg.ScanTaskParser
    shared: dict[str, list[Any]] = {name: [] for name in _SHARED}
    found: list[dict[str, Any]] = []
    paths: set[str] = set()
    for one in tasks:
        task = json.loads(parser.toJson(one))
        for name in _SHARED:
            if task[name] not in shared[name]:
                shared[name].append(task[name])
            task[name] = shared[name].index(task[name])
        paths.add(one.file().location())
        paths.update(delete.location() for delete in one.deletes())
        found.append(task)
    return {
        "version": VERSION,
        "table_uuid": opened.uuid,
        "file_count": len(found),
        "files": sorted(paths),
        **shared,
        "tasks": found,
    }


def tasks_of(opened: IcebergTable, path: str, manifest: Mapping[str, Any]) -> Iterator[Any]:
    """Return Iceberg's scan tasks of a backup.

    Raises:
        JobFailedError: The manifest is of another table, or of a release that did not keep delete files.
    """
    if manifest.get("version") != VERSION:
        raise JobFailedError(
            f"backup {path}: expected version {VERSION}, found {manifest.get('version', 'none')}; earlier releases did "
            "not record which delete files apply, so deleted rows could come back"
        )
    if manifest["table_uuid"] != opened.uuid:
        raise JobFailedError(
            f"backup {path}: expected one of {opened.table} (UUID {opened.uuid}), found one of the table with UUID "
            f"{manifest['table_uuid']}"
        )
    iceberg = opened.jvm.org.apache.iceberg
    gateway: Any = opened.spark.sparkContext._gateway
    every_row = iceberg.expressions.Expressions.alwaysTrue()
    for task in manifest["tasks"]:
        shared = {name: manifest[name][task[name]] for name in _SHARED}
        parsed = iceberg.ScanTaskParser.fromJson(json.dumps({**task, **shared}), True)
        # What the parser returns counts as split already, and Spark refuses to split it once more.
        deletes = gateway.new_array(iceberg.DeleteFile, parsed.deletes().size())
        for number, delete in enumerate(parsed.deletes()):
            deletes[number] = delete
        residuals = iceberg.expressions.ResidualEvaluator.of(parsed.spec(), every_row, True)
        schema, spec = (json.dumps(shared[name]) for name in _SHARED)
        yield iceberg.BaseFileScanTask(parsed.file(), deletes, schema, spec, residuals)
