"""Which snapshots an expiration takes, by Iceberg's rules: a pure function, so that a dry run knows it, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakewright_spark.iceberg_time import before, instant_of
from lakewright_spark.policies.history_rules import HistoryRules

FLOOR = timedelta(hours=1)
"""A snapshot younger than this stays, however many there are: whoever began to read it may still do so."""


@dataclass(frozen=True)
class Snapshot:
    """One of a table's snapshots."""

    id: int
    parent: int | None
    committed_at: datetime
    wap_id: str | None = None
    """Of a write that is audited before it is published: under this id it was staged."""
    published_wap_id: str | None = None
    """The staged write that this snapshot has published."""

    @classmethod
    def of(cls, number: int, parent: int | None, milliseconds: int, summary: Mapping[str, str]) -> Snapshot:
        """Return the snapshot that a table's metadata describes."""
        staged, published = summary.get("wap.id"), summary.get("published-wap-id")
        return cls(number, parent, instant_of(milliseconds), staged, published)


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
    snapshots: Iterable[Snapshot],
    refs: Iterable[Ref],
    *,
    older_than: datetime,
    retain_last: int,
    now: datetime,
    max_ref_age: timedelta | None = None,
) -> set[int]:
    """The ids of those that go: no branch keeps them by number or age, no tag names them."""
    known = {one.id: one for one in snapshots}
    kept: set[int] = set()
    reachable: set[int] = set()
    for ref in refs:
        head = known[ref.snapshot]
        longest = ref.max_age if ref.max_age is not None else max_ref_age
        if ref.name != "main" and longest is not None and now - head.committed_at > longest:
            continue
        if ref.kind == "TAG":
            kept.add(head.id)
            reachable.add(head.id)
            continue
        limit = before(now, ref.max_snapshot_age) if ref.max_snapshot_age is not None else older_than
        line = list(_line(known, head))
        reachable |= {one.id for one in line}
        fewest = ref.min_snapshots if ref.min_snapshots is not None else retain_last
        for number, one in enumerate(line):
            if number >= fewest and one.committed_at < limit:
                break
            kept.add(one.id)
    kept |= {one.id for one in known.values() if one.id not in reachable and one.committed_at >= older_than}
    return known.keys() - kept


def staged(snapshots: Iterable[Snapshot], refs: Iterable[Ref]) -> set[int]:
    """Return the ids of staged writes that still wait to be published: no branch has them or a copy of them."""
    known = {one.id: one for one in snapshots}
    reachable = [one for ref in refs for one in _line(known, known[ref.snapshot])]
    published = {one.published_wap_id for one in reachable} | {one.wap_id for one in reachable}
    return {one.id for one in known.values() if one.wap_id is not None and one.wap_id not in published}


@dataclass(frozen=True)
class Step:
    """One call of an expiration: its two settings, and the ids of the snapshots that it takes."""

    older_than: datetime
    retain_last: int
    taken: frozenset[int]
    named: bool = False
    """Whether the snapshots are named one by one, since the settings alone would take others as well."""


def steps(snapshots: Iterable[Snapshot], refs: Iterable[Ref], rules: HistoryRules, now: datetime) -> list[Step]:
    """Return what the rules take: first by age, then beyond the number of versions.

    A step that takes nothing is left out. A staged write that waits to be published goes by its age alone.
    """
    left, kept = list(snapshots), list(refs)
    found: list[Step] = []
    by_age = before(now, rules.max_age)
    limits = [(by_age, rules.min_snapshots)]
    if rules.versions is not None:
        limits.append((now - FLOOR, rules.versions))
    for limit, number in limits:
        taken = expirable(left, kept, older_than=limit, retain_last=number, now=now, max_ref_age=rules.max_ref_age)
        spared = taken & staged(left, kept) if limit != by_age else set[int]()
        step = Step(by_age if spared else limit, number, frozenset(taken - spared), named=bool(spared))
        left = [one for one in left if one.id not in step.taken]
        kept = [ref for ref in kept if ref.snapshot not in step.taken]
        found += [step] if step.taken else []
    return found


def expiring(snapshots: Iterable[Snapshot], refs: Iterable[Ref], rules: HistoryRules, now: datetime) -> set[int]:
    """The ids of those that go by these rules."""
    return {one for step in steps(snapshots, refs, rules, now) for one in step.taken}


def _line(known: Mapping[int, Snapshot], head: Snapshot) -> Iterable[Snapshot]:
    at: Snapshot | None = head
    while at is not None:
        yield at
        at = known.get(at.parent) if at.parent is not None else None
