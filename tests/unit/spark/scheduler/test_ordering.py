"""Order of tables, back-off after failures, and budgets: properties of the pure functions."""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lakewright_spark.cli.ranking import refuse_long_waits
from lakewright_spark.errors import MaintenanceFailedError
from lakewright_spark.maintenance.jobs.job import Failures, History
from lakewright_spark.maintenance.table.expiration import Ref, Snapshot
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.maintenance.table.file_groups import BYTES_PER_SECOND, choose_groups, count_cores
from lakewright_spark.maintenance.table.rewrite_estimate import CommittedFiles
from lakewright_spark.policies.model import CompactionPolicy, JobName, TablePolicies
from lakewright_spark.scheduler.back_off import LONGEST, SHORTEST, compute_delay, reason_to_back_off
from lakewright_spark.scheduler.due_times import find_due_since
from lakewright_spark.scheduler.health import Health, compute_health
from lakewright_spark.scheduler.ordering import (
    Budget,
    Rank,
    compute_waiting_since,
    parse_budget,
    rank_key,
    select_within,
)
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.plan import JobDecision, TablePlan, WarehousePlan, decide, rank_table
from lakewright_spark.scheduler.prediction import Prediction
from lakewright_spark.scheduler.run_log import job_runs
from lakewright_spark.scheduler.run_log.histories import load_histories
from lakewright_spark.scheduler.run_log.records import FIRST, KILLED, TIMED_OUT, RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog.sql import SqlCatalog

