"""Command `daily-usage`: list the daily usage of warehouses, from `ops.daily_usage`."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.filesize import decimal

from lakewright_spark.catalog.loading import load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.config_folder import Configs, print_each_report
from lakewright_spark.cli.options import AsJson, ConfigFile, duration
from lakewright_spark.times import format_day, format_json_time
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

if TYPE_CHECKING:
    from lakewright_spark.catalog import CatalogConfig
    from lakewright_spark.scheduler.run_log.daily_usage import DailyUsage

_SIZES = ("live", "reclaimable", "orphan", "soft_deleted")


def daily_usage(
    *,
    config: ConfigFile = None,
    since: Annotated[
        timedelta, typer.Option(parser=duration, metavar="DURATION", help="Days within this time.")
    ] = "30d",  # type: ignore[assignment]  # typer parses it
    configs: Configs = None,
    as_json: AsJson = False,
) -> None:
    """List the daily usage of warehouses, which `maintain` records: bytes by kind, tables, files and minutes.

    Example: lakewright-spark daily-usage --since 90d
    """
    if configs is not None:
        print_each_report(configs, lambda _, catalog: _report_days(catalog, since))
        return
    usages, unavailable = _read_days(load_config(config), since)
    printing.note(unavailable.note())
    if as_json:
        print(json.dumps([to_json(usage) for usage in usages]))
    else:
        _show(usages)
    if error := unavailable.error():
        raise error


def to_json(usage: DailyUsage) -> dict[str, Any]:
    """Return a day of a warehouse for JSON: sizes in bytes, null for values without a source."""
    namespaces: dict[str, Any] = json.loads(usage.limited_namespaces or "{}")
    document = {**asdict(usage), "measured_at": format_json_time(usage.measured_at), "limited_namespaces": namespaces}
    for name in ("archive_id", "pod_seconds"):  # `cu_hours` has the seconds of pods that count in the warehouse
        del document[name]
    return document


def _report_days(catalog: CatalogConfig, since: timedelta) -> tuple[dict[str, Any], list[str]]:
    """Return the days of a configuration for JSON, and the problems."""
    usages, unavailable = _read_days(catalog, since)
    limits = {
        "tenant": catalog.limits.model_dump(exclude_none=True) if catalog.limits else {},
        "warehouses": {
            warehouse.name: warehouse.limits.model_dump(exclude_none=True)
            for warehouse in catalog.warehouses
            if warehouse.limits
        },
    }
    since_day = format_day(datetime.now(UTC) - since)
    document = {
        "since": since_day,
        "days": [to_json(usage) for usage in usages],
        "limits": limits,
        "warehouses": [warehouse.name for warehouse in catalog.warehouses],
    }
    return document, [str(error) for error in unavailable.failed.values()]


def _read_days(catalog: CatalogConfig, since: timedelta) -> tuple[list[DailyUsage], UnavailableWarehouses]:
    from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog  # noqa: PLC0415  # loads pyarrow
    from lakewright_spark.scheduler.run_log.compute_usage import PodSeconds, read_seconds  # noqa: PLC0415
    from lakewright_spark.scheduler.run_log.daily_usage import fill_hours, list_days, merge_days  # noqa: PLC0415

    names = [warehouse.name for warehouse in catalog.warehouses]
    rows, unavailable = dict[str, list["DailyUsage"]](), UnavailableWarehouses()
    seconds = dict[str, PodSeconds]()
    for name in names:
        with unavailable.record_failures(name), explain_errors(catalog, name, "ops.daily_usage"):
            client, earliest = open_catalog(catalog, name), datetime.now(UTC) - since
            rows[name], seconds[name] = list_days(client, earliest), read_seconds(client, earliest)
    unavailable.check_any_left(names)
    present_names = {warehouse.id: warehouse.name for warehouse in catalog.warehouses if warehouse.id}
    return fill_hours(merge_days(rows, present_names), seconds), unavailable


def _show(usages: list[DailyUsage]) -> None:
    rows = printing.columns(
        "day", "warehouse", "owner", *(size.replace("_", " ") for size in _SIZES), "tables", "files", "minutes"
    )
    for usage in usages:
        sizes = [getattr(usage, f"bytes_{size}") for size in _SIZES]
        cells = ["unknown" if size is None else decimal(size) for size in sizes]
        numbers = (f"{usage.tables:,}", f"{usage.files:,}", f"{usage.maintenance_minutes:.1f}")
        rows.add_row(usage.day, usage.warehouse, usage.owner or "", *cells, *numbers)
    printing.show(rows)
