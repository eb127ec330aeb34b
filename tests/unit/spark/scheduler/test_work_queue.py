"""The queue of a run: order, tables that run alone, claims of other runners and of jobs."""

from __future__ import annotations

import dataclasses
import json
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import CatalogUnreachableError, LeaseHeldError, LeaseLostError
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.scheduler import lease_table, runner_claims, work_queue
from lakewright_spark.scheduler.claims import active_runners, find_dead_claims, read_claims
from lakewright_spark.scheduler.lease_table import LIFE, set_properties
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.completed_runs import CompletedRuns
from lakewright_spark.scheduler.run_log.records import KILLED, PREDICTED, TIMED_OUT, RunRecord, RunState
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from lakewright_spark.scheduler.table_claim import TableClaim
from lakewright_spark.scheduler.table_worker import TableWork
from lakewright_spark.scheduler.work_queue import WorkQueue
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table

NOW = datetime.now(UTC)
"""Time of earlier runs. Claims are made when their test runs: they expire."""
SECOND = timedelta(seconds=1)
CONFIG = CatalogConfig(
    kind="jdbc",
    tenant="acme",
    uri="sqlite:////unused.db",
    warehouses=[CatalogWarehouse(name=name, location=f"s3://unused/{name}") for name in ("local", "other", "third")],
)


def work(name: str, *jobs: JobName, alone: bool = False, warehouse: str = "local") -> TableWork:
    table = TableIdentifier(warehouse, ("sales",), name)
    runs = tuple(
        RunRecord(runner="us", table=table, table_uuid=f"uuid-{name}", job=job, queued_at=NOW)
        for job in jobs or ("statistics",)
    )
    return TableWork(table, TablePolicies(), runs, runs_alone=alone)


@pytest.fixture
def runner(local_catalog: SqlCatalog) -> Callable[[str], RunnerClaims]:
    """Return a function that registers a runner."""

    def register(name: str, now: datetime | None = None) -> RunnerClaims:
        claims = RunnerClaims(CONFIG, "local", local_catalog, name)
        claims.register(now or datetime.now(UTC))
        return claims

    return register


@pytest.fixture
def other_catalog(tmp_path: Path) -> SqlCatalog:
    """Return the catalog of warehouse `other`."""
    return SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/other")


@pytest.fixture
def runner_of_both(runner: Any, other_catalog: SqlCatalog) -> Callable[[str], dict[str, RunnerClaims]]:
    """Return a function that registers a runner in both warehouses."""

    def register(name: str) -> dict[str, RunnerClaims]:
        claims = RunnerClaims(CONFIG, "other", other_catalog, name)
        claims.register(datetime.now(UTC))
        return {"local": runner(name), "other": claims}

    return register


@pytest.fixture
def start(local_catalog: SqlCatalog) -> Iterator[Callable[..., WorkQueue]]:
    queues: list[WorkQueue] = []

    def start_queue(claims: RunnerClaims, *works: TableWork, **more: Any) -> WorkQueue:
        ended = {"local": CompletedRuns(CONFIG, "local", local_catalog)}
        queue = WorkQueue(works, {"local": claims}, ended=ended, **more)
        queues.append(queue)
        queue.start()
        return queue

    yield start_queue
    for queue in queues:
        queue.close()


def take(queue: WorkQueue) -> TableWork:
    """Wait for the next work."""
    for _ in range(600):
        if (taken := queue.take()) is not None:
            return taken
        threading.Event().wait(0.02)
    raise AssertionError("no work within 12 seconds")


def candidates(*names: str) -> list[tuple[str, TableIdentifier]]:
    return [(work(name).uuid, work(name).table) for name in names]


def test_table_that_killed_a_runner_runs_alone_and_last() -> None:
    queue = WorkQueue([work("killer", alone=True), work("a"), work("b")])
    first, second = take(queue), take(queue)
    assert [first.table.name, second.table.name] == ["a", "b"]
    assert queue.take() is None, "two tables are in work"
    queue.finish(first)
    assert queue.take() is None, "a table is in work"
    queue.retry(second, second.runs, is_suspect=True)
    retry = take(queue)
    assert (retry.table.name, retry.is_suspect) == ("b", True)
    assert retry.runs[0].id != second.runs[0].id, "another run"
    queue.finish(retry)
    killer = take(queue)
    assert killer.table.name == "killer"
    assert queue.take() is None, "nothing runs beside it"
    queue.finish(killer)
    assert queue.is_done


