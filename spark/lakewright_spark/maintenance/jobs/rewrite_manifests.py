"""`rewrite-manifests`: group the table's manifests by partition, so that a reader opens fewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakewright_spark.maintenance.switches import Metrics
from lakewright_spark.maintenance.table.iceberg import IcebergTable, each
from lakewright_spark.policies.model import TablePolicies

FEWEST = 2
"""One manifest cannot be grouped any better."""


_TARGET, _TARGET_DEFAULT = "commit.manifest.target-size-bytes", 8 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class RewriteManifestsMetrics(Metrics):
    """Manifests before and after."""

    rewritten: int = 0
    added: int = 0


def run(opened: IcebergTable, policy: TablePolicies, *, dry_run: bool, now: datetime) -> RewriteManifestsMetrics:
    """Rewrite the manifests of the current snapshot; older snapshots keep theirs."""
    del policy, now  # No policy says anything of manifests.
    current = opened.java.currentSnapshot()
    manifests = list(each(current.allManifests(opened.java.io()))) if current is not None else []
    if len(manifests) < FEWEST:
        return RewriteManifestsMetrics(dry_run=dry_run)
    if len(manifests) < FEWEST * (ideal := _ideal_count(opened, manifests)):
        reason = f"{len(manifests)} manifests are of the wanted size: their content needs at least {ideal}"
        # A success, since a skipped run is not remembered: the table would be due again at once.
        return RewriteManifestsMetrics(reason=reason, dry_run=dry_run)
    if dry_run:
        return RewriteManifestsMetrics(rewritten=len(manifests), dry_run=True)
    if _fit_in_one(opened, manifests):
        one_group = opened.jvm.com.google.common.base.Functions.constant("all")
        done = opened.commit(opened.java.rewriteManifests().clusterBy(one_group))
        replaced, created = done.get("manifests-replaced", len(manifests)), done.get("manifests-created", 1)
        return RewriteManifestsMetrics(rewritten=int(replaced), added=int(created))
    row = opened.call("rewrite_manifests", use_caching="false").collect()[0]
    return RewriteManifestsMetrics(rewritten=row.rewritten_manifests_count, added=row.added_manifests_count)


def _ideal_count(opened: IcebergTable, manifests: Sequence[Any]) -> int:
    """Return how many manifests of the wanted size hold as much; deletes and each partition spec have their own."""
    sizes: Counter[tuple[str, int]] = Counter()
    for one in manifests:
        sizes[one.content().toString(), one.partitionSpecId()] += one.length()
    return sum(-(-size // _target(opened)) for size in sizes.values())


def _target(opened: IcebergTable) -> int:
    return int(opened.java.properties().get(_TARGET) or _TARGET_DEFAULT)


def _fit_in_one(opened: IcebergTable, manifests: Sequence[Any]) -> bool:
    """Whether one manifest can hold all files: then nothing is to be sorted, and no Spark job is needed."""
    spec = opened.java.spec().specId()
    return sum(one.length() for one in manifests) <= _target(opened) and all(
        one.content().toString() == "DATA" and one.partitionSpecId() == spec for one in manifests
    )
