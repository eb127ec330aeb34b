"""Rows of `ops.compute_usage`: repeated measurements of pods count once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.limits import TenantLimits, WarehouseLimits
from lakewright_spark.cli import app
from lakewright_spark.errors import CatalogUnreachableError
from lakewright_spark.pyiceberg_client import catalog as catalogs
from lakewright_spark.pyiceberg_client import usage as usages
from lakewright_spark.scheduler import archived_usage
from lakewright_spark.scheduler.run_log import compute_usage
from lakewright_spark.scheduler.run_log.compute_usage import (
    PodDay,
    read_month_seconds,
    read_seconds,
    sum_hours,
    write_pod_days,
)
from lakewright_spark.scheduler.run_log.daily_usage import DailyUsage, fill_hours, list_days, write_day
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

NOW = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
TODAY = f"{NOW:%F}"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def measure(day: str, pod: str, seconds: float) -> PodDay:
    return PodDay(day=day, unit="notebook", pod=pod, seconds=seconds)


def test_repeated_measurements_count_once(local_catalog: SqlCatalog) -> None:
    write_pod_days(local_catalog, [measure("2026-11-30", "a", 1800), measure("2026-12-01", "a", 3600)], NOW)
    write_pod_days(local_catalog, [measure("2026-12-01", "a", 5400), measure("2026-12-01", "b", 1800)], NOW)
    write_pod_days(local_catalog, [measure("2026-12-01", "a", 60)], NOW)

    assert sum_hours({"raw": read_seconds(local_catalog, LONG_AGO)}) == {
        ("raw", "2026-11-30"): 0.5,
        ("raw", "2026-12-01"): 2.0,
    }
    assert {day for _, day in read_seconds(local_catalog, datetime(2026, 12, 1, tzinfo=UTC))} == {"2026-12-01"}


def test_hours_of_the_month_leave_out_earlier_months(local_catalog: SqlCatalog) -> None:
    write_pod_days(local_catalog, [measure("2026-11-30", "a", 7200), measure("2026-12-01", "a", 3600)], NOW)

    assert read_month_seconds(local_catalog, datetime(2026, 12, 31, 23, tzinfo=UTC)) == {("a", "2026-12-01"): 3600}
    assert read_month_seconds(local_catalog, datetime(2027, 1, 1, tzinfo=UTC)) == {}


def test_equal_measurement_commits_nothing(local_catalog: SqlCatalog) -> None:
    for _ in range(2):
        write_pod_days(local_catalog, [measure("2026-12-01", "a", 3600)], NOW)
    assert len(local_catalog.load_table("ops.compute_usage").metadata.snapshots) == 1


def test_months_are_dropped_after_400_days(local_catalog: SqlCatalog) -> None:
    write_pod_days(local_catalog, [measure("2020-05-05", "a", 1)], datetime(2020, 5, 5, tzinfo=UTC))
    write_pod_days(local_catalog, [measure(TODAY, "a", 3600)], NOW)
    assert read_seconds(local_catalog, LONG_AGO) == {("a", TODAY): 3600}


def test_pod_in_two_warehouses_counts_once() -> None:
    """The pod was recorded in `raw` until a new warehouse was put before it."""
    by_warehouse = {
        "new": {("a", "2026-12-01"): 86_400.0, ("a", "2026-12-02"): 7200.0},
        "raw": {("a", "2026-12-01"): 86_400.0, ("a", "2026-12-02"): 3600.0, ("b", "2026-12-02"): 3600.0},
    }

    assert sum_hours(by_warehouse) == {("raw", "2026-12-01"): 24, ("new", "2026-12-02"): 2, ("raw", "2026-12-02"): 1}


@pytest.mark.parametrize("earlier", [[], [measure("2026-12-01", "a", 60)]], ids=["first rows", "later rows"])
def test_concurrent_writers_record_each_pod_once(
    local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, earlier: list[PodDay]
) -> None:
    """Another writer commits after the first attempt has read the table."""
    write_pod_days(local_catalog, earlier, NOW)
    overwrite = compute_usage.overwrite

    def commit_first(*arguments: Any) -> None:
        monkeypatch.setattr(compute_usage, "overwrite", overwrite)
        write_pod_days(local_catalog, [measure("2026-12-01", "a", 3600), measure("2026-12-01", "b", 60)], NOW)
        overwrite(*arguments)

    monkeypatch.setattr(compute_usage, "overwrite", commit_first)
    write_pod_days(local_catalog, [measure("2026-12-01", "a", 7200), measure("2026-12-01", "c", 60)], NOW)

    rows = local_catalog.load_table("ops.compute_usage").scan().to_arrow().to_pylist()
    assert sorted((row["pod"], row["seconds"]) for row in rows) == [("a", 7200), ("b", 60), ("c", 60)]


@pytest.mark.parametrize(
    "document",
    [
        "{",
        '{"day": 1}',
        '[{"day": "2026-13-01", "unit": "a", "pod": "b", "seconds": 1}]',
        '[{"day": "2026-12-01", "unit": "a", "pod": "b", "seconds": 86401}]',
        '[{"day": "2026-12-01", "unit": "a", "pod": "b", "seconds": "1"}]',
        "[1]",
    ],
)
def test_mistakes_of_measurements(tmp_path: Path, document: str) -> None:
    file = tmp_path / "pods.json"
    file.write_text(document)
    result = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["record-compute", str(file)])
    assert result.exit_code == 2
    assert "expected a list of objects with `day`, `unit`, `pod` and `seconds`" in result.output


def test_daily_usage_has_the_recorded_hours(
    local_config: CatalogConfig, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_day(local_catalog, DailyUsage(day=TODAY, warehouse="local", measured_at=NOW), 0.0, NOW)
    monkeypatch.setattr(catalogs, "open_catalog", lambda config, name: local_catalog)
    config, pods = tmp_path / "catalog.json", tmp_path / "pods.json"
    config.write_text(local_config.to_json())
    pods.write_text(json.dumps([{"day": TODAY, "unit": "notebook", "pod": "a", "seconds": 5400}]))
    hours: list[float | None] = []

    for _ in range(2):
        printed = CliRunner().invoke(app, ["daily-usage", "--json", "--config", str(config)])
        hours += [day["cu_hours"] for day in json.loads(printed.stdout)]
        result = CliRunner().invoke(app, ["record-compute", str(pods), "--config", str(config)])
        assert result.exit_code == 0, result.output

    assert hours == [None, 1.5]


def test_renamed_warehouse_keeps_its_hours(
    local_config: CatalogConfig, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    yesterday = NOW - timedelta(days=1)
    for at, name in ((yesterday, "earlier"), (NOW, "local")):
        write_pod_days(local_catalog, [measure(f"{at:%F}", "a", 5400)], NOW)
        write_day(local_catalog, DailyUsage(day=f"{at:%F}", warehouse=name, measured_at=at), 0.0, NOW)
    monkeypatch.setattr(catalogs, "open_catalog", lambda config, name: local_catalog)
    config = tmp_path / "catalog.json"
    config.write_text(local_config.to_json())

    printed = CliRunner().invoke(app, ["daily-usage", "--json", "--config", str(config)])

    rows = [(day["day"], day["warehouse"], day["cu_hours"]) for day in json.loads(printed.stdout)]
    assert rows == [(f"{yesterday:%F}", "local", 1.5), (TODAY, "local", 1.5)]


@pytest.mark.parametrize("limit", [1, 2])
def test_unread_hours_begin_enforcement_only(
    local_config: CatalogConfig,
    local_catalog: SqlCatalog,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    limit: int,
) -> None:
    """A sum that lacks a warehouse is reported only if it has reached the limit."""
    write_pod_days(local_catalog, [measure(TODAY, "a", 5400)], NOW)

    def open_catalog(_config: CatalogConfig, name: str) -> SqlCatalog:
        if name == "broken":
            raise CatalogUnreachableError("warehouse broken does not respond")
        return local_catalog

    monkeypatch.setattr(catalogs, "open_catalog", open_catalog)  # sums the hours
    monkeypatch.setattr(usages, "open_catalog", lambda config, name: local_catalog)  # measures tables
    warehouses = [local_config.warehouses[0].model_copy(update={"name": name}) for name in ("broken", "local")]
    config = local_config.model_copy(update={"limits": TenantLimits(compute=limit), "warehouses": warehouses})
    (tmp_path / "acme.json").write_text(config.to_json())

    printed = CliRunner().invoke(app, ["usage", "--json", "--config", str(tmp_path / "acme.json")])

    assert printed.exit_code != 0
    report = json.loads(printed.stdout.splitlines()[0])
    assert report["failed"] == {"broken": "warehouse broken does not respond"}
    assert [use["state"] for use in report["limits"]] == (["reached"] if limit == 1 else [])


@pytest.mark.parametrize("limits", [None, WarehouseLimits(compute=1)])
def test_other_warehouses_do_not_fail_a_selected_warehouse(
    local_config: CatalogConfig,
    local_catalog: SqlCatalog,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    limits: WarehouseLimits | None,
) -> None:
    """Without a limit of the selected warehouse, the other warehouse is not read."""
    write_pod_days(local_catalog, [measure(TODAY, "a", 5400)], NOW)
    reads: list[str] = []

    def open_catalog(_config: CatalogConfig, name: str) -> SqlCatalog:
        reads.append(name)
        if name == "broken":
            raise CatalogUnreachableError("warehouse broken does not respond")
        return local_catalog

    monkeypatch.setattr(catalogs, "open_catalog", open_catalog)
    monkeypatch.setattr(usages, "open_catalog", lambda config, name: local_catalog)
    warehouses = [local_config.warehouses[0].model_copy(update={"name": name}) for name in ("broken", "local")]
    warehouses[1] = warehouses[1].model_copy(update={"limits": limits})
    (tmp_path / "acme.json").write_text(local_config.model_copy(update={"warehouses": warehouses}).to_json())

    options = ["--warehouse", "local", "--json", "--config", str(tmp_path / "acme.json")]
    printed = CliRunner().invoke(app, ["usage", *options])

    assert (printed.exit_code, reads) == (0, ["broken", "local"] if limits else [])
    report = json.loads(printed.stdout)
    assert report["failed"] == {}
    # A pod that counts in `local` may belong to the other warehouse, so these hours reach no limit.
    assert report["limits"] == []


def test_days_of_an_archive_have_their_hours(
    local_config: CatalogConfig, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod ran on the day of the archiving, for which maintenance has recorded no row."""
    write_pod_days(local_catalog, [measure(TODAY, "a", 5400)], NOW)
    monkeypatch.setattr(archived_usage, "open_catalog", lambda config, name: local_catalog)
    measured = DailyUsage(day=TODAY, warehouse="local", measured_at=NOW)
    monkeypatch.setattr(archived_usage, "measure_warehouse", lambda *_: measured)
    archives = archived_usage.ArchivedWarehouses(local_config, {"local": NOW})

    assert archived_usage.record_archived_usage(local_config, archives, NOW) == ({"local": 1}, [])

    assert [row.pod_seconds for row in list_days(local_catalog)] == ['{"a": 5400.0}']
    assert [row.cu_hours for row in fill_hours(list_days(local_catalog), {})] == [1.5]


