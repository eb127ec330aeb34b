"""Backups of deleted rows: manifests under the table's location that name data files, which stay where they are."""

from __future__ import annotations

import json
from datetime import datetime

from lakewright_spark.maintenance.iceberg import IcebergTable

FOLDER = ".backup"


def manifest_path(location: str, now: datetime) -> str:
    """Where the manifest of a run is put."""
    return f"{location}/{FOLDER}/data_manifest_{int(now.timestamp() * 1000)}.json"


def backed_up(opened: IcebergTable) -> frozenset[str]:
    """The data files that a manifest of the table names. Whoever wants them gone deletes the manifest."""
    manifests = [path for path in opened.listed(f"{opened.location}/{FOLDER}/") if path.endswith(".json")]
    return frozenset(file for path in manifests for file in json.loads(opened.read(path))["files"])
