"""Snapshots that an expiration removes, by Iceberg's rules. Pure functions, so that dry runs and plans use them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from lakewright_spark.iceberg_values import subtract_span, to_instant
from lakewright_spark.policies.history_rules import DEFAULT_AGE, HistoryRules

_NO_REFS: Mapping[int, datetime] = {}


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a table."""

    id: int
    parent: int | None
    committed_at: datetime
    wap_id: str | None = None
    """ID of a staged write, which is audited before it is published."""
    published_wap_id: str | None = None
    """ID of the staged write that this snapshot published."""
    stream_query: str | None = None
    """ID of the streaming query that committed it."""
    left_main_at: datetime | None = None
    """When another snapshot became the current snapshot in its place, for example by a rollback."""
    is_rewrite: bool = False
    """Whether it only rewrote files (operation `replace`), such as a compaction."""

    @classmethod
    def from_fields(cls, number: int, parent: int | None, milliseconds: int, summary: Mapping[str, str]) -> Snapshot:
        """Return a snapshot from the fields of a table's metadata."""
        staged, published = summary.get("wap.id"), summary.get("published-wap-id")
        query = summary.get("spark.sql.streaming.queryId")
        is_rewrite = summary.get("operation") == "replace"
        return cls(number, parent, to_instant(milliseconds), staged, published, query, is_rewrite=is_rewrite)


def find_departures(
    snapshot_log: Iterable[tuple[int, int]], *, emptied: Iterable[int] = (), emptied_at: int = 0
) -> dict[int, datetime]:
    """Return when each snapshot was replaced as the current snapshot, by its ID.

    Args:
        snapshot_log: ID and milliseconds of each change of the current snapshot, the oldest first.
        emptied: IDs of the snapshots of a table without a current snapshot. `CREATE OR REPLACE TABLE` without rows
            leaves such a table, and some servers clear the log then.
        emptied_at: Milliseconds of the last change of that table, since its replacement has no time of its own.
    """
    departures = dict.fromkeys(emptied, to_instant(emptied_at))
    return departures | {
        earlier: to_instant(milliseconds) for (earlier, _), (_, milliseconds) in pairwise(snapshot_log)
    }


def add_departures(
    snapshots: Sequence[Snapshot], refs: Sequence[Ref], snapshot_log: Iterable[tuple[int, int]], updated_at: int
) -> list[Snapshot]:
    """Return the snapshots with the time at which another snapshot replaced them as the current snapshot.

    Args:
        snapshots: The table's snapshots, without these times.
        refs: Its branches and tags.
        snapshot_log: ID and milliseconds of each change of the current snapshot, the oldest first.
        updated_at: Milliseconds of the last change of the table.
    """
    emptied: set[int] = set()
    if all(ref.name != "main" for ref in refs):
        # Snapshots of other branches and staged writes are kept by other rules, and their commits change the table.
        by_id = {snapshot.id: snapshot for snapshot in snapshots}
        reachable = {ancestor.id for ref in refs for ancestor in list_ancestors(by_id, by_id[ref.snapshot])}
        emptied = {snapshot.id for snapshot in snapshots if snapshot.wap_id is None} - reachable
    departures = find_departures(snapshot_log, emptied=emptied, emptied_at=updated_at)
    return [replace(snapshot, left_main_at=departures.get(snapshot.id)) for snapshot in snapshots]


@dataclass(frozen=True)
class Ref:
    """A branch or a tag. None: the setting of the expiration applies."""

    name: str
    kind: str
    """BRANCH or TAG."""
    snapshot: int
    max_age: timedelta | None = None
    """Age at which the ref itself expires; `main` never does."""
    min_snapshots: int | None = None
    max_snapshot_age: timedelta | None = None