@pytest.mark.parametrize("is_in_both_before", [False, True])
def test_pod_of_an_archived_warehouse_counts_once(
    local_config: CatalogConfig,
    local_catalog: SqlCatalog,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    is_in_both_before: bool,
) -> None:
    """After the archiving of the first warehouse, the collector reads earlier days of a pod into the next warehouse."""
    archive = SqlCatalog("old", uri=f"sqlite:///{tmp_path}/old.db", warehouse=f"file://{tmp_path}/old")
    yesterday = NOW - timedelta(days=1)
    days = [f"{yesterday - timedelta(days=1):%F}", f"{yesterday:%F}"]
    shared, ended = [measure(day, "shared", 7200) for day in days], measure(days[0], "ended", 3600)
    for day in days:
        write_day(local_catalog, DailyUsage(day=day, warehouse="local", measured_at=yesterday), 0.0, NOW)
        # The warehouse was renamed before its archiving.
        name = "older" if day == days[0] else "old"
        write_day(archive, DailyUsage(day=day, warehouse=name, measured_at=yesterday), 0.0, NOW)
    write_pod_days(archive, [*shared, ended], NOW)
    if is_in_both_before:
        write_pod_days(local_catalog, shared, NOW)
    for module in (catalogs, archived_usage):
        monkeypatch.setattr(module, "open_catalog", lambda _, name: archive if name == "old" else local_catalog)
    measured = DailyUsage(day=TODAY, warehouse="old", measured_at=NOW)
    monkeypatch.setattr(archived_usage, "measure_warehouse", lambda *_: measured)
    archive_config = local_config.model_copy(
        update={"warehouses": [local_config.warehouses[0].model_copy(update={"name": "old", "id": "old-id"})]}
    )
    archives = archived_usage.ArchivedWarehouses(archive_config, {"old": NOW})
    file = tmp_path / "catalog.json"
    file.write_text(local_config.to_json())

    assert archived_usage.record_archived_usage(local_config, archives, NOW) == ({"old": 3}, [])
    write_pod_days(local_catalog, shared, NOW)

    printed = CliRunner().invoke(app, ["daily-usage", "--json", "--config", str(file)])
    rows = {(day["warehouse"], day["day"]): day["cu_hours"] for day in json.loads(printed.stdout)}
    assert {key: hours for key, hours in rows.items() if hours} == {
        ("local", days[0]): 2.0,
        ("old", days[0]): 1.0,
        ("local", days[1]): 2.0,
    }
    assert "pod_seconds" not in printed.stdout


