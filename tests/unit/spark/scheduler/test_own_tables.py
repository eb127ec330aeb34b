"""The tables of `ops` have their own policies and are not listed with the user's tables."""

from __future__ import annotations

import dataclasses
import io
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.cli import maintain
from lakewright_spark.maintenance.jobs.statistics import COMMITS, TABLES
from lakewright_spark.maintenance.table.candidates import CANDIDATES
from lakewright_spark.maintenance.table.partition_sizes import PARTITIONS
from lakewright_spark.policies.builtin import OWN_POLICIES, is_own
from lakewright_spark.policies.model import PolicyPattern
from lakewright_spark.pyiceberg_client.table_policies import PolicyTables, find_mistakes
from lakewright_spark.scheduler import progress
from lakewright_spark.scheduler import runner as application
from lakewright_spark.scheduler.outcome import MaintenanceOutcome
from lakewright_spark.scheduler.run_log import compute_usage, daily_usage, job_runs
from lakewright_spark.scheduler.run_log.ops_tables import build_partitions, build_schema
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.runner import MaintenanceRunner
from lakewright_spark.scheduler.runner_claims import RunnerClaims
from lakewright_spark.scheduler.table_discovery import Filters
from lakewright_spark.table_identifier import TableIdentifier
from pyiceberg.catalog.sql import SqlCatalog
from rich.console import Console

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
USERS, OWN = TableIdentifier("local", ("sales",), "orders"), TableIdentifier("local", ("ops",), "job_runs")


def records_of_ended_run(table: TableIdentifier, state: RunState, reason: str = "") -> list[RunRecord]:
    """Return the records of a run when queued and when ended."""
    queued = RunRecord(runner="r", table=table, table_uuid="u", job="statistics", queued_at=NOW)
    times = {"started_at": NOW, "finished_at": NOW + timedelta(seconds=1)}
    return [queued, dataclasses.replace(queued, state=state, reason=reason, **times)]


def print_lines(*runs: list[RunRecord]) -> list[str]:
    """Return the lines for runs that were all queued before the first one ended."""
    text = io.StringIO()
    with progress.show_progress(Console(file=text, force_terminal=False, width=40)) as observer:
        for moment in zip(*runs, strict=True):
            for run in moment:
                observer(run)
    return text.getvalue().splitlines()


def test_maintain_counts_only_the_users_tables(
    local_config: CatalogConfig, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_catalog.create_table("sales.orders", pa.schema([("n", pa.int64())]))
    monkeypatch.setattr(application, "open_catalog", lambda config, name: local_catalog)
    outcome = MaintenanceRunner(local_config, Filters(jobs=("staged-files",))).run()
    assert ("ops", "maintenance_lease") in local_catalog.list_tables("ops")
    assert outcome.tables == 1
    assert maintain._summary(outcome) == "1 table: nothing is due"


def test_failed_runs_of_own_tables_are_listed() -> None:
    outcome = MaintenanceOutcome("r")
    for run in [*records_of_ended_run(USERS, RunState.SUCCEEDED), *records_of_ended_run(OWN, RunState.SUCCEEDED)]:
        outcome(run)
    assert outcome.counts() == {"SUCCEEDED": 1}
    assert [run["table"] for run in outcome.to_json()["runs"]] == ["local.sales.orders"]
    assert outcome.to_json()["own"] == {"states": {"SUCCEEDED": 1}}
    outcome(records_of_ended_run(OWN, RunState.FAILED, "no space")[1])
    assert [run["table"] for run in outcome.to_json()["runs"]] == ["local.sales.orders", "local.ops.job_runs"]
    assert "no space" in str(outcome.error())


def test_one_line_per_table() -> None:
    first, second = (
        records_of_ended_run(USERS, RunState.SUCCEEDED),
        records_of_ended_run(USERS, RunState.FAILED, "the storage\n  is down\n"),
    )
    line = "local.sales.orders: statistics succeeded in 1.0 s, statistics failed in 1.0 s (the storage is down)"
    assert print_lines(first, second, records_of_ended_run(OWN, RunState.SUCCEEDED)) == [line]


def test_own_table_has_a_line_if_a_run_failed() -> None:
    line = "local.ops.job_runs: statistics failed in 1.0 s (no space)"
    assert print_lines(records_of_ended_run(OWN, RunState.FAILED, "no space")) == [line]


def test_tenant_patterns_do_not_apply_to_own_tables(local_config: CatalogConfig) -> None:
    pattern = PolicyPattern.model_validate({"match": "*.*.*", "retention": {"keep": 1, "column": "day"}})
    tables = PolicyTables(local_config.model_copy(update={"policies": (pattern,)}), "local")
    policies = tables.resolve_policies(OWN, {}).policies
    assert policies.retention
    assert (policies.retention.keep, policies.retention.column) == (90, "day")
    properties = {"lakewright.policy.retention": '{"keep": 7, "column": "day", "pattern": ""}'}
    overridden = tables.resolve_policies(OWN, properties).policies.retention
    assert overridden
    assert overridden.keep == 7
    assert tables.resolve_policies(USERS, {}).policies.retention


@pytest.mark.parametrize("name", sorted(OWN_POLICIES))
def test_own_tables_keep_a_day_of_snapshots(local_config: CatalogConfig, name: str) -> None:
    table = TableIdentifier("local", ("ops",), name)
    assert is_own(table)
    history = PolicyTables(local_config, "local").resolve_policies(table, {}).policies.history
    assert history
    assert history.max_age_days == 1


def test_policies_fit_their_tables(local_config: CatalogConfig, local_catalog: SqlCatalog) -> None:
    """Retention with a column or unit that the partitions lack would fail every night."""
    local_catalog.create_namespace("ops")
    for ops_table in (TABLES, PARTITIONS, COMMITS, CANDIDATES):
        schema = build_schema(ops_table)
        local_catalog.create_table(f"ops.{ops_table.name}", schema, partition_spec=build_partitions(ops_table, schema))
    job_runs.append(local_catalog, records_of_ended_run(USERS, RunState.SUCCEEDED), NOW)
    RunnerClaims(local_config, "local", local_catalog, "r").register(NOW)
    daily_usage.write_day(
        local_catalog, daily_usage.DailyUsage(day="2026-11-22", warehouse="local", measured_at=NOW), 0.0, NOW
    )
    pod_day = compute_usage.PodDay(day="2026-11-22", unit="notebook", pod="a", seconds=1.0)
    compute_usage.write_pod_days(local_catalog, [pod_day], NOW)
    for name in OWN_POLICIES:
        table = TableIdentifier("local", ("ops",), name)
        loaded = local_catalog.load_table(table.within)
        assert (
            find_mistakes(
                PolicyTables(local_config, "local").resolve_policies(table, loaded.properties).policies, loaded
            )
            == []
        )