def find_expirable_snapshots(
    snapshots: Iterable[Snapshot],
    refs: Iterable[Ref],
    *,
    older_than: datetime,
    retain_last: int,
    now: datetime,
    max_ref_age: timedelta | None = None,
) -> set[int]:
    """Return the IDs of snapshots that no branch keeps by number or age and no tag refers to."""
    by_id = {snapshot.id: snapshot for snapshot in snapshots}
    retained_ids: set[int] = set()
    reachable: set[int] = set()
    for ref in refs:
        head = by_id[ref.snapshot]
        longest = ref.max_age if ref.max_age is not None else max_ref_age
        if ref.name != "main" and longest is not None and now - head.committed_at > longest:
            continue
        if ref.kind == "TAG":
            retained_ids.add(head.id)
            reachable.add(head.id)
            continue
        limit = subtract_span(now, ref.max_snapshot_age) if ref.max_snapshot_age is not None else older_than
        line = list(list_ancestors(by_id, head))
        reachable |= {snapshot.id for snapshot in line}
        fewest = ref.min_snapshots if ref.min_snapshots is not None else retain_last
        for number, snapshot in enumerate(line):
            if number >= fewest and snapshot.committed_at < limit:
                break
            retained_ids.add(snapshot.id)
    unreachable = [snapshot for snapshot in by_id.values() if snapshot.id not in reachable]
    retained_ids |= {snapshot.id for snapshot in unreachable if snapshot.committed_at >= older_than}
    return by_id.keys() - retained_ids


def find_staged_writes(snapshots: Iterable[Snapshot], refs: Iterable[Ref]) -> set[int]:
    """Return the IDs of staged writes that are not published: no branch has them or a copy of them."""
    by_id = {snapshot.id: snapshot for snapshot in snapshots}
    reachable = [ancestor for ref in refs for ancestor in list_ancestors(by_id, by_id[ref.snapshot])]
    published = {snapshot.published_wap_id for snapshot in reachable} | {snapshot.wap_id for snapshot in reachable}
    staged = [snapshot for snapshot in by_id.values() if snapshot.wap_id is not None]
    return {snapshot.id for snapshot in staged if snapshot.wap_id not in published}


def find_streamed_commits(snapshots: Iterable[Snapshot], refs: Iterable[Ref], since: datetime) -> set[int]:
    """Return the IDs of the snapshots of `main` since the last commit of each streaming query.

    Queries without a commit since an instant count as ended; `main` would otherwise keep all snapshots after a query.

    A query that starts again after a crash finds its last batch by the parents of the current snapshot (Iceberg's
    `SparkWrite`). If one of them has expired, the query writes a batch again that its checkpoint does not have.
    """
    by_id = {snapshot.id: snapshot for snapshot in snapshots}
    head = next((by_id[ref.snapshot] for ref in refs if ref.name == "main"), None)
    if head is None:
        return set()
    line = list(list_ancestors(by_id, head))
    last_commits: dict[str, int] = {}
    for number, snapshot in enumerate(line):
        if snapshot.stream_query is not None and snapshot.committed_at >= since:
            last_commits.setdefault(snapshot.stream_query, number)
    return {snapshot.id for snapshot in line[: max(last_commits.values(), default=-1) + 1]}


@dataclass(frozen=True)
class ExpirationStep:
    """One call of an expiration: its two settings, and the IDs of the snapshots that it removes."""

    older_than: datetime
    retain_last: int
    expired: frozenset[int]
    is_explicit: bool = False
    """Whether the call names each snapshot, since the settings alone would remove others as well."""


