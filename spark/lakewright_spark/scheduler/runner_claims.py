"""The claims of a runner in one warehouse. Several runners share the tables of a warehouse by their claims."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import LeaseHeldError, LeaseLostError
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.scheduler.claims import (
    CLAIM,
    RUNNER,
    ClaimRow,
    read_claims,
    read_requests,
    read_runners,
    to_property,
)
from lakewright_spark.scheduler.lease_table import (
    ATTEMPTS,
    LIFE,
    NAME,
    NEVER,
    RenewalCatalog,
    add_snapshot,
    open_lease_table,
    refuse_earlier_lease,
    set_properties,
)
from lakewright_spark.table_identifier import TableIdentifier

MAX_PAUSE_SECONDS = 1.0
"""Longest pause after a commit that conflicted with another runner's."""


@dataclass(frozen=True)
class TakenClaims:
    """Result of an attempt to claim tables, by UUID."""

    taken: frozenset[str] = frozenset()
    taken_over: Mapping[str, str] = field(default_factory=dict[str, str])
    """Dead holders of taken tables."""
    at_runners: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tables that other runners work on, with the holder."""
    at_jobs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tables that a job works on or waits for, with the holder."""
    was_alone: bool = True
    """Whether no other runner or job changed its claims since this runner's last commit."""
    snapshot: int | None = None
    """The snapshot of the table of claims. Another snapshot means that claims were taken or released."""
    first_expiry: datetime | None = None
    """When the first of the other runners' claims on these tables expires unless it is renewed (UTC)."""
    released: frozenset[str] = frozenset()
    """Tables to release that this runner no longer holds: all, or none if each attempt conflicted."""