def test_reports_count_a_pod_in_two_warehouses_once(
    local_config: CatalogConfig, local_catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only warehouse `raw` has a row of daily usage for today, so the pod counts in it."""
    new = SqlCatalog("new", uri=f"sqlite:///{tmp_path}/new.db", warehouse=f"file://{tmp_path}/new")
    write_pod_days(new, [measure(TODAY, "a", 7200)], NOW)
    write_pod_days(local_catalog, [measure(TODAY, "a", 3600)], NOW)
    write_day(local_catalog, DailyUsage(day=TODAY, warehouse="raw", measured_at=NOW), 0.0, NOW)
    for module in (catalogs, usages):
        monkeypatch.setattr(module, "open_catalog", lambda _, name: new if name == "new" else local_catalog)
    warehouses = [local_config.warehouses[0].model_copy(update={"name": name}) for name in ("new", "raw")]
    config = local_config.model_copy(update={"limits": TenantLimits(compute=100), "warehouses": warehouses})
    file = tmp_path / "acme.json"
    file.write_text(config.to_json())

    usage = CliRunner().invoke(app, ["usage", "--json", "--config", str(file)])
    days = CliRunner().invoke(app, ["daily-usage", "--json", "--config", str(file)])

    assert [use["used"] for use in json.loads(usage.stdout)["limits"]] == [2]
    assert [(day["warehouse"], day["cu_hours"]) for day in json.loads(days.stdout)] == [("raw", 1.0)]
