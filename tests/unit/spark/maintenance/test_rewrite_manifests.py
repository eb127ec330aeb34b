"""Manifests that are worth rewriting; a stand-in for Iceberg's table avoids a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from lakewright_spark.maintenance.jobs import rewrite_manifests
from lakewright_spark.maintenance.table.iceberg import IcebergTable
from lakewright_spark.policies.model import TablePolicies
from lakewright_spark.table_identifier import TableIdentifier

NOW = datetime(2026, 1, 10, tzinfo=UTC)
MiB = 2**20


@dataclass
class JavaIterator:
    """Iterates as a Java iterator does."""

    items: Iterator[Any]
    remaining: int

    def hasNext(self) -> bool:  # noqa: N802  # Java's name
        return self.remaining > 0

    def next(self) -> Any:
        self.remaining -= 1
        return next(self.items)


class JavaContent(str):
    """A Java enum constant."""

    def toString(self) -> str:  # noqa: N802  # Java's name
        return self


def open_table(sizes: Iterable[int]) -> IcebergTable:
    """Return a table whose current snapshot has manifests of these sizes in bytes."""
    java_manifests = [
        SimpleNamespace(content=lambda: JavaContent("DATA"), partitionSpecId=lambda: 0, length=lambda size=size: size)
        for size in sizes
    ]
    manifests = SimpleNamespace(iterator=lambda: JavaIterator(iter(java_manifests), len(java_manifests)))
    java = SimpleNamespace(
        currentSnapshot=lambda: SimpleNamespace(allManifests=lambda _: manifests),
        io=lambda: None,
        properties=dict,
    )
    spark: Any = None
    return IcebergTable(spark, TableIdentifier("w", ("a",), "t"), java)


def test_manifests_of_full_size_succeed() -> None:
    """Only successful runs count: a skipped run would be due again at once."""
    done = rewrite_manifests.run(open_table([8 * MiB] * 12), TablePolicies(), dry_run=False, now=NOW)

    assert (done.state, done.rewritten, done.added) == ("SUCCEEDED", 0, 0)
    assert done.reason == "12 manifests have the target size: their content needs at least 12"