NOW = datetime(2026, 11, 22, 2, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TABLE = TableIdentifier("local", ("sales",), "orders")
FACTS = TableFacts(
    table=TABLE,
    uuid="u",
    properties={},
    snapshots=(Snapshot(1, None, NOW - 2 * HOUR),),
    snapshot=1,
    changed_at=NOW - 2 * HOUR,
    touched_at=NOW - 2 * HOUR,
    data_files=50,
    data_bytes=50 * 2**20,
)

counts = st.integers(min_value=1, max_value=200)
ranks = st.builds(
    Rank,
    st.timedeltas(timedelta(), timedelta(days=50)).map(lambda waited: NOW - waited),
    st.integers(0, 3),
    st.builds(Prediction, st.integers(0, 10_000), st.integers(0, 2**40), st.floats(1, 3600)),
    st.integers(0, 100),
    st.builds(Health, st.integers(0, 40), st.integers(0, 40), st.integers(0, 20)),
    st.floats(0.01, 1000),
)


@given(counts, st.integers(0, 3))
def test_delay_grows_to_a_week(count: int, kills: int) -> None:
    delay, longer = (compute_delay(Failures(number, NOW, min(kills, number))) for number in (count, count + 1))
    assert timedelta() <= delay <= longer <= LONGEST
    assert compute_delay(Failures(count, NOW)) >= SHORTEST
    assert compute_delay(Failures(200, NOW)) == LONGEST
    assert compute_delay(Failures(2, NOW, kills=2)) == 16 * SHORTEST


@given(counts)
def test_job_is_held_until_its_delay_has_passed(count: int) -> None:
    failures = Failures(count, NOW)
    next_attempt = NOW + compute_delay(failures)
    assert reason_to_back_off(failures, next_attempt - timedelta(seconds=1)) is not None
    assert reason_to_back_off(failures, next_attempt) is None


@given(st.lists(ranks, max_size=30))
def test_tables_that_kill_runners_come_last(drawn: list[Rank]) -> None:
    ordered = sorted(drawn, key=lambda rank: rank_key(rank, NOW))
    assert [rank.runs_alone for rank in ordered] == sorted(rank.runs_alone for rank in ordered)
    kills = [rank.kills for rank in ordered if rank.runs_alone]
    assert kills == sorted(kills)
    suspects = [dataclasses.replace(rank, kills=1) for rank in drawn]
    assert all(rank_key(one, NOW) == rank_key(dataclasses.replace(one, kills=0), NOW) for one in suspects)


@given(ranks, ranks)
def test_longer_wait_beats_any_gain(first: Rank, second: Rank) -> None:
    first = dataclasses.replace(first, kills=0, waiting_since=second.waiting_since - DAY)
    second = dataclasses.replace(second, kills=0)
    if first.count_days(NOW) > second.count_days(NOW):
        assert rank_key(first, NOW) < rank_key(second, NOW)


DELETES = dataclasses.replace(FACTS, data_bytes=50 * 512 * 2**20, delete_files=10)


@pytest.mark.parametrize(
    ("facts", "health"),
    [
        (dataclasses.replace(FACTS, data_files=1, delete_files=9, deleted_share=1.0), Health()),
        (dataclasses.replace(FACTS, data_bytes=2**40), Health()),
        (dataclasses.replace(FACTS, data_files=10_000, data_bytes=400 * 2**20), Health(1, 40, 20)),
        (FACTS, Health(35, 40, 20)),  # 50 MiB in all cost little, whatever the number of files
        (dataclasses.replace(DELETES, equality_deleted_share=0.075), Health(40, 20, 20)),
        (dataclasses.replace(DELETES, equality_deleted_share=0.5), Health(40, 0, 20)),
        (dataclasses.replace(DELETES, deleted_share=0.15), Health(40, 40, 10)),
        (dataclasses.replace(DELETES, deleted_share=0.3), Health(40, 40, 0)),
    ],
)
def test_health_by_file_sizes_and_deletes(facts: TableFacts, health: Health) -> None:
    assert compute_health(facts, CompactionPolicy()) == health


def test_tables_with_deletes_and_weight_come_first() -> None:
    """They waited equally long. `expired` has no due compaction, so its delete files remain."""
    waiting, saved = NOW - HOUR, Prediction(10, 2**30, 60.0)
    compacted = dataclasses.replace(DELETES, equality_deleted_share=0.5)

    def rank(facts: TableFacts, job: JobName, prediction: Prediction, weight: float = 1.0) -> Rank:
        policies = TablePolicies.model_validate({"ranking": {"weight": weight}})
        decisions = [JobDecision(job, "due", "", prediction)]
        return dataclasses.replace(rank_table(facts, policies, History(), decisions), waiting_since=waiting)

    large = dataclasses.replace(FACTS, data_bytes=2**40)
    turns = {
        "weighted": rank(large, "compaction", saved, weight=4.0),  # 40
        "deletes": rank(compacted, "compaction", saved),  # (10 + 10) x 1.4
        "no files saved": rank(compacted, "compaction", Prediction(0, 2**30, 60.0)),  # 10 x 1.4
        "files": rank(large, "compaction", saved),  # 10
        "expired, weighted": rank(compacted, "snapshot-expiration", Prediction(0, 0, 1.0), weight=2.0),
        "expired": rank(compacted, "snapshot-expiration", Prediction(0, 0, 1.0)),
    }
    assert {name: round(one.gain, 6) for name, one in turns.items()} == {
        "weighted": 40,
        "deletes": 28,
        "no files saved": 14,
        "files": 10,
        "expired, weighted": 0,
        "expired": 0,
    }
    assert sorted(sorted(turns), key=lambda name: rank_key(turns[name], NOW)) == list(turns)


@pytest.mark.parametrize("weight", [0, -1, 1001, "nan", "inf"])
def test_invalid_weight(weight: object) -> None:
    with pytest.raises(ValueError, match="weight"):
        TablePolicies.model_validate({"ranking": {"weight": weight}})


@settings(max_examples=50)
@given(
    st.lists(st.floats(1, 100), min_size=5, max_size=60),
    st.lists(st.integers(0, 1000), min_size=60, max_size=60),
    st.floats(0.25, 1.0),
)
def test_each_table_gets_its_turn(costs: list[float], files: list[int], capacity: float) -> None:
    """With time for a share of the work, each table waits at most as many nights as it takes, and one for the rest."""
    budget = max(capacity * sum(costs), *costs)
    last = [NOW - DAY] * len(costs)
    waits = [0] * len(costs)
    longest = 0
    for night in range(20):
        now, remaining = NOW + night * DAY, budget
        predictions = [Prediction(files[number], 0, cost) for number, cost in enumerate(costs)]
        rank = {n: Rank(last[n] + DAY, 0, predictions[n]) for n in range(len(costs))}
        waits = [wait + 1 for wait in waits]
        for number in sorted(rank, key=lambda n: rank_key(rank[n], now)):
            if costs[number] > remaining:
                break  # the night ends during the job
            remaining -= costs[number]
            last[number] = now + timedelta(seconds=budget - remaining)
            longest, waits[number] = max(longest, waits[number]), 0
    # A night loses at most the job at its end.
    nights = sum(costs) / max(budget - max(costs), budget / 2) + 2
    assert max([longest, *waits]) <= nights


@given(st.lists(ranks, max_size=30), st.integers(0, 2**41))
def test_budget_is_kept_and_never_starves(drawn: list[Rank], most: int) -> None:
    selected = select_within(Budget(bytes=most), drawn)
    assert not drawn or selected[0], "the table that waits longest"
    selected_bytes = [rank.prediction.bytes for rank, fits in zip(drawn, selected, strict=True) if fits]
    assert sum(selected_bytes) <= max(most, selected_bytes[0] if selected_bytes else 0)
    assert all(select_within(None, drawn))


@pytest.mark.parametrize("text", ["", "0GiB", "0m", "90s", "many", "500"])
def test_invalid_budget(text: str) -> None:
    with pytest.raises(ValueError, match="expected bytes such as 500GiB, or minutes such as 90m"):
        parse_budget(text)


@given(st.integers(1, 24 * 60), st.integers(2**20, 2**36), st.integers(0, 300), st.integers(1, 16))
def test_groups_in_work_take_at_most_half_the_time_limit(minutes: int, target: int, cores: int, tables: int) -> None:
    """The groups of all tables share the rate, unless twice the target file size needs larger groups."""
    limit = timedelta(minutes=minutes)
    policy = CompactionPolicy.model_validate({"target_file_size": target})
    size, at_once = choose_groups(policy, limit, cores=cores, parallel_tables=tables)
    assert at_once == min(max(math.ceil(cores / tables), 1), 64)
    assert size == 2 * target or 2 * target < size <= limit.total_seconds() / 2 * BYTES_PER_SECOND / (at_once * tables)
    policy = CompactionPolicy.model_validate({"target_file_size": "4MiB", "max_group_size": "64MiB"})
    assert choose_groups(policy, limit, cores=cores, parallel_tables=tables) == (64 * 2**20, at_once)


def test_groups_in_work_are_a_twentieth_of_a_large_table() -> None:
    """A killed run repeats at most these groups. Sorted groups are larger: each group is sorted by itself."""
    policy, limit, gib = CompactionPolicy(), timedelta(hours=24), 2**30
    assert choose_groups(policy, limit, cores=2, table_bytes=400 * gib) == (10 * gib, 2)
    assert choose_groups(policy, limit, cores=2, table_bytes=4 * gib) == (gib, 2)
    sorted_policy = CompactionPolicy(strategy="sort", columns=("n",))
    assert choose_groups(sorted_policy, limit, cores=2, table_bytes=4 * gib).size > 40 * gib


EXECUTORS = {"spark.master": "k8s://host", "spark.executor.instances": "4", "spark.executor.cores": "2"}


@pytest.mark.parametrize(
    ("properties", "cores"),
    [
        ({"spark.master": "local"}, 1),
        ({"spark.master": "local[*]"}, 6),
        ({"spark.master": "local[3, 2]", "spark.default.parallelism": "200"}, 3),
        (EXECUTORS, 8),
        ({**EXECUTORS, "spark.default.parallelism": "200"}, 8),
        ({**EXECUTORS, "spark.dynamicAllocation.maxExecutors": "12"}, 8),
        ({**EXECUTORS, "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "12"}, 24),
        ({**EXECUTORS, "spark.dynamicAllocation.enabled": "true"}, 8),
        ({"spark.master": "k8s://host"}, 2),
    ],
)
def test_cores_of_a_session(properties: dict[str, str], cores: int) -> None:
    assert count_cores(properties, 6) == cores


def test_small_groups_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected at least twice `target_file_size`, 1\.0GiB, found 512\.0MiB"):
        CompactionPolicy.model_validate({"max_group_size": "512MiB"})


def decide_job(job: JobName, history: History, **policies: object) -> tuple[str, str]:
    (decision,) = decide(FACTS, TablePolicies.model_validate(policies), history, NOW, jobs=[job])
    return decision.verdict, decision.reason


def test_failed_job_is_held_back() -> None:
    failures = Failures(3, NOW - HOUR)
    verdict, reason = decide_job("compaction", History(failures={"compaction": failures}))
    assert (verdict, reason) == (
        "held",
        "failed 3 times in a row, last 2026-11-22 01:00:00 UTC; the next attempt is after 2026-11-22 05:00:00 UTC",
    )
    assert decide_job("statistics", History(failures={"compaction": failures}))[0] == "due"


def test_cadence_of_a_policy() -> None:
    history = History({"compaction": NOW - 3 * DAY, "orphan-files": NOW - 3 * DAY})
    assert decide_job("compaction", history)[0] == "due"
    assert decide_job("orphan-files", history)[0] == "not due", "every week by default"
    weekly = {"compaction": {"every": "7d"}, "orphan-files": {"every": "1d"}}
    assert decide_job("compaction", history, job_settings=weekly)[0] == "not due"
    assert decide_job("orphan-files", history, job_settings=weekly)[0] == "due"


def check_waits(facts: TableFacts, history: History, max_wait: timedelta, *jobs: JobName, **policies: object) -> None:
    resolved = TablePolicies.model_validate(policies)
    decisions = tuple(decide(facts, resolved, history, NOW, jobs=jobs, find_due_since=find_due_since))
    table = TablePlan(facts, resolved, decisions, rank_table(facts, resolved, history, decisions))
    refuse_long_waits(MaintenanceOutcome("us", plans=[WarehousePlan("local", (table,), {})]), max_wait, NOW)


BUSY = dataclasses.replace(
    FACTS, snapshots=tuple(Snapshot(n, n - 1 or None, NOW - (11 - n) * DAY) for n in range(1, 11)), snapshot=10
)
"""A commit on each of the last ten days."""


def test_long_waits_are_refused() -> None:
    """A check with a threshold: the time for which each job of a table has been due."""
    history = History({"compaction": NOW - 3 * DAY, "statistics": NOW - HOUR}, first_due=NOW - 2 * DAY)
    jobs: tuple[JobName, ...] = ("compaction", "statistics", "orphan-files")
    check_waits(BUSY, history, 10 * DAY, *jobs)
    with pytest.raises(
        MaintenanceFailedError, match=r"^1 jobs .*: orphan-files of local\.sales.*\(never succeeded, due"
    ):
        check_waits(BUSY, history, 3 * DAY, *jobs)
    with pytest.raises(MaintenanceFailedError, match=r"^2 jobs .* compaction of .*\(last success 2026-11-19 02:00:00"):
        check_waits(BUSY, history, DAY, *jobs)


def test_healthy_tables_wait_for_nothing() -> None:
    """An idle table that changed an hour ago, a weekly job, and the first snapshot that is old enough to expire."""
    changed = dataclasses.replace(FACTS, snapshots=(Snapshot(1, None, NOW - 30 * DAY), *FACTS.snapshots))
    check_waits(changed, History({"compaction": NOW - 29 * DAY}), 5 * DAY, "compaction")
    weekly = History({"orphan-files": NOW - 6.8 * DAY})
    assert decide(FACTS, TablePolicies(), weekly, NOW, jobs=["orphan-files"])[0].verdict == "due"
    check_waits(FACTS, weekly, 5 * DAY, "orphan-files")
    with pytest.raises(MaintenanceFailedError, match=r"^1 jobs .* orphan-files of .*, due since 2026-11-1[67]"):
        check_waits(FACTS, History({"orphan-files": NOW - 12 * DAY}), 5 * DAY, "orphan-files")
    line = (Snapshot(1, None, NOW - 6 * DAY), Snapshot(2, 1, NOW - 5.5 * DAY))
    aged = dataclasses.replace(FACTS, snapshots=line, refs=(Ref("main", "BRANCH", 2),), snapshot=2)
    (expiration,) = decide(
        aged, TablePolicies(), History(), NOW, jobs=["snapshot-expiration"], find_due_since=find_due_since
    )
    assert expiration.due_since is not None
    assert NOW - DAY <= expiration.due_since <= NOW - DAY + HOUR
    (expiration,) = decide(aged, TablePolicies(), History(), NOW, jobs=["snapshot-expiration"])
    assert expiration.due_since is None, "only checks need the time"


@pytest.mark.parametrize("snapshots", [3, 2])
def test_rewrites_are_no_changes(snapshots: int) -> None:
    """The commit of the last compaction follows its start. Its parent may have expired."""
    line = (
        Snapshot(1, None, NOW - 11 * DAY),
        Snapshot(2, 1, NOW - 10 * DAY + HOUR, is_rewrite=True),
        Snapshot(3, 2, NOW - HOUR),
    )
    compacted = dataclasses.replace(FACTS, snapshots=line[-snapshots:], snapshot=3, changed_at=NOW - HOUR)
    history = History({"compaction": NOW - 10 * DAY})
    check_waits(compacted, history, 2 * HOUR, "compaction")
    with pytest.raises(MaintenanceFailedError, match=r"^1 jobs have been due for more than 0:30:00: compaction of"):
        check_waits(compacted, history, HOUR / 2, "compaction")


def test_unreadable_table_waits_for_nothing() -> None:
    """Spark would skip the jobs every night."""
    unreadable = dataclasses.replace(BUSY, unreadable_types=("timestamp_ns",))
    check_waits(unreadable, History(first_due=NOW - 9 * DAY), DAY, "compaction", "statistics")
    (decision,) = decide(unreadable, TablePolicies(), History(), NOW, jobs=["compaction"])
    assert decision.reason == "Spark cannot read columns of type timestamp_ns"


def test_slowly_growing_table_waits_since_its_fifth_file() -> None:
    additions = tuple(CommittedFiles(NOW - days * DAY, 1, 2**20) for days in range(1, 6))
    slow = dataclasses.replace(
        BUSY, data_files=5, data_bytes=5 * 2**20, additions=additions, changed_at=NOW - DAY, delete_files=0
    )
    history = History({"compaction": NOW - 9 * DAY})
    (compaction,) = decide(slow, TablePolicies(), history, NOW, jobs=["compaction"], find_due_since=find_due_since)
    assert compaction.due_since is not None
    assert NOW - DAY <= compaction.due_since <= NOW - DAY + HOUR


def test_failed_attempt_counts_as_a_turn() -> None:
    never = compute_waiting_since(FACTS, ["compaction"], TablePolicies(), History())
    failed = History(failures={"compaction": Failures(9, NOW - DAY)})
    assert never == NOW - 2 * HOUR
    assert compute_waiting_since(FACTS, ["compaction"], TablePolicies(), failed) == NOW
    beside = History(failures={"compaction": Failures(1, NOW - DAY, kills=1)})
    assert compute_waiting_since(FACTS, ["compaction"], TablePolicies(), beside) == never, "it may not be the cause"
    first_due = History(first_due=NOW - 5 * DAY)
    assert compute_waiting_since(FACTS, ["compaction"], TablePolicies(), first_due) == NOW - 5 * DAY


def run(job: JobName, state: RunState, ago: timedelta, **metrics: object) -> RunRecord:
    at = NOW - ago
    times = {} if metrics.get(FIRST) else {"started_at": at, "finished_at": at + timedelta(seconds=7)}
    return RunRecord(
        runner="r", table=TABLE, table_uuid="u", job=job, state=state, queued_at=at, metrics=metrics, **times
    )


def test_history_has_failures_since_the_last_success(local_catalog: SqlCatalog) -> None:
    runs = [
        run("compaction", RunState.FAILED, 9 * DAY),
        run("compaction", RunState.SUCCEEDED, 8 * DAY),
        run("compaction", RunState.FAILED, 3 * DAY, **{KILLED: True}),
        run("compaction", RunState.CANCELLED, 2 * DAY, **{TIMED_OUT: True}),
        run("compaction", RunState.CANCELLED, 1 * DAY),
        run("retention", RunState.CANCELLED, 4 * DAY, **{FIRST: True}),
        run("statistics", RunState.SUCCEEDED, DAY),
    ]
    job_runs.append(local_catalog, runs, NOW)
    history = load_histories(local_catalog, NOW)["u"]
    assert history.failures == {"compaction": Failures(2, NOW - 2 * DAY + timedelta(seconds=7), kills=1)}
    assert (history.kills, history.seconds["statistics"]) == (1, 7.0)
    assert history.first_due == NOW - 4 * DAY
