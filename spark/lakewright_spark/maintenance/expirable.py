"""Which snapshots an expiration takes, by Iceberg's rules: a pure function, so that a dry run knows it, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakewright_spark.catalog_policies import HistoryPolicy

DEFAULT_AGE = timedelta(days=3)
FLOOR = timedelta(hours=1)
"""A snapshot younger than this stays, however many there are: whoever began to read it may still do so."""


@dataclass(frozen=True)
class Snapshot:
    """One of a table's snapshots."""

    id: int
    parent: int | None
    committed_at: datetime


@dataclass(frozen=True)
class Ref:
    """A branch or a tag. What is None is as the expiration itself says."""

    name: str
    kind: str
    """BRANCH or TAG."""
    snapshot: int
    max_age: timedelta | None = None
    """After which the ref itself goes; `main` never does."""
    min_snapshots: int | None = None
    max_snapshot_age: timedelta | None = None


def expirable(
    snapshots: Iterable[Snapshot], refs: Iterable[Ref], *, older_than: datetime, retain_last: int, now: datetime
) -> set[int]:
    """The ids of those that go: no branch keeps them by number or age, no tag names them."""
    known = {one.id: one for one in snapshots}
    kept: set[int] = set()
    reachable: set[int] = set()
    for ref in refs:
        head = known[ref.snapshot]
        if ref.name != "main" and ref.max_age is not None and now - head.committed_at > ref.max_age:
            continue
        if ref.kind == "TAG":
            kept.add(head.id)
            reachable.add(head.id)
            continue
        limit = now - ref.max_snapshot_age if ref.max_snapshot_age is not None else older_than
        line = list(_line(known, head))
        reachable |= {one.id for one in line}
        fewest = ref.min_snapshots if ref.min_snapshots is not None else retain_last
        for number, one in enumerate(line):
            if number >= fewest and one.committed_at < limit:
                break
            kept.add(one.id)
    kept |= {one.id for one in known.values() if one.id not in reachable and one.committed_at >= older_than}
    return known.keys() - kept


def max_ref_age(properties: Mapping[str, str]) -> int | None:
    """Milliseconds that branches and tags last which say nothing themselves, by the table's properties."""
    text = properties.get("history.expire.max-ref-age-ms")
    return int(text) if text is not None else None


@dataclass(frozen=True)
class Step:
    """One call of an expiration: its two settings, and the ids of the snapshots that it takes."""

    older_than: datetime
    retain_last: int
    taken: frozenset[int]


def steps(
    snapshots: Iterable[Snapshot], refs: Iterable[Ref], history: HistoryPolicy | None, now: datetime
) -> list[Step]:
    """What a policy takes: past its age (default: three days), then beyond its number of versions.

    A step that takes nothing is left out. Nothing past the age is kept for its number's sake.
    """
    age = timedelta(days=history.max_age_days) if history and history.max_age_days else DEFAULT_AGE
    left, kept = list(snapshots), list(refs)
    found: list[Step] = []
    for old, number in [(age, 1), *([(FLOOR, history.versions)] if history and history.versions else [])]:
        step = Step(
            now - old, number, frozenset(expirable(left, kept, older_than=now - old, retain_last=number, now=now))
        )
        left = [one for one in left if one.id not in step.taken]
        kept = [ref for ref in kept if ref.snapshot not in step.taken]
        found += [step] if step.taken else []
    return found


def expiring(
    snapshots: Iterable[Snapshot], refs: Iterable[Ref], history: HistoryPolicy | None, now: datetime
) -> set[int]:
    """The ids of those that go by a policy."""
    return {one for step in steps(snapshots, refs, history, now) for one in step.taken}


def _line(known: Mapping[int, Snapshot], head: Snapshot) -> Iterable[Snapshot]:
    at: Snapshot | None = head
    while at is not None:
        yield at
        at = known.get(at.parent) if at.parent is not None else None
