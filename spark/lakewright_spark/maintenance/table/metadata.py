"""Metadata of an opened table, read through Iceberg's Java library without a Spark job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lakewright_spark.iceberg_values import optional_span
from lakewright_spark.maintenance.table.expiration import Ref, Snapshot, add_departures
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate

SMALL_FILES, SMALL_SNAPSHOTS = 1000, 100
"""Limits of a small table, whose manifests this process reads faster than Spark plans to."""


@dataclass(frozen=True)
class Metadata:
    """The table's metadata file, in the format of Iceberg's specification."""

    opened: IcebergTable
    document: dict[str, Any]

    @classmethod
    def read(cls, opened: IcebergTable) -> Metadata:
        """Return the metadata as of when the table was opened."""
        parser = opened.find_class("org.apache.iceberg.TableMetadataParser")
        return cls(opened, json.loads(parser.toJson(opened.java.operations().current())))

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """All snapshots."""
        snapshots = [
            Snapshot.from_fields(
                raw["snapshot-id"], raw.get("parent-snapshot-id"), raw["timestamp-ms"], raw.get("summary", {})
            )
            for raw in self._snapshots
        ]
        log = [(entry["snapshot-id"], entry["timestamp-ms"]) for entry in self.document.get("snapshot-log", [])]
        return add_departures(snapshots, self.refs, log, self.document["last-updated-ms"])

    @property
    def refs(self) -> list[Ref]:
        """Branches and tags."""
        return [
            Ref(
                name,
                raw["type"].upper(),
                raw["snapshot-id"],
                max_age=optional_span(raw.get("max-ref-age-ms")),
                min_snapshots=raw.get("min-snapshots-to-keep"),
                max_snapshot_age=optional_span(raw.get("max-snapshot-age-ms")),
            )
            for name, raw in self.document.get("refs", {}).items()
        ]

    @property
    def properties(self) -> dict[str, str]:
        """Table properties."""
        return self.document.get("properties", {})

    @cached_property
    def commits(self) -> list[tuple[Snapshot, dict[str, str]]]:
        """Each snapshot with its summary."""
        return list(zip(self.snapshots, (raw.get("summary", {}) for raw in self._snapshots), strict=True))

    @property
    def is_small(self) -> bool:
        """Return whether the table is known to have few snapshots, each of few files."""
        sizes = [_files(summary) for _, summary in self.commits]
        return len(sizes) <= SMALL_SNAPSHOTS and all(size is not None and size <= SMALL_FILES for size in sizes)

    @property
    def earlier_files(self) -> set[str]:
        """Return the current metadata file and the earlier metadata files that the log has."""
        location = str(self.opened.java.operations().current().metadataFileLocation())
        return {location, *(entry["metadata-file"] for entry in self.document.get("metadata-log", []))}

    @property
    def has_deletes(self) -> bool:
        """Return whether some snapshot may have delete files."""
        return any(summary.get("total-delete-files") != "0" for _, summary in self.commits)

    def list_referenced_files(self) -> set[str]:
        """Return every file that a snapshot refers to, for small tables. Metadata files are left out."""
        files = [*self.document.get("statistics", []), *self.document.get("partition-statistics", [])]
        paths = {file["statistics-path"] for file in files}
        for snapshot in iterate(self.opened.java.snapshots()):
            paths.add(snapshot.manifestListLocation())
            for manifest in iterate(snapshot.allManifests(self.opened.java.io())):
                if manifest.path() not in paths:
                    paths.add(manifest.path())
                    paths.update(self._paths(manifest))
        return paths

    def _paths(self, manifest: Any) -> list[str]:
        java, reader = self.opened.java, self.opened.find_class("org.apache.iceberg.ManifestFiles")
        paths = reader.readPaths(manifest, java.io(), java.specs())
        try:
            return self.opened.to_strings(paths)
        finally:
            paths.close()

    @property
    def _snapshots(self) -> list[dict[str, Any]]:
        return self.document.get("snapshots", [])


def _files(summary: dict[str, str]) -> int | None:
    counts = [summary.get("total-data-files", ""), summary.get("total-delete-files", "")]
    return sum(int(count) for count in counts) if all(count.isdigit() for count in counts) else None
