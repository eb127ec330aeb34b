"""The measured effect of the last compaction, and predictions that are scaled from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from lakewright_spark.maintenance.jobs.job import Effect, History
from lakewright_spark.maintenance.table.facts import TableFacts
from lakewright_spark.policies.model import JobName, TablePolicies
from lakewright_spark.scheduler.prediction import Prediction, estimate_seconds, measure_pace, predict_job
from lakewright_spark.scheduler.run_log import histories, job_runs, ops_tables
from lakewright_spark.scheduler.run_log.histories import EFFECTS_WINDOW, load_histories
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog.sql import SqlCatalog

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
DAY = timedelta(days=1)
MIB = 2**20
TABLE = TableIdentifier("local", ("sales",), "orders")
FACTS = TableFacts(
    table=TABLE, uuid="u", properties={}, touched_at=NOW, data_files=100, data_bytes=100 * MIB, delete_files=0
)
EFFECT = Effect(99, 100 * MIB, 100)
"""Predicted effect of a compaction of the table."""


def run(
    ago: timedelta,
    metrics: Mapping[str, object],
    job: JobName = "compaction",
    state: RunState = RunState.SUCCEEDED,
    uuid: str = "u",
) -> RunRecord:
    at = NOW - ago
    return RunRecord(
        runner="r",
        table=TABLE,
        table_uuid=uuid,
        job=job,
        state=state,
        queued_at=at,
        started_at=at,
        finished_at=at + timedelta(seconds=8),
        metrics=metrics,
    )


def read_effects(catalog: SqlCatalog, *runs: RunRecord) -> Mapping[str, Mapping[JobName, Effect]]:
    if runs:
        job_runs.append(catalog, runs, NOW)
    return {uuid: history.effects for uuid, history in load_histories(catalog, NOW).items()}


def test_table_without_runs_has_no_effects(local_catalog: SqlCatalog) -> None:
    assert read_effects(local_catalog) == {}
    assert read_effects(local_catalog, run(DAY, {"rewritten": 3}, state=RunState.FAILED)) == {"u": {}}


@pytest.mark.parametrize("days", [(2, 3, 5), (5, 3, 2), (3, 2, 5)])
def test_effect_of_the_newest_success_counts(
    days: tuple[int, ...], local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are appended, and read, in any order."""
    monkeypatch.setattr(histories, "read_parts", lambda *arguments: ops_tables.read_parts(*arguments, rows_per_part=1))
    for ago in days:
        read_effects(local_catalog, run(ago * DAY, {"rewritten": 10 * ago, "added": ago, "bytes": 100 * ago}))
    effects = read_effects(
        local_catalog,
        run(DAY, {"rewritten": 9, "added": 2, "bytes": 90}, state=RunState.FAILED),
        run(DAY, {"rewritten": 8, "added": 3, "bytes": 80}, state=RunState.CANCELLED),
        run(4 * DAY, {"rewritten": 20, "added": 4, "bytes": 200}, uuid="other"),
    )
    assert effects == {"u": {"compaction": Effect(18, 200, 20)}, "other": {"compaction": Effect(16, 200, 20)}}


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({}, Effect()),
        ({"rewritten": 0, "added": 0, "bytes": 0}, Effect()),
        ({"rewritten": 4}, Effect(4, 0, 4)),
        ({"rewritten": 1, "added": 3, "bytes": 9}, Effect(-2, 9, 1)),
        ({"rewritten": 10**12, "added": 1, "bytes": 2**63 - 1}, Effect(10**12 - 1, 2**63 - 1, 10**12)),
        ({"rewritten": 2, "added": 1, "bytes": 9, "predicted": {"files": 5, "bytes": 5}}, Effect(1, 9, 2)),
    ],
)
def test_metrics_of_a_run(metrics: Mapping[str, object], expected: Effect, local_catalog: SqlCatalog) -> None:
    """A large file that is split adds files."""
    assert read_effects(local_catalog, run(DAY, metrics)) == {"u": {"compaction": expected}}


def test_jobs_without_predictions_have_no_effects(local_catalog: SqlCatalog) -> None:
    assert read_effects(local_catalog, run(DAY, {"rewritten": 4}, job="rewrite-manifests")) == {"u": {}}


def test_restores_are_no_jobs(local_catalog: SqlCatalog) -> None:
    """Regression: the row of a restore ended each later plan of the warehouse."""
    read_effects(local_catalog, run(DAY, {"rewritten": 4}), run(DAY, {}, job="restore"))
    histories_by_table = load_histories(local_catalog, NOW)
    assert histories_by_table["u"].seconds == {"compaction": 8.0}
    assert measure_pace(histories_by_table.values()).keys() == {"compaction"}


