"""Reasons to compact a table beside new rows: delete files, and changes since the last compaction. Pure functions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.rewrite_estimate import rewrites_whole_table
from lakewright_spark.policies.model import CompactionPolicy

WITH_DELETION_VECTORS = 3
"""Format version from which on position deletes are deletion vectors."""
_WITHOUT_EFFECT = {"partial_progress_commits", "max_group_size"}
"""Settings of the policy that do not decide which files are rewritten, and how."""


@dataclass(frozen=True)
class CompactionBasis:
    """Properties of a table, beside its rows, that a compaction depends on."""

    format_version: int
    partition_spec: int
    """ID of the default partition spec."""
    policy: str
    """Digest of the policy."""

    @classmethod
    def from_table(cls, facts: TableFacts, policy: CompactionPolicy) -> CompactionBasis:
        """Return the basis of a table."""
        settings = policy.model_dump(mode="json", exclude_defaults=True, exclude=_WITHOUT_EFFECT)
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        return cls(facts.format_version, facts.partition_spec, digest[:16])

    @classmethod
    def from_json(cls, basis: Mapping[str, Any]) -> CompactionBasis | None:
        """Return the basis that a run recorded; None if another release recorded another form."""
        try:
            return cls(int(basis["format_version"]), int(basis["partition_spec"]), str(basis["policy"]))
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> dict[str, Any]:
        """Return the form that `from_json` reads."""
        return asdict(self)


def find_change(
    facts: TableFacts, policy: CompactionPolicy, current: CompactionBasis, last: CompactionBasis | None
) -> str | None:
    """Return what changed since the last compaction, so that it may rewrite other files; None if nothing changed.

    Args:
        facts: Metadata of the table.
        policy: Policy of the table.
        current: Basis of a compaction now.
        last: Basis of the last compaction. None: an earlier release recorded none, so no change is known.
    """
    if last is None:
        return None
    if current.policy != last.policy:
        return "the policy changed"
    if policy.replaces_old_partitions and current.partition_spec != last.partition_spec:
        return "the default partition spec changed"
    if converts_deletes(facts, last):
        return f"the table was upgraded to format version {facts.format_version}"
    return None


def converts_deletes(facts: TableFacts, last: CompactionBasis | None) -> bool:
    """Return whether a compaction may convert position deletes to deletion vectors, which it does once."""
    is_converted = last is not None and last.format_version >= WITH_DELETION_VECTORS
    return bool(facts.delete_files) and facts.format_version >= WITH_DELETION_VECTORS and not is_converted


def find_delete_reason(facts: TableFacts, policy: CompactionPolicy) -> str | None:
    """Return which deletes of a table with few data files a compaction removes or merges; None if there are none.

    A table's totals do not show which data file has the deletes, so all deleted rows may belong to one file. The rule
    takes files to have equal numbers of rows: it may miss a file with few rows, most of which are deleted.
    """
    if not facts.delete_files:
        return None
    if facts.equality_deletes is None:
        return "delete files of an unknown kind"
    if rewrites_whole_table(facts.equality_deletes, facts.delete_files, facts.data_bytes or 0, policy):
        return "equality deletes"
    if facts.delete_files >= min(policy.delete_file_threshold, policy.min_input_files):
        return f"{facts.delete_files} delete files"
    if facts.deleted_share * max(facts.data_files or 1, 1) >= policy.delete_ratio_threshold:
        return "deleted rows"
    return None