@dataclass
class RunnerClaims:
    """The claims of one runner in one warehouse. They expire together unless they are renewed."""

    config: CatalogConfig
    warehouse: str
    catalog: Catalog
    runner: str
    life: timedelta = LIFE
    expires_at: datetime = NEVER
    """Instant of expiry, according to this runner's last successful commit."""
    runners: int = 1
    """Number of live runners of the warehouse, as of the last commit."""
    requested: dict[str, str] = field(default_factory=dict[str, str])
    """Jobs that wait for a table of this runner, by UUID, as of the last commit."""

    def __post_init__(self) -> None:
        """Start without claims."""
        self._since = NEVER
        self._held: dict[str, ClaimRow] = {}
        self._uncertain: set[str] = set()
        """UUIDs of the tables that a failed commit claimed or released. It may have taken effect, or still do so."""
        self._uncertain_since: int | None = None
        """The table's snapshot before the failed commit, which takes effect only on this snapshot."""
        self._snapshot: int | None = None
        self._renewals = RenewalCatalog(self.config, self.warehouse, self.catalog)
        self._lock = threading.Lock()  # one commit at a time: of the heartbeat or of the work queue

    def register(self, now: datetime) -> None:
        """Announce the runner.

        Raises:
            LeaseHeldError: A runner of an earlier release maintains the warehouse.
        """
        self._since = now
        with self._lock, explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = open_lease_table(self.catalog)
                refuse_earlier_lease(table, self.warehouse, now)
                if self._commit(table, {}, [], now):
                    return
        raise LeaseHeldError(
            f"warehouse {self.warehouse}: {ATTEMPTS} attempts to register the runner conflicted with others. Try again."
        )

    def take(
        self,
        candidates: Sequence[tuple[str, TableIdentifier]],
        most: int,
        released: Collection[str],
        now: datetime,
        *,
        at_others: Sequence[tuple[str, TableIdentifier]] = (),
    ) -> TakenClaims:
        """Claim free tables, and release others, in one commit.

        Args:
            candidates: UUID and name of tables, in the order of claims.
            most: Most tables to claim.
            released: UUIDs of tables to release.
            now: The time (UTC).
            at_others: UUID and name of tables to claim, beside `most`, if the runners that claimed them are dead.

        Raises:
            LeaseHeldError: A runner of an earlier release maintains the warehouse.
            LeaseLostError: Other runners took this runner for dead.
        """
        with self._lock, explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for attempt in range(ATTEMPTS):
                table = self.catalog.load_table(("ops", NAME))
                self._check_alive(table)
                refuse_earlier_lease(table, self.warehouse, now)
                dead = self._find_dead(table, at_others, now)
                result = self._choose(table, candidates, most, now, dead)
                claims = read_claims(table.properties)
                # Another runner may have claimed a table after an earlier commit released it.
                held_uuids = {uuid for uuid in released if uuid in claims and claims[uuid].holder == self.runner}
                ended_uuids = held_uuids - result.taken
                result = replace(result, released=frozenset(released))
                if not result.taken and not ended_uuids:
                    return result
                names = dict([*candidates, *at_others])
                rows = {uuid: ClaimRow(str(names[uuid]), self.runner, now, now + self.life) for uuid in result.taken}
                before = self._held
                self._held = {uuid: row for uuid, row in {**before, **rows}.items() if uuid not in ended_uuids}
                # A runner whose claim is taken over must not renew its other claims.
                dead_runners = {RUNNER + holder for holder in result.taken_over.values()} & table.properties.keys()
                removed = [*(CLAIM + uuid for uuid in ended_uuids), *dead_runners]
                is_committed = False
                try:
                    is_committed = self._commit(table, rows, removed, now)
                except BaseException:
                    self._uncertain |= {*result.taken, *released}
                    self._uncertain_since = table.metadata.current_snapshot_id
                    raise
                finally:
                    if not is_committed:
                        self._held = before
                if is_committed:
                    return result
                # Spread the attempts of several runners.
                time.sleep(random.uniform(0, min(MAX_PAUSE_SECONDS, 0.1 * 2**attempt)))  # noqa: S311
        return TakenClaims(was_alone=False)

    def look(
        self,
        candidates: Sequence[tuple[str, TableIdentifier]],
        most: int,
        now: datetime,
        *,
        at_others: Sequence[tuple[str, TableIdentifier]] = (),
    ) -> TakenClaims:
        """Return what `take` would return. Nothing is claimed, and the request asks for no credentials.

        Raises:
            LeaseLostError: Other runners took this runner for dead.
        """
        with self._lock, explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            table = self._renewals.load_table()
            self._check_alive(table)
            return self._choose(table, candidates, most, now, self._find_dead(table, at_others, now))

    def forget_dead(self) -> dict[str, str]:
        """Remove expired claims and runners, and return the claims' holders by the UUID of the table.

        Only one runner gets each claim.
        """
        with self._lock, explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table, now = self.catalog.load_table(("ops", NAME)), datetime.now(UTC)
                self._check_alive(table)
                claims, runners = read_claims(table.properties), read_runners(table.properties)
                dead = {uuid: row.holder for uuid, row in claims.items() if row.expires_at <= now}
                dead_runners = [RUNNER + name for name, row in runners.items() if row.expires_at <= now]
                if not (dead or dead_runners) or self._commit(
                    table, {}, [*(CLAIM + uuid for uuid in dead), *dead_runners], now
                ):
                    return dead
        return {}

    def renew(self, now: datetime) -> None:
        """Extend the claims. Other errors than LeaseLostError leave them as they were.

        Raises:
            LeaseLostError: Other runners took this runner for dead.
        """
        with self._lock, explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = self._renewals.load_table()
                self._check_alive(table)
                if set_properties(table, self._to_properties(now)):
                    self.expires_at = now + self.life
                    self.requested = read_requests(table.properties, now)
                    return
        raise LeaseLostError(
            f"warehouse {self.warehouse}: {ATTEMPTS} attempts to renew the claims conflicted with other commits"
        )

    def release(self, now: datetime) -> None:
        """Release all claims of this runner. The commit adds a snapshot, so that a late renewal fails."""
        del now  # a release has no time
        # Without the lock: a renewal may hang.
        with explain_errors(self.config, self.warehouse, f"ops.{NAME}"):
            for _ in range(ATTEMPTS):
                table = self.catalog.load_table(("ops", NAME))
                rows = {CLAIM + uuid: row for uuid, row in read_claims(table.properties).items()}
                rows |= {RUNNER + name: row for name, row in read_runners(table.properties).items()}
                names = [name for name, row in rows.items() if row.holder == self.runner]
                if not names or add_snapshot(table, {}, names, kind=self.config.kind):
                    self._held = {}
                    return

    def _choose(
        self,
        table: Table,
        candidates: Sequence[tuple[str, TableIdentifier]],
        most: int,
        now: datetime,
        dead: Collection[str],
    ) -> TakenClaims:
        claims, runners = read_claims(table.properties), read_runners(table.properties)
        requests = read_requests(table.properties, now)
        over = {uuid: claims[uuid].holder for uuid in dead if uuid not in requests}
        taken = set(over)
        most += len(over)
        at_runners: dict[str, str] = {}
        at_jobs: dict[str, str] = {}
        for uuid, _ in candidates:
            row = claims.get(uuid)
            if row and row.is_held_by_other(self.runner, now):
                (at_runners if row.holder in runners else at_jobs)[uuid] = row.holder
            elif uuid in requests:
                at_jobs[uuid] = requests[uuid]
            elif len(taken) < most:
                taken.add(uuid)
                if row and row.holder != self.runner:
                    over[uuid] = row.holder
        snapshot = table.metadata.current_snapshot_id
        first_expiry = min((claims[uuid].expires_at for uuid in at_runners), default=None)
        return TakenClaims(
            frozenset(taken),
            over,
            at_runners,
            at_jobs,
            was_alone=snapshot == self._snapshot,
            snapshot=snapshot,
            first_expiry=first_expiry,
        )

    def _find_dead(self, table: Table, at_others: Sequence[tuple[str, TableIdentifier]], now: datetime) -> list[str]:
        """Return the UUIDs of those tables whose runner is dead."""
        claims = read_claims(table.properties)
        return [
            uuid
            for uuid, _ in at_others
            if (row := claims.get(uuid)) and row.expires_at <= now and row.holder != self.runner
        ]

    def _commit(self, table: Table, rows: Mapping[str, ClaimRow], removed: Sequence[str], now: datetime) -> bool:
        """Add a snapshot with these claims and this runner's renewal. Return False if it conflicts."""
        properties = self._to_properties(now)
        for uuid, row in rows.items():
            properties |= to_property(CLAIM, uuid, row)
        if not add_snapshot(table, properties, removed, kind=self.config.kind):
            return False
        self._snapshot, self.expires_at = table.metadata.current_snapshot_id, now + self.life
        self.runners = sum(row.expires_at > now for row in read_runners(table.properties).values())
        self.requested = read_requests(table.properties, now)
        return True

    def _to_properties(self, now: datetime) -> dict[str, str]:
        expires_at = now + self.life
        properties = to_property(RUNNER, self.runner, ClaimRow("", self.runner, self._since, expires_at))
        for uuid, row in self._held.items():
            properties |= to_property(CLAIM, uuid, ClaimRow(row.table, self.runner, row.since, expires_at))
        return properties

    def _reconcile(self, table: Table) -> None:
        """Hold what the table has of the claims that a failed commit took or released."""
        claims = read_claims(table.properties)
        for uuid in self._uncertain:
            if (row := claims.get(uuid)) and row.holder == self.runner:
                self._held[uuid] = row
            else:
                self._held.pop(uuid, None)
        if table.metadata.current_snapshot_id != self._uncertain_since:
            self._uncertain.clear()

    def _check_alive(self, table: Table) -> None:
        """Raise LeaseLostError if other runners took this runner for dead."""
        self._reconcile(table)
        claims = read_claims(table.properties)
        lost = [uuid for uuid in self._held if uuid not in claims or claims[uuid].holder != self.runner]
        if self.runner not in read_runners(table.properties) or lost:
            raise LeaseLostError(f"warehouse {self.warehouse}: another runner took over the claims of {self.runner}")
