"""Retention of a table's snapshots: its own `history.expire.*`, then the policy, then Iceberg's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.iceberg_values import to_span
from lakewright_spark.policies.model import HistoryPolicy

MAX_AGE = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"

DEFAULT_AGE = timedelta(days=5)
"""Iceberg's own default of `history.expire.max-snapshot-age-ms`."""
DEFAULT_MIN_SNAPSHOTS = 1
"""Iceberg's own default of `history.expire.min-snapshots-to-keep`."""
LONGEST_RUN = timedelta(hours=24)
"""Time that readers and writers may take, unless the policy declares another."""


@dataclass(frozen=True)
class HistoryRules:
    """Rules for an expiration of a table. Branches and tags with their own settings keep these settings."""

    max_age: timedelta = DEFAULT_AGE
    min_snapshots: int = DEFAULT_MIN_SNAPSHOTS
    versions: int | None = None
    """At most this many snapshots of a branch; None for no limit."""
    max_ref_age: timedelta | None = None
    """None: branches and tags do not expire by themselves."""
    longest_run: timedelta = LONGEST_RUN
    """A snapshot is kept for this long after it was replaced, since a reader may have opened it until then."""

    @classmethod
    def resolve(cls, properties: Mapping[str, str], history: HistoryPolicy | None) -> HistoryRules:
        """Return the rules of a table.

        A table that declares its own age keeps every snapshot for that long, so `versions` has no effect on it.

        Raises:
            PolicyRefusedError: A property of the table is not a number.
        """
        declared_age = _number(properties, MAX_AGE)
        fewest, refs = _number(properties, MIN_SNAPSHOTS), _number(properties, MAX_REF_AGE)
        versions = history.versions if history and declared_age is None else None
        fewest = DEFAULT_MIN_SNAPSHOTS if fewest is None else max(fewest, 1)
        return cls(
            max_age=_policy_age(history) if declared_age is None else to_span(declared_age),
            min_snapshots=fewest,
            versions=None if versions is None else max(versions, fewest),
            max_ref_age=None if refs is None else to_span(refs),
            longest_run=resolve_longest_run(history),
        )


def resolve_longest_run(history: HistoryPolicy | None) -> timedelta:
    """Return the time that readers and writers of a table may take."""
    hours = history.longest_run_hours if history else None
    return LONGEST_RUN if hours is None else timedelta(hours=hours)


def history_mistakes(history: HistoryPolicy, properties: Mapping[str, str]) -> list[str]:
    """Return the conflicts of the policy with the table's own properties as sentences."""
    against = {
        MAX_AGE: [name for name in ("max_age_days", "versions") if getattr(history, name) is not None],
        MIN_SNAPSHOTS: ["versions"] if _above(properties, history.versions) else [],
    }
    return [
        f"history: `{'` and `'.join(names)}` has no effect, since the table declares `{key}`: remove one of them"
        for key, names in against.items()
        if key in properties and names
    ]


def _policy_age(history: HistoryPolicy | None) -> timedelta:
    return timedelta(days=history.max_age_days) if history and history.max_age_days else DEFAULT_AGE


def _above(properties: Mapping[str, str], versions: int | None) -> bool:
    fewest = properties.get(MIN_SNAPSHOTS, "")
    return versions is not None and fewest.isdigit() and int(fewest) > versions


def _number(properties: Mapping[str, str], key: str) -> int | None:
    text = properties.get(key)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise PolicyRefusedError(f"{key}: expected a whole number, found {text!r}; no snapshot is expired") from None