def test_one_suspect_at_a_time_is_in_work() -> None:
    """The shortest comes first, so that most have their turn before Spark dies again."""
    predicted = {"slow": 60.0, "fast": 5.0}
    suspects = [
        dataclasses.replace(
            one, is_suspect=True, runs=(dataclasses.replace(one.runs[0], metrics={PREDICTED: {"seconds": seconds}}),)
        )
        for one, seconds in ((work(name), seconds) for name, seconds in predicted.items())
    ]
    queue = WorkQueue([*suspects, work("a"), work("b")])
    fast, beside = take(queue), take(queue)
    assert [fast.table.name, beside.table.name] == ["fast", "a"]
    queue.finish(fast)
    assert take(queue).table.name == "slow"


def test_suspects_are_cleared_when_the_cause_is_known() -> None:
    works = [dataclasses.replace(work(name), is_suspect=True) for name in ("killer", "a", "b")]
    queue = WorkQueue(works)
    assert take(queue).table.name == "killer"
    assert queue.take() is None, "one suspect at a time"
    queue.clear_suspects()
    assert {take(queue).table.name, take(queue).table.name} == {"a", "b"}, "beside each other"


def test_tables_of_a_dead_runner_come_next(runner: Any, start: Any) -> None:
    """They do not wait until all other tables had their turn."""
    dead = RunnerClaims(CONFIG, "local", runner("us").catalog, "dead", life=2 * SECOND)
    dead.register(datetime.now(UTC))
    dead.take(candidates("a", "b"), 2, [], datetime.now(UTC))
    kills = {"uuid-a": 2, "uuid-b": 0}
    works = [work(name) for name in ("a", "b", "c", "d", "e", "f", "g", "h")]
    queue = start(runner("us"), *works, look_ahead=1, report_dead=lambda *_: kills)
    assert take(queue).table.name == "c"
    order: list[str] = []
    while "b" not in order:
        threading.Event().wait(0.5)
        order.append(take(queue).table.name)
    assert len(order) < 6, "before the last tables"
    while len(order) < 6:
        order.append(take(queue).table.name)
    assert "a" not in order, "the only cause of the death runs alone"


def test_runners_share_tables(runner: Any, start: Any, local_catalog: SqlCatalog) -> None:
    ours, theirs = runner("us"), runner("them")
    taken = theirs.take(candidates("b"), 1, [], datetime.now(UTC))
    assert taken.taken == {"uuid-b"}
    queue = start(ours, work("a"), work("b", "compaction", "statistics"), work("c"))
    assert {take(queue).table.name, take(queue).table.name} == {"a", "c"}
    assert not queue.is_done, "the other runner may die"
    table = work("b").table
    ended = RunRecord(runner="them", table=table, table_uuid="uuid-b", job="compaction", queued_at=NOW, started_at=NOW)
    job_runs.append(local_catalog, [dataclasses.replace(ended, state=RunState.SUCCEEDED, finished_at=NOW)], NOW)
    theirs.release(datetime.now(UTC))
    remaining = take(queue)
    assert (remaining.table.name, [run.job for run in remaining.runs]) == ("b", ["statistics"])
    assert queue.is_done


def test_table_completed_before_the_first_claim_is_skipped(runner: Any, local_catalog: SqlCatalog) -> None:
    """Another runner records its run and releases the table before this runner asks for it."""
    ours, theirs = runner("us"), runner("them")
    queue = WorkQueue([work("a")], {"local": ours}, ended={"local": CompletedRuns(CONFIG, "local", local_catalog)})
    theirs.take(candidates("a"), 1, [], datetime.now(UTC))
    job_runs.append(local_catalog, [end_run("a")], NOW)
    theirs.release(datetime.now(UTC))
    claim_next(queue)
    assert [dropped.work.table.name for dropped in queue.pop_dropped()] == ["a"]
    assert queue.is_done


