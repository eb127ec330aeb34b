"""WorkQueue: the tables of a run in their turn. It claims the next tables before a worker is free for them."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import NamedTuple
from uuid import uuid4

from lakewright_spark.errors import LakewrightSparkError, LeaseHeldError, LeaseLostError
from lakewright_spark.scheduler.claim_size import ClaimSize
from lakewright_spark.scheduler.run_log.completed_runs import CompletedRuns
from lakewright_spark.scheduler.run_log.records import RunRecord
from lakewright_spark.scheduler.runner_claims import RunnerClaims, TakenClaims
from lakewright_spark.scheduler.table_worker import TableWork
from lakewright_spark.table_identifier import TableIdentifier

CANDIDATES = 200
"""Tables that are offered for the next claims: other runners may hold the first of them."""
POLL_SECONDS = 1.0
"""Time between two looks for tables to claim."""
ELSEWHERE = "another runner did it"
"""Reason why a job was not begun."""
LOOK_SECONDS, MAX_LOOK_SECONDS = 2.0, 30.0
"""Time between two looks at tables that other runners hold, once there are no others: at first, and at most.

It is doubled after each look without effect. An hour has at most 120 looks, as many as the heartbeat has renewals.
"""
MAX_CLOSE_SECONDS = 10.0
"""Time that the end of a run waits for a claim in progress."""


def _always(_: str) -> bool:
    return True


def _suspect_all(warehouse: str, holders: Mapping[str, str], works: Collection[TableWork]) -> dict[str, int]:
    del warehouse, works
    return dict.fromkeys(holders, 1)


def _ignore() -> None:
    pass


def _name_tables(works: Iterable[TableWork]) -> list[tuple[str, TableIdentifier]]:
    """Return UUID and name of the tables."""
    return [(work.uuid, work.table) for work in works]


class DroppedWork(NamedTuple):
    """Work that this runner does not begin."""

    work: TableWork
    reason: str


class WorkQueue:
    """Works of a run. The supervisor takes and finishes works; a thread claims tables. Without claims, all are ready.

    The order is that of the works, and one suspect at a time is in work. Works that run alone come last, and only while
    no other table is in work. Tables that another runner holds are looked at again later: it may die.
    """

    def __init__(
        self,
        works: Sequence[TableWork],
        claims: Mapping[str, RunnerClaims] | None = None,
        *,
        lost: dict[str, str] | None = None,
        look_ahead: int = 8,
        ended: Mapping[str, CompletedRuns] | None = None,
        is_recorded: Callable[[str], bool] = _always,
        record_soon: Callable[[], None] = _ignore,
        report_dead: Callable[[str, Mapping[str, str], Collection[TableWork]], Mapping[str, int]] = _suspect_all,
    ) -> None:
        """Prepare the queue.

        Args:
            works: Works in their turn.
            claims: This runner's claims by warehouse.
            lost: Gets the reason why no tables of a warehouse can be claimed, by warehouse.
            look_ahead: Number of tables that are claimed before a worker is free for them, when jobs are long.
            ended: Runs that other runners completed, by warehouse.
            is_recorded: Returns whether all runs on the table with this UUID are recorded. A claim is released after
                that, so that other runners do not repeat them.
            record_soon: Called when other runners may wait for the records of this runner.
            report_dead: Called with a warehouse, the dead holders of tables (by UUID) that this runner took over, and
                the works. Returns the number of deaths that each table may have caused.
        """
        self._claims, self._ended, self._size = dict(claims or {}), dict(ended or {}), ClaimSize(look_ahead)
        self._is_recorded, self._record_soon, self._report_dead = is_recorded, record_soon, report_dead
        self._lost = {} if lost is None else lost
        self._lock, self._closed, self._wake = threading.RLock(), threading.Event(), threading.Event()
        self._waiting = deque(work for work in works if not work.runs_alone)
        self._alone = deque(work for work in works if work.runs_alone)
        self._ready = deque[TableWork]()
        self._elsewhere: dict[str, TableWork] = {}
        self._completed: dict[str, TableWork] = {}
        """Works that other runners completed. Their claims are released here if these runners died."""
        self._active: dict[str, TableWork] = {}
        self._finished: dict[str, str] = {}
        """Warehouses of finished tables whose claims are not released, by UUID."""
        self._dropped: list[DroppedWork] = []
        self._next_looks: dict[str, float] = {}
        """Time of the next look at tables that other runners hold, by warehouse."""
        self._pauses: dict[str, float] = {}
        """Seconds between the last look and the next look, by warehouse."""
        self._looked_snapshots: dict[str, int | None] = {}
        """Snapshot of the claims at the last look, by warehouse."""
        self._next_requests: dict[str, float] = {}
        """Time of the next request, by warehouse whose last request failed. It must not hold up other warehouses."""
        self._failure_pauses: dict[str, float] = {}
        """Seconds between the last failure and the next request, by warehouse."""
        self._only_alone = False
        if not self._claims:
            self._ready, self._waiting = self._waiting, deque[TableWork]()
        self._thread = threading.Thread(target=self._run, name="claims", daemon=True)

    def start(self) -> None:
        """Start to claim tables."""
        if self._claims:
            self._thread.start()

    def close(self) -> None:
        """Claim no further tables. Claims are released by their heartbeat."""
        self._closed.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(MAX_CLOSE_SECONDS)

    @property
    def is_done(self) -> bool:
        """Return whether no work is left to begin."""
        with self._lock:
            return not (self._waiting or self._ready or self._elsewhere or self._alone)

    @property
    def alone_seconds(self) -> float:
        """Predicted duration of the works that run alone."""
        with self._lock:
            ready_works = takewhile(lambda work: work.runs_alone, self._ready)  # it is the first work
            return sum(work.seconds for work in [*self._alone, *ready_works])

    def take(self, *, only_alone: bool = False) -> TableWork | None:
        """Return the next work, if any work may begin now.

        Args:
            only_alone: Whether works that run alone come before other works, since the time ends.
        """
        with self._lock:
            self._only_alone = only_alone
            work = self._choose_next(only_alone=only_alone)
            if work:
                self._active[work.uuid] = work
                self._wake.set()
            return work

    def _choose_next(self, *, only_alone: bool) -> TableWork | None:
        """Remove and return the work to begin now."""
        active = self._active.values()
        if any(work.runs_alone for work in active):
            return None
        if not self._claims and self._alone and (only_alone or not self._ready):
            return None if active else self._alone.popleft()
        if self._ready and self._ready[0].runs_alone:
            return None if active else self._ready.popleft()
        if only_alone:
            return None
        has_suspect = any(work.is_suspect for work in active)
        work = next((work for work in self._ready if not (work.is_suspect and has_suspect)), None)
        if work and work.is_suspect:  # the shortest, so that most suspects have their turn before Spark dies again
            work = min((other for other in self._ready if other.is_suspect), key=lambda other: other.seconds)
        if work:
            self._ready.remove(work)
        return work

    def finish(self, work: TableWork, *, release: bool = True) -> None:
        """Report that the worker of a table has ended. Without `release`, a job may still change the table."""
        with self._lock:
            self._active.pop(work.uuid, None)
            if release and work.table.warehouse in self._claims:
                self._finished[work.uuid] = work.table.warehouse
            self._wake.set()

    def retry(self, work: TableWork, runs: Sequence[RunRecord], *, is_suspect: bool) -> None:
        """Add runs of a table, during which Spark died, as the next work. Its claim remains."""
        new_runs = tuple(dataclasses.replace(run, id=uuid4().hex) for run in runs)
        retried_work = dataclasses.replace(work, runs=new_runs, is_suspect=is_suspect or work.is_suspect)
        with self._lock:
            self._active.pop(work.uuid, None)
            self._ready.appendleft(retried_work)

    def clear_suspects(self) -> None:
        """Let all suspects run beside each other, since another table is known to be the cause."""
        with self._lock:
            for works in (self._ready, self._waiting):
                cleared_works = [dataclasses.replace(work, is_suspect=False) for work in works]
                works.clear()
                works.extend(cleared_works)

    def find_request(self, work: TableWork) -> str | None:
        """Return the job that waits for a table of this runner, or None."""
        claims = self._claims.get(work.table.warehouse)
        return claims.requested.get(work.uuid) if claims else None

    def pop_dropped(self) -> list[DroppedWork]:
        """Return the works that other runners and jobs do, once each."""
        with self._lock:
            if any(claims.requested for claims in self._claims.values()):
                for work in [work for work in self._ready if self.find_request(work)]:
                    self._ready.remove(work)
                    self._drop(work, f"{self.find_request(work)} works on this table")
            dropped, self._dropped = self._dropped, []
            return dropped

    def drain(self, warehouses: Collection[str] | None = None) -> list[TableWork]:
        """Remove and return the works of these warehouses, or all, that have not begun."""
        with self._lock:
            drained: list[TableWork] = []
            for works in (self._ready, self._waiting, self._alone):
                selected_works = [work for work in works if warehouses is None or work.table.warehouse in warehouses]
                drained += selected_works
                for work in selected_works:
                    works.remove(work)
            for work in list(self._elsewhere.values()):
                if warehouses is None or work.table.warehouse in warehouses:
                    drained.append(self._elsewhere.pop(work.uuid))
            return drained

    def _drop(self, work: TableWork, reason: str) -> None:
        self._dropped.append(DroppedWork(work, reason))
        self._finished[work.uuid] = work.table.warehouse

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            if not self._take_turn():
                self._wake.wait(POLL_SECONDS)

    def _take_turn(self) -> bool:
        """Send the next request to the warehouse in turn. Return whether there may be more to do at once."""
        with self._lock:
            name = self._find_warehouse_in_turn()
        try:
            return bool(name) and self._claim_next(name)
        except (LeaseLostError, LeaseHeldError) as error:
            self._lost.setdefault(name, str(error))
        except LakewrightSparkError:
            self._postpone(name)  # such as an outage: the heartbeat reports the loss of claims in time
        except Exception as error:  # noqa: BLE001  # any error: the run would wait for claims forever
            self._lost.setdefault(name, f"warehouse {name}: no table can be claimed: {type(error).__name__}")
        return False

    def _postpone(self, name: str) -> None:
        """Wait longer after each failed request to a warehouse. Other warehouses have their turns meanwhile."""
        pause = min(2 * self._failure_pauses.get(name, POLL_SECONDS), MAX_LOOK_SECONDS)
        self._failure_pauses[name] = pause
        self._next_requests[name] = time.monotonic() + pause

    def _is_reachable(self, name: str) -> bool:
        """Return whether requests to a warehouse may be sent now."""
        return name not in self._lost and time.monotonic() >= self._next_requests.get(name, 0.0)

    def _has_reachable(self, works: Iterable[TableWork]) -> bool:
        return any(self._is_reachable(work.table.warehouse) for work in works)

    def _find_warehouse_in_turn(self) -> str:
        """Return the warehouse of the next claim. A warehouse where tables only have to be released comes first."""
        for name in dict.fromkeys(self._finished.values()):
            if self._is_reachable(name) and self._is_release_urgent(name, self._list_recorded(name)):
                return name
        alone_now = self._alone if self._only_alone else ()
        in_turn = sorted(self._elsewhere.values(), key=lambda work: self._next_looks.get(work.table.warehouse, 0.0))
        for works in (alone_now, self._waiting, in_turn, self._alone):
            for work in works:
                if self._is_reachable(work.table.warehouse):
                    return work.table.warehouse
        return next((name for name in self._finished.values() if self._is_reachable(name)), "")

    def _list_recorded(self, name: str) -> list[str]:
        """Return the UUIDs of finished tables of a warehouse whose runs are recorded."""
        return [uuid for uuid, warehouse in self._finished.items() if warehouse == name and self._is_recorded(uuid)]

    def _has_unrecorded(self) -> bool:
        """Return whether a finished table of any reachable warehouse has runs that are not recorded."""
        finished = self._finished.items()
        return any(self._is_reachable(warehouse) and not self._is_recorded(uuid) for uuid, warehouse in finished)

    def _is_release_urgent(self, name: str, released: Collection[str]) -> bool:
        """Return whether a job waits for one of these tables, or the next claim in the warehouse may be far away."""
        if self._claims[name].requested.keys() & released:
            return True
        return bool(released) and all(work.table.warehouse != name for work in self._waiting)

    def _claim_next(self, name: str) -> bool:
        """Claim the next tables of a warehouse. Return whether there may be more to do at once."""
        with self._lock:
            alone_first = self._only_alone and bool(self._alone)
            ready = sum(not work.is_suspect for work in self._ready)
            room = 1 if alone_first else self._size.compute_room(ready, len(self._waiting), self._claims[name].runners)
            works = self._choose_candidates(name) if room > 0 else []
            released = self._list_recorded(name)
            is_urgent = room > 0 or self._is_release_urgent(name, released)
            is_waiting = not (self._active or self._ready) and self._has_unrecorded()
        if is_waiting:
            self._record_soon()
        if not works and not (released and (is_urgent or len(released) >= self._size.look_ahead)):
            return self._look_elsewhere(name)
        if works and works[0].runs_alone:
            works, room = works[:1], 1
        if works:
            self._size.adapt()
        self._claim(name, works, room, released)
        return True

    def _claim(self, name: str, works: Sequence[TableWork], room: int, released: Sequence[str]) -> None:
        candidates, elsewhere = _name_tables(works), self._list_elsewhere(name)
        at_others = _name_tables(elsewhere)
        result = self._claims[name].take(candidates, room, released, datetime.now(UTC), at_others=at_others)
        with self._lock:
            for uuid in result.released:
                self._finished.pop(uuid, None)
        works = [*works, *(work for work in elsewhere if work not in works and work.uuid in result.taken)]
        if not result.was_alone and name in self._ended:
            # After the claim: the table's earlier holder recorded its runs before it released the table.
            self._ended[name].refresh()
        taken_over = [work for work in works if work.uuid in result.taken_over and self._leave_rest(work)]
        kills = self._report_dead(name, result.taken_over, taken_over) if taken_over else dict[str, int]()
        with self._lock:
            self._sort(works, result, kills)
        self._failure_pauses.pop(name, None)

    def _choose_candidates(self, warehouse: str) -> list[TableWork]:
        if self._only_alone and self._alone:
            can_begin = not self._active and not any(work.runs_alone for work in self._ready)
            return [work for work in self._alone if work.table.warehouse == warehouse] if can_begin else []
        if self._has_reachable(self._waiting):
            reachable_works = (work for work in self._waiting if self._is_reachable(work.table.warehouse))
            return [work for work in islice(reachable_works, CANDIDATES) if work.table.warehouse == warehouse]
        if self._alone and not (self._active or self._ready or self._has_reachable(self._elsewhere.values())):
            return [work for work in self._alone if work.table.warehouse == warehouse]
        return []

    def _look_elsewhere(self, name: str) -> bool:
        """Claim tables whose holders died or left work. Return False until it is time for the next look."""
        with self._lock:
            if not self._elsewhere or len(self._ready) >= self._size.look_ahead or self._has_reachable(self._waiting):
                return False
        if time.monotonic() < self._next_looks.get(name, 0.0):
            return False
        with self._lock:
            works = [work for work in self._elsewhere.values() if work.table.warehouse == name]
            room = self._size.look_ahead - len(self._ready)
        at_others = _name_tables(self._list_elsewhere(name))
        result = self._claims[name].look(_name_tables(works), room, datetime.now(UTC), at_others=at_others)
        # Its holder records the runs of a table before it releases the table, which adds a snapshot.
        if name in self._ended and result.snapshot != self._looked_snapshots.get(name, -1):
            self._ended[name].refresh()
        self._looked_snapshots[name] = result.snapshot
        with self._lock:
            works = [work for work in works if work.uuid in self._elsewhere]  # others were drained meanwhile
            for work in [work for work in works if not self._leave_rest(work)]:
                self._completed[work.uuid] = self._elsewhere.pop(work.uuid)
                self._dropped.append(DroppedWork(work, ELSEWHERE))
                works.remove(work)
        if result.taken and works:
            self._claim(name, works, room, [])
        else:
            with self._lock:
                self._sort(works, result, {})
        self._plan_next_look(name, result)
        return False

    def _plan_next_look(self, name: str, result: TakenClaims) -> None:
        """Wait longer after each look without effect, but not longer than until a claim expires."""
        pause = LOOK_SECONDS if result.taken else min(2 * self._pauses.get(name, LOOK_SECONDS), MAX_LOOK_SECONDS)
        self._pauses[name] = pause
        if result.first_expiry:
            until_expiry = (result.first_expiry - datetime.now(UTC)).total_seconds()
            pause = min(pause, max(until_expiry, POLL_SECONDS))
        self._next_looks[name] = time.monotonic() + pause

    def _list_elsewhere(self, name: str) -> list[TableWork]:
        """Return the works of a warehouse that other runners hold or completed."""
        with self._lock:
            works = (*self._elsewhere.values(), *self._completed.values())
            return [work for work in works if work.table.warehouse == name]

    def _leave_rest(self, work: TableWork) -> tuple[RunRecord, ...]:
        """Return the runs that no other runner completed."""
        ended = self._ended.get(work.table.warehouse)
        return tuple(run for run in work.runs if ended is None or (work.uuid, run.job) not in ended)

    def _sort(self, works: Sequence[TableWork], result: TakenClaims, kills: Mapping[str, int]) -> None:
        """Move the works to where they wait from now on. `kills` has the deaths that a table may have caused."""
        moved = {*result.taken, *result.at_jobs, *result.at_runners}
        passed_works, unseen = list[TableWork](), {work.uuid for work in works}
        while self._waiting and unseen:  # mostly the first works: the queue may have many thousands
            passed_works.append(self._waiting.popleft())
            unseen.discard(passed_works[-1].uuid)
        queued = {work.uuid for work in (*passed_works, *self._alone)} | self._elsewhere.keys() | self._completed.keys()
        self._waiting.extendleft(reversed([work for work in passed_works if work.uuid not in moved]))
        self._alone = deque(work for work in self._alone if work.uuid not in moved)
        drained_works = [work for work in works if work.uuid not in queued]  # during the request
        self._finished |= {work.uuid: work.table.warehouse for work in drained_works if work.uuid in result.taken}
        for work in [work for work in works if work.uuid in queued]:
            uuid = work.uuid
            if uuid in moved:
                self._elsewhere.pop(uuid, None)
            if uuid in result.at_jobs:
                self._dropped.append(DroppedWork(work, f"{result.at_jobs[uuid]} works on this table"))
            elif uuid in result.at_runners:
                self._elsewhere[uuid] = work
            elif uuid in result.taken and self._completed.pop(uuid, None):
                self._finished[uuid] = work.table.warehouse
            elif uuid in result.taken:
                self._finished.pop(uuid, None)
                remaining_runs = self._leave_rest(work)
                if completed_runs := tuple(run for run in work.runs if run not in remaining_runs):
                    self._dropped.append(DroppedWork(dataclasses.replace(work, runs=completed_runs), ELSEWHERE))
                if not remaining_runs:
                    self._finished[uuid] = work.table.warehouse
                    continue
                number = kills.get(uuid, 0)
                work = dataclasses.replace(  # noqa: PLW2901
                    work,
                    runs=remaining_runs,
                    is_suspect=work.is_suspect or number == 1,
                    runs_alone=work.runs_alone or number > 1,
                )
                if work.runs_alone and uuid in kills:
                    self._alone.append(work)
                elif work.runs_alone or uuid in kills:  # tables of dead runners have waited longer than all others
                    self._ready.appendleft(work)
                else:
                    self._ready.append(work)