def plan_expiration(
    snapshots: Iterable[Snapshot],
    refs: Iterable[Ref],
    rules: HistoryRules,
    now: datetime,
    removed_refs: Mapping[int, datetime] = _NO_REFS,
) -> list[ExpirationStep]:
    """Return the steps of an expiration: first by age, then by number of versions.

    Steps without snapshots are left out. Unpublished staged writes, and the commits since the last commit of each
    streaming query, expire by age only. Snapshots that readers may
    still have open are kept, except on branches with an age of their own: Iceberg expires these by that age in each
    call, also the snapshot of a removed tag.

    Args:
        snapshots: The table's snapshots.
        refs: Its branches and tags that are not past their age.
        rules: The rules of the table.
        now: The time (UTC).
        removed_refs: When a branch or tag at a snapshot was removed, by the ID of the snapshot.
    """
    remaining_snapshots, refs = list(snapshots), list(refs)
    steps: list[ExpirationStep] = []
    opened_since = subtract_span(now, rules.longest_run)
    in_use = {number for number, removed_at in removed_refs.items() if removed_at > opened_since}
    for_readers = _find_limit_for_readers(remaining_snapshots, opened_since)
    by_age = min(subtract_span(now, rules.max_age), for_readers)
    streaming_since = subtract_span(now, min(rules.max_age, DEFAULT_AGE))
    limits = [(by_age, rules.min_snapshots)]
    if rules.versions is not None:
        limits.append((for_readers, rules.versions))
    for limit, number in limits:
        expired = find_expirable_snapshots(remaining_snapshots, refs, older_than=limit, retain_last=number, now=now)
        spared_ids = set(in_use)
        if limit != by_age:
            spared_ids |= find_staged_writes(remaining_snapshots, refs)
            spared_ids |= find_streamed_commits(remaining_snapshots, refs, streaming_since)
        is_explicit = bool(expired & spared_ids)
        # A call that names its snapshots expires no others by age, except on branches with an age of their own.
        older_than = min(snapshot.committed_at for snapshot in remaining_snapshots) if is_explicit else limit
        step = ExpirationStep(older_than, number, frozenset(expired - spared_ids), is_explicit)
        remaining_snapshots = [snapshot for snapshot in remaining_snapshots if snapshot.id not in step.expired]
        steps += [step] if step.expired else []
    return steps


def find_expired_snapshots(
    snapshots: Iterable[Snapshot],
    refs: Iterable[Ref],
    rules: HistoryRules,
    now: datetime,
    removed_refs: Mapping[int, datetime] = _NO_REFS,
) -> set[int]:
    """Return the IDs of the snapshots that expire by these rules."""
    steps = plan_expiration(snapshots, refs, rules, now, removed_refs)
    return {snapshot for step in steps for snapshot in step.expired}


def _find_limit_for_readers(snapshots: Sequence[Snapshot], opened_since: datetime) -> datetime:
    """Return the instant before which no snapshot was committed that a reader may have opened since then.

    Iceberg expires by the age of snapshots, and an old snapshot may have been the newest until a minute ago.
    """
    replaced_since = {snapshot.parent for snapshot in snapshots if snapshot.committed_at > opened_since}
    in_use = (
        snapshot.committed_at
        for snapshot in snapshots
        if snapshot.id in replaced_since or (snapshot.left_main_at is not None and snapshot.left_main_at > opened_since)
    )
    return min([opened_since, *in_use, *_find_replaced_tables(snapshots, opened_since)])


def _find_replaced_tables(snapshots: Sequence[Snapshot], opened_since: datetime) -> Iterable[datetime]:
    """Yield the commit times of the snapshots before a replacement of the whole table since an instant.

    The first snapshot after `CREATE OR REPLACE TABLE` has no parent, and some servers (iceberg-rust, Lakekeeper) clear
    the snapshot log, so any earlier snapshot may have been current until then. Snapshots before an earlier replacement
    were not, or a table that is replaced every hour would keep all its snapshots.
    """
    replaced_at = sorted(snapshot.committed_at for snapshot in snapshots if snapshot.parent is None)
    for snapshot in snapshots:
        number = bisect_right(replaced_at, snapshot.committed_at)
        if number < len(replaced_at) and replaced_at[number] > opened_since:
            yield snapshot.committed_at


def list_ancestors(by_id: Mapping[int, Snapshot], head: Snapshot) -> Iterable[Snapshot]:
    """Yield a snapshot and its ancestors, as far as they exist."""
    at: Snapshot | None = head
    while at is not None:
        yield at
        at = by_id.get(at.parent) if at.parent is not None else None
