"""Gauges for Prometheus: the last recorded day of each warehouse, and limits with their forecasts."""

from __future__ import annotations

from pathlib import Path

from lakewright.ci.publishing.gauges import write_registry
from lakewright.costs.cost_report import CostReport, Grouping
from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.spark_reports import SparkReport
from prometheus_client.parser import text_string_to_metric_families

ACME = SelectedStack("acme-prod", {"name": "acme", "environment": "production"})


def read_gauges(file: Path) -> dict[tuple[str, ...], float]:
    """Return the values by name and the labels that differ."""
    families = text_string_to_metric_families(file.read_text())
    same = {"tenant": "acme", "stack": "acme-prod", "environment": "production"}
    gauges: dict[tuple[str, ...], float] = {}
    for sample in (sample for family in families for sample in family.samples):
        assert same.items() <= sample.labels.items()
        labels = (value for name, value in sample.labels.items() if name not in same and value)
        gauges[sample.name.removeprefix("lakewright_"), *labels] = sample.value
    return gauges


def test_gauges_have_usage_and_limits(tmp_path: Path) -> None:
    rows = [
        {
            "day": f"2026-11-{day:02}",
            "warehouse": "results",
            "owner": "user:oidc~ann",
            "tables": 2,
            "files": day,
            "bytes_live": 10 * day,
            "bytes_reclaimable": 5,
            "bytes_orphan": None,
            "bytes_soft_deleted": 0,
            "requests": 7 if day == 2 else None,
            "cu_hours": 1.5,
            "maintenance_minutes": 0.5,
        }
        for day in (2, 1)
    ]
    limits = {"tenant": {"compute": 2}, "warehouses": {"results": {"bytes": 45, "tables": 9}}}
    report = CostReport(
        [SparkReport(ACME, {"days": rows, "limits": limits, "warehouses": ["results"]})], Grouping("month"), None
    )

    write_registry(report.make_gauges(), tmp_path / "usage.prom")

    ann, november = ("user:oidc~ann", "results"), 1_793_491_200.0
    assert read_gauges(tmp_path / "usage.prom") == {
        ("usage_storage_bytes", "live", *ann): 20,
        ("usage_storage_bytes", "reclaimable", *ann): 5,
        ("usage_storage_bytes", "soft_deleted", *ann): 0,
        ("usage_tables", *ann): 2,
        ("usage_files", *ann): 2,
        ("usage_requests", *ann): 7,
        ("usage_cu_hours", *ann): 1.5,
        ("usage_maintenance_minutes", *ann): 0.5,
        ("usage_day_timestamp_seconds", *ann): november + 86_400,
        ("limit", "compute"): 2,
        ("limit_used", "compute"): 3,
        ("limit_growth_per_day", "compute"): 1.5,
        ("limit_reached_timestamp_seconds", "compute"): november + 86_400,
        ("limit", "bytes", "results"): 45,
        ("limit_used", "bytes", "results"): 25,
        ("limit_growth_per_day", "bytes", "results"): 10,
        ("limit_reached_timestamp_seconds", "bytes", "results"): november + 3 * 86_400,
        ("limit", "tables", "results"): 9,
        ("limit_used", "tables", "results"): 2,
        ("limit_growth_per_day", "tables", "results"): 0,
    }
