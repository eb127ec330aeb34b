"""Command `record-compute`: write measured hours of computing units to `ops.compute_usage`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config
from lakewright_spark.cli.config_folder import Configs, print_each_report
from lakewright_spark.cli.options import AsJson, ConfigFile
from lakewright_spark.errors import LakewrightSparkError

if TYPE_CHECKING:
    from lakewright_spark.catalog import CatalogConfig
    from lakewright_spark.scheduler.run_log.compute_usage import PodDay


def record_compute(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON: a list of objects with `day`, `unit`, `pod` and `seconds`.")
    ],
    *,
    config: ConfigFile = None,
    warehouse: Annotated[
        str | None, typer.Option(help="Name of the warehouse that the units use. Default: the only warehouse.")
    ] = None,
    configs: Configs = None,
    as_json: AsJson = False,
) -> None:
    """Write measured hours of computing units to `ops.compute_usage`, from which `daily-usage` reports `cu_hours`.

    A measurement says for how many seconds of a UTC day a pod ran until now, and may have the requested `cpu` and
    `memory_bytes`. It replaces an earlier measurement of the same pod and day, so it can be repeated. With --configs,
    FILE has lists by the name of the configuration and of the warehouse.

    Example: lakewright-spark record-compute pods.json --warehouse executions
    """
    try:
        document: object = json.loads(file.read_text(encoding="utf-8"))
        if configs is not None:
            by_config = {
                name: {space: _parse_rows(rows) for space, rows in _parse_mapping(spaces).items()}
                for name, spaces in _parse_mapping(document).items()
            }
            print_each_report(configs, lambda name, catalog: _record(catalog, by_config.get(name, {})))
            return
        rows = _parse_rows(document)
    except (OSError, ValueError, TypeError) as error:
        raise typer.BadParameter(
            f"{file}: expected a list of objects with `day`, `unit`, `pod` and `seconds`: {error}"
        ) from None
    catalog_config = load_config(config)
    name = choose_warehouse(catalog_config, warehouse)
    _write_rows(catalog_config, name, rows)
    text = f"recorded {len(rows)} days of pods in warehouse {name}"
    print(json.dumps({"warehouse": name, "days": len(rows)}) if as_json else text)


def _parse_rows(document: object) -> list[PodDay]:
    from lakewright_spark.scheduler.run_log.compute_usage import PodDay  # noqa: PLC0415  # loads pyarrow

    if not isinstance(document, list):
        raise TypeError(f"found {type(document).__name__}")
    return [PodDay.parse(entry) for entry in cast(list[object], document)]


def _parse_mapping(document: object) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise TypeError(f"found {type(document).__name__} instead of lists by configuration and warehouse")
    return cast(dict[str, Any], document)


def _record(catalog: CatalogConfig, by_warehouse: dict[str, list[PodDay]]) -> tuple[dict[str, Any], list[str]]:
    """Write the measurements of a configuration. Return the written days by warehouse, and the problems."""
    days, problems = dict[str, int](), list[str]()
    for name, rows in by_warehouse.items():
        try:
            _write_rows(catalog, choose_warehouse(catalog, name), rows)
        except LakewrightSparkError as error:
            problems.append(str(error))
        else:
            days[name] = len(rows)
    return {"days": days}, problems


def _write_rows(catalog: CatalogConfig, warehouse: str, rows: list[PodDay]) -> None:
    from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog  # noqa: PLC0415  # loads pyarrow
    from lakewright_spark.scheduler.run_log.compute_usage import write_pod_days  # noqa: PLC0415

    with explain_errors(catalog, warehouse, "ops.compute_usage"):
        write_pod_days(open_catalog(catalog, warehouse), rows, datetime.now(UTC))
