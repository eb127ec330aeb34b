"""Command `record-compute`: write measured hours of computing units to `ops.compute_usage`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config
from lakewright_spark.cli.options import ConfigFile


def record_compute(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON: a list of objects with `day`, `unit`, `pod` and `seconds`.")
    ],
    *,
    config: ConfigFile = None,
    warehouse: Annotated[
        str | None, typer.Option(help="Name of the warehouse that the units use. Default: the only warehouse.")
    ] = None,
) -> None:
    """Write measured hours of computing units to `ops.compute_usage`, from which `daily-usage` reports `cu_hours`.

    A measurement says for how many seconds of a UTC day a pod ran until now. It replaces an earlier measurement of the
    same pod and day, so it can be repeated.

    Example: lakewright-spark record-compute pods.json --warehouse executions
    """
    from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog  # noqa: PLC0415  # loads pyarrow
    from lakewright_spark.scheduler.run_log.compute_usage import PodDay, write_pod_days  # noqa: PLC0415

    try:
        rows = [PodDay.parse(entry) for entry in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise typer.BadParameter(
            f"{file}: expected a list of objects with `day`, `unit`, `pod` and `seconds`: {error}"
        ) from None
    catalog_config = load_config(config)
    name = choose_warehouse(catalog_config, warehouse)
    with explain_errors(catalog_config, name, "ops.compute_usage"):
        write_pod_days(open_catalog(catalog_config, name), rows, datetime.now(UTC))
    print(f"recorded {len(rows)} days of pods in warehouse {name}")