@pytest.mark.parametrize("request_name", ["look", "take"])
def test_drained_work_does_not_begin(
    runner: Any, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, request_name: str
) -> None:
    """The run drains the queue while a request asks for a table that another runner has just released."""
    ours, theirs = runner("us"), runner("them")
    theirs.take(candidates("a"), 1, [], datetime.now(UTC))
    ended = {"local": CompletedRuns(CONFIG, "local", local_catalog)}
    queue = WorkQueue([work("a")], {"local": ours}, ended=ended)
    queue._claim_next("local")
    theirs.release(datetime.now(UTC))
    send, drained = getattr(ours, request_name), list[TableWork]()

    def drain_and_send(*arguments: Any, **more: Any) -> Any:
        drained.extend(queue.drain())
        return send(*arguments, **more)

    monkeypatch.setattr(ours, request_name, drain_and_send)
    queue._claim_next("local")
    assert [work.table.name for work in drained] == ["a"]
    assert queue.take() is None
    assert queue.is_done
    queue._claim_next("local")
    assert read_claims(local_catalog.load_table("ops.maintenance_lease").properties) == {}


def test_each_warehouse_has_its_own_looks(runner_of_both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other runners hold the last table of two warehouses. The table that is released first is taken first."""
    theirs, ours = runner_of_both("them"), runner_of_both("us")
    for warehouse, name in (("local", "a"), ("other", "b")):
        assert theirs[warehouse].take(candidates(name), 1, [], datetime.now(UTC)).taken
    ended = {name: CompletedRuns(CONFIG, name, one.catalog) for name, one in ours.items()}
    clock, queue = [0.0], WorkQueue([work("a"), work("b", warehouse="other")], ours, ended=ended)
    monkeypatch.setattr(work_queue, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    for _ in range(4):
        claim_next(queue)
    assert queue.take() is None
    theirs["other"].release(datetime.now(UTC))
    clock[0] += work_queue.MAX_LOOK_SECONDS
    for _ in range(2):
        claim_next(queue)
    assert take(queue).table.warehouse == "other"
    assert not queue.is_done, "the other runner still has the table of warehouse `local`"


def test_tables_are_released_during_a_wait_elsewhere(runner_of_both: Any, other_catalog: SqlCatalog) -> None:
    """Regression: two runners waited for each other's last tables, which were in two warehouses."""
    runner_of_both("them")["local"].take(candidates("a"), 1, [], datetime.now(UTC))
    queue = WorkQueue([work("b", warehouse="other"), work("a")], runner_of_both("us"))
    claim_next(queue)
    finished = take(queue)
    claim_next(queue)
    assert finished.table.warehouse == "other"
    assert list_claimed(other_catalog) == {"uuid-b"}
    queue.finish(finished)
    claim_next(queue)
    assert list_claimed(other_catalog) == set()
    assert not queue.is_done, "the other runner still has the table of warehouse `local`"


def test_requested_table_is_released_in_any_warehouse(runner_of_both: Any, other_catalog: SqlCatalog) -> None:
    """Regression: a job waited for a finished table until its warehouse had the next table in turn."""
    ours = runner_of_both("us")
    works = [work("b", warehouse="other"), *(work(f"a{number}") for number in range(40)), work("c", warehouse="other")]
    queue = WorkQueue(works, ours, look_ahead=1)
    claim_next(queue)
    queue.finish(take(queue))
    while claim_next(queue):
        pass
    job = TableClaim(CONFIG, work("b", warehouse="other").table, "uuid-b", other_catalog, "job")
    thread = threading.Thread(target=lambda: job.take(datetime.now(UTC)))
    thread.start()
    while not ours["other"].requested:
        ours["other"].renew(datetime.now(UTC))
    claim_next(queue)
    thread.join(30)
    assert read_claims(other_catalog.load_table("ops.maintenance_lease").properties)["uuid-b"].holder == "job"


def test_unreachable_warehouse_holds_up_no_claims(runner_of_both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release of its finished table fails."""
    ours = runner_of_both("us")
    queue = WorkQueue([work("b", warehouse="other"), work("a")], ours)
    claim_next(queue)
    queue.finish(take(queue))
    refuse_claims(monkeypatch, ours["other"])
    queue.start()
    assert take(queue).table.name == "a"
    queue.close()


def test_unreachable_warehouses_hold_up_no_claims(
    runner_of_both: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: two warehouses had turns one after another, and a third none."""
    catalog = SqlCatalog("third", uri=f"sqlite:///{tmp_path}/third.db", warehouse=f"file://{tmp_path}/third")
    ours = runner_of_both("us") | {"third": RunnerClaims(CONFIG, "third", catalog, "us")}
    ours["third"].register(datetime.now(UTC))
    queue = WorkQueue([work("b", warehouse="other"), work("c", warehouse="third"), work("a")], ours)
    for _ in range(2):
        claim_next(queue)
    for finished in [take(queue), take(queue)]:
        queue.finish(finished)
    for name in ("other", "third"):
        refuse_claims(monkeypatch, ours[name])
    for _ in range(3):
        queue._take_turn()
    assert take(queue).table.name == "a"
    assert queue.is_done, "releases do not hold up the end of the run"


def test_requests_to_an_unreachable_warehouse_are_few(runner_of_both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: each claim in another warehouse was preceded by a request that failed."""
    ours, clock = runner_of_both("us"), [0.0]
    monkeypatch.setattr(work_queue, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    works = [work("b", warehouse="other"), *(work(f"a{number}") for number in range(40))]
    queue = WorkQueue(works, ours, look_ahead=1)
    claim_next(queue)
    queue.finish(take(queue))
    failures = refuse_claims(monkeypatch, ours["other"])
    for _ in range(40):
        queue._take_turn()
        if taken := queue.take():
            queue.finish(taken)
        clock[0] += work_queue.POLL_SECONDS
    assert failures == [0.0, 2.0, 6.0, 14.0, 30.0]


def test_waiting_table_of_unreachable_warehouse_waits(
    runner_of_both: Any, monkeypatch: pytest.MonkeyPatch, other_catalog: SqlCatalog
) -> None:
    """Regression: no table behind it began, no table of another runner, and none that runs alone."""
    theirs, ours, clock = runner_of_both("them"), runner_of_both("us"), [0.0]
    theirs["local"].take(candidates("a"), 1, [], datetime.now(UTC))
    works = [*(work(name, warehouse="other") for name in ("x", "y", "z")), work("a"), work("b")]
    queue = WorkQueue([*works, work("killer", alone=True)], ours)
    with monkeypatch.context() as patch:
        patch.setattr(work_queue, "CANDIDATES", 2)
        patch.setattr(work_queue, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        refuse_claims(patch, ours["other"])
        for _ in range(2):
            queue._take_turn()
        first = take(queue)
        theirs["local"].release(datetime.now(UTC))
        queue._take_turn()
        second = take(queue)
        queue.finish(first)
        queue.finish(second)
        for _ in range(2):
            queue._take_turn()
        killer = take(queue)
    assert [taken.table.name for taken in (first, second, killer)] == ["b", "a", "killer"]
    queue.finish(killer)
    assert not queue.is_done
    for _ in range(2):
        queue._take_turn()
    assert {take(queue).table.name for _ in range(3)} == {"x", "y", "z"}, "after the warehouse responds again"
    assert list_claimed(other_catalog) == {"uuid-x", "uuid-y", "uuid-z"}


def test_runs_of_any_warehouse_are_recorded_soon(runner_of_both: Any) -> None:
    """Other runners wait for the runs on the last tables of a warehouse that has no turn."""
    runner_of_both("them")["local"].take(candidates("a"), 1, [], datetime.now(UTC))
    calls = list[bool]()
    works = [work("b", warehouse="other"), work("a")]
    queue = WorkQueue(works, runner_of_both("us"), is_recorded=lambda _: False, record_soon=lambda: calls.append(True))
    for _ in range(2):
        claim_next(queue)
    finished = take(queue)
    claim_next(queue)
    assert calls == [], "a table is in work"
    queue.finish(finished)
    claim_next(queue)
    assert calls == [True]


def refuse_claims(patch: pytest.MonkeyPatch, claims: RunnerClaims) -> list[float]:
    """Let each claim and release of a warehouse fail. Return the times of the failures."""
    failures = list[float]()

    def refuse(*_: Any, **more: Any) -> None:
        failures.append(work_queue.time.monotonic())
        raise CatalogUnreachableError(f"warehouse {claims.warehouse} does not respond")

    patch.setattr(claims, "take", refuse)
    return failures


def test_table_that_runs_alone_begins_in_any_warehouse(runner_of_both: Any) -> None:
    """Regression: the end of the night was for it, but claims were for the warehouse of the first waiting table."""
    queue = WorkQueue([work("a"), work("killer", alone=True, warehouse="other")], runner_of_both("us"))
    assert queue.take(only_alone=True) is None, "no table is claimed"
    claim_next(queue)
    killer = queue.take(only_alone=True)
    assert killer is not None
    assert killer.table.name == "killer"


def claim_next(queue: WorkQueue) -> bool:
    """Send the next request of the thread that claims tables. Return False if it waits afterwards."""
    return queue._claim_next(queue._find_warehouse_in_turn())


def list_claimed(catalog: SqlCatalog) -> set[str]:
    """Return the UUIDs of claimed tables."""
    return set(read_claims(catalog.load_table("ops.maintenance_lease").properties))


def test_dead_runner_loses_its_tables_after_a_lease(runner: Any, start: Any) -> None:
    reported: list[Mapping[str, str]] = []

    def report(warehouse: str, holders: Mapping[str, str], works: Collection[TableWork]) -> dict[str, int]:
        del warehouse, works
        reported.append(holders)
        return dict.fromkeys(holders, 1)

    dead = RunnerClaims(CONFIG, "local", runner("us").catalog, "dead", life=SECOND)
    dead.register(datetime.now(UTC))
    dead.take(candidates("a"), 1, [], datetime.now(UTC))
    queue = start(runner("us"), work("a"), work("b"), report_dead=report)
    assert take(queue).table.name == "b"
    queue.finish(work("b"))
    taken_over = take(queue)
    assert (taken_over.table.name, taken_over.is_suspect) == ("a", True)
    assert reported == [{"uuid-a": "dead"}]
    with pytest.raises(LeaseLostError, match="took over the claims of dead"):
        dead.renew(datetime.now(UTC))


def test_completed_table_of_a_dead_runner_is_no_suspect(runner: Any, start: Any, local_catalog: SqlCatalog) -> None:
    """Its claim does not remain: the next night would take the table for the cause of the death."""
    reported: list[list[str]] = []

    def report(_: str, holders: Mapping[str, str], works: Collection[TableWork]) -> dict[str, int]:
        reported.append([work.table.name for work in works])
        return dict.fromkeys(holders, 1)

    dead = RunnerClaims(CONFIG, "local", local_catalog, "dead", life=3 * SECOND)
    dead.register(datetime.now(UTC))
    dead.take(candidates("a", "b"), 2, [], datetime.now(UTC))
    (run,) = work("b").runs
    completed = dataclasses.replace(run, runner="dead", state=RunState.SUCCEEDED, started_at=NOW, finished_at=NOW)
    queue = start(runner("us"), work("a"), work("b"), work("c"), report_dead=report)
    assert take(queue).table.name == "c"
    job_runs.append(local_catalog, [completed], NOW)
    queue.finish(work("c"))
    assert take(queue).table.name == "a"
    assert reported == [["a"]]
    assert [dropped.work.table.name for dropped in queue.pop_dropped()] == ["b"]
    assert find_dead_claims(local_catalog, datetime.now(UTC) + LIFE / 2) == {}, "no claim of the dead runner remains"
    assert queue.is_done


def test_claim_of_a_job_is_left_to_it(runner: Any, start: Any, local_catalog: SqlCatalog) -> None:
    job = TableClaim(CONFIG, work("a").table, "uuid-a", local_catalog, "job")
    job.take(datetime.now(UTC))
    queue = start(runner("us"), work("a"), work("b"))
    assert take(queue).table.name == "b"
    assert [(one.work.table.name, one.reason) for one in queue.pop_dropped()] == [("a", "job works on this table")]
    assert queue.is_done


def test_job_waits_until_a_runner_releases_the_table(runner: Any, start: Any, local_catalog: SqlCatalog) -> None:
    ours = runner("us")
    queue = start(ours, work("a", "compaction", "statistics"), work("b"), look_ahead=2)
    first = take(queue)
    job = TableClaim(CONFIG, first.table, first.uuid, local_catalog, "job")
    thread = threading.Thread(target=lambda: job.take(datetime.now(UTC)))
    thread.start()
    while queue.find_request(first) is None:
        ours.renew(datetime.now(UTC))
    assert queue.find_request(first) == "job"
    assert job.expires_at < datetime.now(UTC), "two would work on the table"
    queue.finish(first)
    queue.finish(take(queue))
    thread.join(30)
    assert job.expires_at > datetime.now(UTC)
    assert read_claims(local_catalog.load_table("ops.maintenance_lease").properties)["uuid-a"].holder == "job"


def test_repeated_release_leaves_the_claim_of_another_runner(runner: Any, local_catalog: SqlCatalog) -> None:
    """Regression: the runner repeats a release if it got no response. The next holder lost its claim."""
    ours, theirs = runner("us"), runner("them")
    ours.take(candidates("a"), 1, [], datetime.now(UTC))
    ours.take([], 0, ["uuid-a"], datetime.now(UTC))
    assert theirs.take(candidates("a"), 1, [], datetime.now(UTC)).taken == {"uuid-a"}
    repeated = [ours.take(candidates(*names), 1, ["uuid-a"], datetime.now(UTC)) for names in (["b"], [])]
    assert list_claimed(local_catalog) == {"uuid-a", "uuid-b"}
    assert [result.released for result in repeated] == [{"uuid-a"}, {"uuid-a"}], "there is nothing to repeat"
    theirs.renew(datetime.now(UTC))


def test_release_is_repeated_after_conflicts(
    runner: Any, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the claim of a finished table remained until the end of the run."""
    queue = WorkQueue([work("a")], {"local": runner("us")})
    claim_next(queue)
    queue.finish(take(queue))
    with monkeypatch.context() as patch:
        patch.setattr(runner_claims, "ATTEMPTS", 2)
        patch.setattr(runner_claims, "add_snapshot", lambda *_, **__: False)
        claim_next(queue)
    assert list_claimed(local_catalog) == {"uuid-a"}
    claim_next(queue)
    assert list_claimed(local_catalog) == set()


def test_impatient_job_is_refused(runner: Any, local_catalog: SqlCatalog) -> None:
    ours = runner("us")
    ours.take(candidates("a"), 1, [], datetime.now(UTC))
    job = TableClaim(CONFIG, work("a").table, "uuid-a", local_catalog, "job", patience=timedelta())
    with pytest.raises(LeaseHeldError, match=r"sales\.a is maintained by us since"):
        job.take(datetime.now(UTC))
    assert ours.take(candidates("a", "b"), 2, ["uuid-a"], datetime.now(UTC)).at_jobs == {}, "no request is left behind"


def test_late_renewal_does_not_retake_a_released_claim(runner: Any, local_catalog: SqlCatalog) -> None:
    """Regression: a renewal that the network delayed made a released lease valid retry."""
    ours = runner("us")
    ours.take(candidates("a"), 1, [], datetime.now(UTC))
    delayed = local_catalog.load_table("ops.maintenance_lease")
    ours.release(datetime.now(UTC))
    assert not set_properties(delayed, ours._to_properties(datetime.now(UTC)))
    job = TableClaim(CONFIG, work("a").table, "uuid-a", local_catalog, "job")
    job.take(datetime.now(UTC))
    delayed = local_catalog.load_table("ops.maintenance_lease")
    job.release(datetime.now(UTC))
    assert not set_properties(delayed, {"lakewright.claim.uuid-a": "late"})
    assert active_runners(local_catalog, datetime.now(UTC)) == frozenset()


def test_expired_claims_are_reported_once(runner: Any, local_catalog: SqlCatalog) -> None:
    runner("dead", datetime.now(UTC) - 2 * LIFE).take(candidates("a", "b"), 2, [], datetime.now(UTC) - 2 * LIFE)
    assert find_dead_claims(local_catalog, datetime.now(UTC)).keys() == {"uuid-a", "uuid-b"}
    assert runner("us").forget_dead() == {"uuid-a": "dead", "uuid-b": "dead"}
    assert runner("them").forget_dead() == {}


def test_lease_of_an_earlier_release_excludes_runners_and_jobs(runner: Any, local_catalog: SqlCatalog) -> None:
    ours = runner("us")
    times = {
        "since": datetime.now(UTC).isoformat(),
        "heartbeat_at": datetime.now(UTC).isoformat(),
        "expires_at": (datetime.now(UTC) + LIFE).isoformat(),
    }
    lease = json.dumps({"warehouse": "local", "holder": "old/1", **times})
    assert set_properties(local_catalog.load_table("ops.maintenance_lease"), {"lakewright.lease": lease})
    with pytest.raises(LeaseHeldError, match="maintained by old/1 of an earlier release"):
        ours.take(candidates("a"), 1, [], datetime.now(UTC))
    with pytest.raises(LeaseHeldError, match="maintained by old/1 of an earlier release"):
        runner("them")
    with pytest.raises(LeaseHeldError, match="maintained by old/1 of an earlier release"):
        TableClaim(CONFIG, work("a").table, "uuid-a", local_catalog, "job").take(datetime.now(UTC))
    assert ours.take(candidates("a"), 1, [], datetime.now(UTC) + LIFE).taken == {"uuid-a"}


def test_snapshots_of_the_lease_table_are_limited(
    runner: Any, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_table, "MAX_SNAPSHOTS", 4)
    monkeypatch.setattr(lease_table, "KEPT_SNAPSHOTS", 2)
    ours = runner("us")
    for number in range(5):
        ours.take(candidates(f"t{number}"), 1, [f"uuid-t{number - 1}"], datetime.now(UTC))
    assert len(local_catalog.load_table("ops.maintenance_lease").metadata.snapshots) > 4
    ours.renew(datetime.now(UTC))
    assert len(local_catalog.load_table("ops.maintenance_lease").metadata.snapshots) == 2
    assert ours.take(candidates("last"), 1, [], datetime.now(UTC)).taken == {"uuid-last"}


def test_killed_run_has_not_completed(local_catalog: SqlCatalog) -> None:
    ended = CompletedRuns(CONFIG, "local", local_catalog)
    one = RunRecord(runner="x", table=work("a").table, table_uuid=uuid.uuid4().hex, job="compaction", queued_at=NOW)
    killed = dataclasses.replace(one, state=RunState.FAILED, started_at=NOW, metrics={KILLED: True})
    failed = dataclasses.replace(one, id="f" * 32, job="statistics", state=RunState.FAILED, started_at=NOW)
    stopped = dataclasses.replace(one, id="a" * 32, job="retention", state=RunState.CANCELLED, started_at=NOW)
    slow = dataclasses.replace(stopped, id="b" * 32, job="staged-files", metrics={TIMED_OUT: True})
    job_runs.append(local_catalog, [killed, failed, stopped, slow], NOW)
    ended.refresh()
    assert (one.table_uuid, "retention") not in ended, "its runner was stopped"
    assert (one.table_uuid, "staged-files") in ended
    assert (one.table_uuid, "compaction") not in ended
    assert (one.table_uuid, "statistics") in ended


def end_run(table: str) -> RunRecord:
    """Return a completed run of `statistics`."""
    times = {"started_at": NOW, "finished_at": NOW}
    return dataclasses.replace(work(table).runs[0], id=uuid.uuid4().hex, state=RunState.SUCCEEDED, **times)


def rewrite_files(table: Table) -> None:
    """Replace all files in one commit, as a compaction does."""
    files = [task.file for task in table.scan().plan_files()]
    new_files = list(_dataframe_to_data_files(table.metadata, table.scan().to_arrow(), table.io))
    with table.transaction() as change, change.update_snapshot().overwrite() as rewrite:
        for file in files:
            rewrite.delete_data_file(file)
        for file in new_files:
            rewrite.append_data_file(file)


def test_compaction_of_the_runs_completes_no_job(local_catalog: SqlCatalog) -> None:
    """Regression: its new files have the runs of earlier nights, so tonight's jobs were skipped as done."""
    job_runs.append(local_catalog, [end_run("earlier")], NOW)
    ended = CompletedRuns(CONFIG, "local", local_catalog)
    job_runs.append(local_catalog, [end_run("tonight")], NOW)
    rewrite_files(local_catalog.load_table("ops.job_runs"))
    ended.refresh()
    assert ("uuid-tonight", "statistics") in ended
    assert ("uuid-earlier", "statistics") not in ended


def test_merged_manifests_hide_no_completed_run(local_catalog: SqlCatalog) -> None:
    """Regression: files of a merged manifest count as existing, so jobs of other runners were repeated."""
    job_runs.append(local_catalog, [end_run("earlier")], NOW)
    ended = CompletedRuns(CONFIG, "local", local_catalog)
    with local_catalog.load_table("ops.job_runs").transaction() as change:
        change.set_properties({"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "1"})
    for name in ("tonight", "later"):
        job_runs.append(local_catalog, [end_run(name)], NOW)
    current = local_catalog.load_table("ops.job_runs").current_snapshot()
    assert current is not None
    assert len(current.manifests(local_catalog.load_table("ops.job_runs").io)) == 1
    ended.refresh()
    assert {name for name in ("earlier", "tonight", "later") if (f"uuid-{name}", "statistics") in ended} == {
        "tonight",
        "later",
    }