def test_old_effects_are_not_read(local_catalog: SqlCatalog) -> None:
    """The duration of the run remains in the history: it is not scaled then."""
    read_effects(
        local_catalog,
        run(EFFECTS_WINDOW + DAY, {"rewritten": 4}),
        run(EFFECTS_WINDOW, {"rewritten": 4}, uuid="recent"),
    )
    histories_by_table = load_histories(local_catalog, NOW)
    assert histories_by_table["u"].effects == {}
    assert histories_by_table["u"].seconds == {"compaction": 8.0}
    assert histories_by_table["recent"].effects == {"compaction": Effect(4, 0, 4)}
    assert predict_job("compaction", FACTS, TablePolicies(), histories_by_table["u"]).seconds == 8.0


def test_first_prediction_assumes_a_speed() -> None:
    """A second, 0.1 seconds for each file, and 8 MiB per second."""
    prediction = predict_job("compaction", FACTS, TablePolicies(), History())
    assert prediction == Prediction(99, 100 * MIB, 1 + 100 * 0.1 + 12.5)
    assert prediction.score == pytest.approx(99 / (23.5 / 3600 * 2))


def test_first_prediction_learns_from_other_tables() -> None:
    """The warehouse is twice, three times and nine times as slow as the assumption: the median counts."""
    tables = [
        History(seconds={"compaction": 23.5 * factor, "statistics": factor}, effects={"compaction": EFFECT})
        for factor in (9, 2, 3)
    ]
    forgotten = History(seconds={"compaction": 1e6})
    found_nothing = History(seconds={"compaction": 1e6}, effects={"compaction": Effect()})
    pace = measure_pace([*tables, forgotten, *[found_nothing] * 9, History()])
    assert pace == pytest.approx({"compaction": 3.0, "statistics": 3.0})
    assert predict_job("compaction", FACTS, TablePolicies(), History(), pace).seconds == pytest.approx(3 * 23.5)
    assert predict_job("statistics", FACTS, TablePolicies(), History(), pace).seconds == pytest.approx(3.0)
    assert predict_job("retention", FACTS, TablePolicies(), History(), pace).seconds == 1.0
    assert predict_job("compaction", FACTS, TablePolicies(), found_nothing, pace).seconds == pytest.approx(3 * 23.5)
    known_table = predict_job("compaction", FACTS, TablePolicies(), tables[1], pace)
    assert known_table.seconds == pytest.approx(2 * 23.5), "the table's own run says more"


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (EFFECT, 8.0),
        (Effect(), 23.5),
        (Effect(-4, 0, 0), 23.5),
        (Effect(199, 200 * MIB, 210), 8.0 * 23.5 / 47),
        (Effect(0, 2**63 - 1, 10**12), 0.1),
    ],
)
def test_duration_is_scaled_to_the_work(last: Effect, expected: float) -> None:
    history = History(seconds={"compaction": 8.0}, effects={"compaction": last})
    prediction = predict_job("compaction", FACTS, TablePolicies(), history)
    assert prediction.seconds == pytest.approx(expected)
    assert (prediction.files, prediction.bytes) == (99, 100 * MIB)


def test_duration_of_other_jobs_is_not_scaled() -> None:
    history = History(seconds={"statistics": 8.0}, effects={"compaction": Effect(1, 1, 1)})
    assert predict_job("statistics", FACTS, TablePolicies(), history) == Prediction(0, 0, 8.0)


def test_nothing_to_rewrite_takes_the_fixed_time() -> None:
    assert estimate_seconds(Effect()) == 1.0
    history = History(seconds={"compaction": 0.0}, effects={"compaction": Effect(1, 1, 1)})
    assert predict_job("compaction", FACTS, TablePolicies(), history).seconds == 0.1, "it divides the files saved"


def test_huge_tables_have_finite_predictions() -> None:
    facts = TableFacts(
        table=TABLE, uuid="u", properties={}, touched_at=NOW, data_files=2**63 - 1, data_bytes=2**63 - 1, delete_files=0
    )
    prediction = predict_job("compaction", facts, TablePolicies(), History())
    assert json.loads(json.dumps(prediction.to_json(), allow_nan=False))["bytes"] == 2**63 - 1


def test_basis_of_the_newest_success_counts(local_catalog: SqlCatalog) -> None:
    """It counts for as long as the success itself does, also if the effects are too old for predictions."""
    basis = {"format_version": 2, "partition_spec": 0, "policy": "00ff"}
    runs = [
        run(EFFECTS_WINDOW + 3 * DAY, {"basis": {**basis, "format_version": 1}}),
        run(EFFECTS_WINDOW + 2 * DAY, {"basis": basis}),
        run(DAY, {"basis": {**basis, "policy": "other"}}, state=RunState.FAILED),
    ]
    job_runs.append(local_catalog, runs, NOW)
    history = load_histories(local_catalog, NOW)["u"]
    assert (history.bases, history.effects) == ({"compaction": basis}, {})
