"""What a table's metadata says, read by Iceberg's Java library in this process, without a Spark job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lakewright_spark.iceberg_time import optional_span
from lakewright_spark.maintenance.table.expirable import Ref, Snapshot
from lakewright_spark.maintenance.table.iceberg import IcebergTable, each

FEW_FILES, FEW_SNAPSHOTS = 1000, 100
"""Of a table with no more, this process reads all manifests sooner than Spark has planned to."""


@dataclass(frozen=True)
class Metadata:
    """The table's metadata file, as the specification of Iceberg's format has it."""

    opened: IcebergTable
    document: dict[str, Any]

    @classmethod
    def of(cls, opened: IcebergTable) -> Metadata:
        """As it was when the table was opened."""
        parser = opened.jvm.org.apache.iceberg.TableMetadataParser
        return cls(opened, json.loads(parser.toJson(opened.java.operations().current())))

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        return [
            Snapshot.of(one["snapshot-id"], one.get("parent-snapshot-id"), one["timestamp-ms"], one.get("summary", {}))
            for one in self._snapshots
        ]

    @property
    def refs(self) -> list[Ref]:
        return [
            Ref(
                name,
                one["type"].upper(),
                one["snapshot-id"],
                max_age=optional_span(one.get("max-ref-age-ms")),
                min_snapshots=one.get("min-snapshots-to-keep"),
                max_snapshot_age=optional_span(one.get("max-snapshot-age-ms")),
            )
            for name, one in self.document.get("refs", {}).items()
        ]

    @property
    def properties(self) -> dict[str, str]:
        return self.document.get("properties", {})

    @cached_property
    def commits(self) -> list[tuple[Snapshot, dict[str, str]]]:
        """Each snapshot, with its summary."""
        return list(zip(self.snapshots, (one.get("summary", {}) for one in self._snapshots), strict=True))

    @property
    def small(self) -> bool:
        """Whether it is known that no snapshot has many files, and that there are few snapshots."""
        sizes = [_files(summary) for _, summary in self.commits]
        return len(sizes) <= FEW_SNAPSHOTS and all(one is not None and one <= FEW_FILES for one in sizes)

    @property
    def has_deletes(self) -> bool:
        """Whether a snapshot may have delete files."""
        return any(summary.get("total-delete-files") != "0" for _, summary in self.commits)

    def referred(self) -> set[str]:
        """Every file but metadata files that a snapshot leads to; for tables that are small."""
        files = [*self.document.get("statistics", []), *self.document.get("partition-statistics", [])]
        found = {one["statistics-path"] for one in files}
        for snapshot in each(self.opened.java.snapshots()):
            found.add(snapshot.manifestListLocation())
            for manifest in each(snapshot.allManifests(self.opened.java.io())):
                if manifest.path() not in found:
                    found.add(manifest.path())
                    found.update(self._paths(manifest))
        return found

    def _paths(self, manifest: Any) -> list[str]:
        jvm, java = self.opened.jvm, self.opened.java
        paths = jvm.org.apache.iceberg.ManifestFiles.readPaths(manifest, java.io(), java.specs())
        try:
            return self.opened.texts(paths)
        finally:
            paths.close()

    @property
    def _snapshots(self) -> list[dict[str, Any]]:
        return self.document.get("snapshots", [])


def _files(summary: dict[str, str]) -> int | None:
    counts = [summary.get("total-data-files", ""), summary.get("total-delete-files", "")]
    return sum(int(one) for one in counts) if all(one.isdigit() for one in counts) else None
