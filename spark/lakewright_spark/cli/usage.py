"""Command `usage`: report storage use by warehouse and owner."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.filesize import decimal

from lakewright_spark.catalog.loading import choose_warehouse, load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.config_folder import Configs, print_each_report
from lakewright_spark.cli.options import AsJson, ConfigFile, duration
from lakewright_spark.errors import JobFailedError
from lakewright_spark.times import format_json_time, format_time
from lakewright_spark.unavailable_warehouses import UnavailableWarehouses

if TYPE_CHECKING:
    from lakewright_spark.catalog import CatalogConfig
    from lakewright_spark.pyiceberg_client.limit_checks import ComputeHours, LimitUse
    from lakewright_spark.pyiceberg_client.table_details import TableDetails
    from lakewright_spark.pyiceberg_client.usage import Growth, TableSize, TableUsage, Total, UsageReport

_COLUMNS = ("live", "reclaimable", "growth", "files", "snapshots")


def usage(
    *,
    config: ConfigFile = None,
    warehouse: Annotated[list[str] | None, typer.Option(help="Name of a warehouse; repeatable. Default: all.")] = None,
    window: Annotated[
        timedelta,
        typer.Option(parser=duration, metavar="DURATION", help="Growth since the first statistics within this time."),
    ] = "30d",  # type: ignore[assignment]  # typer parses it
    tables: Annotated[bool, typer.Option("--tables", help="Also print each table and view.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Also print creator, times, versions and schema of each table.")
    ] = False,
    configs: Configs = None,
    as_json: AsJson = False,
) -> None:
    """Report storage use by warehouse and owner: bytes, files, snapshots, and growth if job `statistics` has run.

    Expiration of all older snapshots would free the reclaimable bytes. Orphan files are not counted. Limits of the spec
    are compared with what exists, with a warning from 80 % on.

    Example: lakewright-spark usage --warehouse executions --tables
    """
    if configs is not None:
        print_each_report(configs, lambda _, catalog: _report_usage(catalog, window))
        return
    catalog = load_config(config)
    names = [choose_warehouse(catalog, name) for name in dict.fromkeys(warehouse or [])]
    from lakewright_spark.pyiceberg_client.limit_checks import list_limit_uses  # noqa: PLC0415  # loads PyIceberg
    from lakewright_spark.pyiceberg_client.usage import measure_usage  # noqa: PLC0415

    # Limits of the tenant are about all warehouses.
    selected_config = catalog.select_warehouses(names).model_copy(update={"limits": None}) if names else catalog
    report = measure_usage(selected_config, datetime.now(UTC), window, named_warehouses=names)
    uses = list_limit_uses(selected_config, report, _read_compute_hours(catalog, selected_config, report.unavailable))
    printing.note(report.unavailable.note())
    if as_json:
        print(json.dumps({**to_json(report), "limits": limits_to_json(uses)}))
    else:
        _show(report, with_tables=tables)
        if details:
            _show_details(report)
        if uses:
            _show_limits(uses)
    for use in uses:
        if use.state != "below":
            printing.complain(_format_warning(use))
    if unread := [f"{table} ({why})" for one in report.warehouses for table, why in one.unread]:
        raise JobFailedError(f"not counted, since they could not be read: {', '.join(unread)}")
    if error := report.unavailable.error():
        raise error


def _report_usage(catalog: CatalogConfig, window: timedelta) -> tuple[dict[str, Any], list[str]]:
    """Return the report on a configuration for JSON, and the problems."""
    from lakewright_spark.pyiceberg_client.limit_checks import list_limit_uses  # noqa: PLC0415  # loads PyIceberg
    from lakewright_spark.pyiceberg_client.usage import measure_usage  # noqa: PLC0415

    report = measure_usage(catalog, datetime.now(UTC), window)
    hours = _read_compute_hours(catalog, catalog, report.unavailable)
    unread = [f"{table} ({why})" for one in report.warehouses for table, why in one.unread]
    problems = [*(str(error) for error in report.unavailable.failed.values()), *unread]
    document = {**to_json(report), "limits": limits_to_json(list_limit_uses(catalog, report, hours))}
    return document, list(dict.fromkeys(problems))


def _read_compute_hours(
    catalog: CatalogConfig, selected: CatalogConfig, unavailable: UnavailableWarehouses
) -> ComputeHours | None:
    """Return the hours of computing units in this month; None without a selected limit of them.

    All warehouses are read, as a pod may be recorded in several warehouses and counts once. A warehouse that cannot be
    read counts nothing.

    Args:
        catalog: The configuration.
        selected: The configuration of the selected warehouses.
        unavailable: Selected warehouses that cannot be read, which this function adds to.
    """
    if not any(limits and limits.compute for limits in (selected.limits, *(one.limits for one in selected.warehouses))):
        return None
    from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog  # noqa: PLC0415  # loads pyarrow
    from lakewright_spark.pyiceberg_client.limit_checks import ComputeHours  # noqa: PLC0415  # loads PyIceberg
    from lakewright_spark.scheduler.run_log.compute_usage import PodSeconds, read_month_seconds, sum_hours  # noqa: PLC0415

    seconds, now = dict[str, PodSeconds](), datetime.now(UTC)
    selected_names, other_unavailable = {warehouse.name for warehouse in selected.warehouses}, UnavailableWarehouses()
    for warehouse in catalog.warehouses:
        if warehouse.name in unavailable:
            continue
        with (
            (unavailable if warehouse.name in selected_names else other_unavailable).record_failures(warehouse.name),
            explain_errors(catalog, warehouse.name, "ops.compute_usage"),
        ):
            seconds[warehouse.name] = read_month_seconds(open_catalog(catalog, warehouse.name), now)
    for name, error in (other_unavailable.hidden | other_unavailable.failed).items():
        printing.note(f"hours of computing units in warehouse {name} are not known: {error}")
    is_complete = all(warehouse.name in seconds for warehouse in catalog.warehouses)
    return ComputeHours.from_days(sum_hours(seconds), is_complete=is_complete)


def to_json(report: UsageReport) -> dict[str, Any]:
    """Return the report for JSON: sizes in bytes, times in ISO 8601."""
    from lakewright_spark.pyiceberg_client.usage import total  # noqa: PLC0415  # as above

    return {
        "tenant": report.tenant,
        "at": format_json_time(report.at),
        "total": _total(report.total),
        "owners": [{"owner": owner, **_total(one)} for owner, one in report.owners.items()],
        "warehouses": [
            {
                "warehouse": one.warehouse,
                "owner": one.owner,
                **_total(total([one])),
                "each_table": [
                    {
                        "table": str(table.table),
                        **_size(table.size),
                        "growth": _growth(table.growth),
                        "details": _details(table.details),
                        "days_since_success": {
                            job: round((report.at - at) / timedelta(days=1), 2)
                            for job, at in sorted(table.maintained.items())
                        },
                    }
                    for table in one.tables
                ],
                "each_view": [str(view) for view in one.views],
                "unread": {str(table): why for table, why in one.unread},
            }
            for one in report.warehouses
        ],
        "left_out": {name: str(error) for name, error in report.unavailable.hidden.items()},
        "failed": {name: str(error) for name, error in report.unavailable.failed.items()},
    }


def limits_to_json(uses: list[LimitUse]) -> list[dict[str, Any]]:
    """Return the use of limits for JSON."""
    return [
        {
            "warehouse": use.warehouse,
            "namespace": use.namespace,
            "quantity": use.quantity,
            "limit": use.limit,
            "used": use.used,
            "percent": use.percent,
            "state": use.state,
        }
        for use in uses
    ]


def _show_limits(uses: list[LimitUse]) -> None:
    rows = printing.columns("limit of", "", "limit", "used", "percent", "state", fold=("limit of",))
    for use in uses:
        amounts = (_format_amount(use, use.limit), _format_amount(use, use.used))
        rows.add_row(use.scope, use.quantity, *amounts, f"{use.percent} %", use.state)
    printing.show(rows)


def _format_amount(use: LimitUse, amount: int) -> str:
    return decimal(amount) if use.quantity == "bytes" else f"{amount:,}"


def _format_warning(use: LimitUse) -> str:
    amounts = f"{_format_amount(use, use.used)} of {_format_amount(use, use.limit)}"
    quantity = {"bytes": "", "compute": " hours in this month"}.get(use.quantity, f" {use.quantity}")
    state = "has reached its limit" if use.state == "reached" else "is near its limit"
    return f"{use.scope} {state}: {amounts}{quantity} ({use.percent} %)"


def _size(size: TableSize) -> dict[str, Any]:
    return {
        "bytes_live": size.bytes_live,
        "bytes_reclaimable": size.bytes_reclaimable,
        "files": size.files,
        "snapshots": size.snapshots,
    }


def _details(details: TableDetails) -> dict[str, Any]:
    return {
        **asdict(details),
        "partition_fields": list(details.partition_fields),
        "created_at": format_json_time(details.created_at) if details.created_at else None,
        "updated_at": format_json_time(details.updated_at),
    }


def _total(total: Total) -> dict[str, Any]:
    return {"tables": total.tables, "views": total.views, **_size(total), "growth": _growth(total.growth)}


def _growth(growth: Growth | None) -> dict[str, Any] | None:
    return {"bytes": growth.bytes, "since": format_json_time(growth.since)} if growth else None


def _show(report: UsageReport, *, with_tables: bool) -> None:
    from lakewright_spark.pyiceberg_client.usage import total  # noqa: PLC0415  # as above

    names = (*_COLUMNS, "maintained") if with_tables else _COLUMNS
    rows = printing.columns("", "owner", "tables", "views", *names, fold=("", "owner"))
    for warehouse in report.warehouses:
        whole = total([warehouse])
        rows.add_row(warehouse.warehouse, warehouse.owner or "", str(whole.tables), str(whole.views), *_cells(whole))
        if with_tables:
            for table in warehouse.tables:
                cells = _cells(table.size, table.growth)
                rows.add_row(f"  {table.table}", "", "", "", *cells, _format_age(table, report.at))
            for view in warehouse.views:
                rows.add_row(f"  {view}", "", "", "view")
    for owner, whole in report.owners.items():
        if owner is not None:
            rows.add_row(f"all of {owner}", owner, str(whole.tables), str(whole.views), *_cells(whole))
    whole = report.total
    rows.add_row(f"tenant {report.tenant}", "", str(whole.tables), str(whole.views), *_cells(whole), style="bold")
    printing.show(rows)


def _show_details(report: UsageReport) -> None:
    rows = printing.columns(
        "table", "creator", "created", "updated", "format", "columns", "partitioned by", "versions", fold=("table",)
    )
    for warehouse in report.warehouses:
        for table in warehouse.tables:
            details = table.details
            rows.add_row(
                str(table.table),
                details.creator or "",
                f"{details.created_at:%F}" if details.created_at else "",
                format_time(details.updated_at),
                str(details.format_version),
                str(details.columns),
                ", ".join(details.partition_fields),
                str(details.versions),
            )
    printing.show(rows)


def _format_age(table: TableUsage, now: datetime) -> str:
    """Return the days since the oldest of the last successful runs of the table's maintenance jobs."""
    if not table.maintained:
        return "never"
    job, at = min(table.maintained.items(), key=lambda item: item[1])
    return f"{(now - at) / timedelta(days=1):.1f} d ago ({job})"


def _cells(size: TableSize, growth: Growth | None = None) -> list[str]:
    grown = getattr(size, "growth", None) or growth
    return [
        decimal(size.bytes_live),
        decimal(size.bytes_reclaimable),
        f"{'-' if grown.bytes < 0 else '+'}{decimal(abs(grown.bytes))} since {grown.since:%F}" if grown else "",
        f"{size.files:,}",
        f"{size.snapshots:,}",
    ]
