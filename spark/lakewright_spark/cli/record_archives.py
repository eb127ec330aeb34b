"""Command `record-archives`: copy the daily usage of archived warehouses to a warehouse that can be written."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.cli.config_folder import Configs, print_each_report
from lakewright_spark.cli.options import AsJson

if TYPE_CHECKING:
    from lakewright_spark.scheduler.archived_usage import ArchivedWarehouses


def record_archives(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON: by name of the configuration, `config` of the archived warehouses and their `archived_at`.",
        ),
    ],
    *,
    configs: Configs = None,
    as_json: AsJson = False,
) -> None:
    """Add the days of archived warehouses to `ops.daily_usage` of the first warehouse of each configuration.

    `lakewright record-compute` runs this command. Each day since the archiving has the bytes that are measured now, as
    nothing writes an archived warehouse. Recorded days are left out, so the command can be repeated.

    Example: lakewright-spark record-archives archives.json --configs configs
    """
    del as_json  # the output of --configs is JSON
    if configs is None:
        raise typer.BadParameter("expected --configs FOLDER")
    try:
        documents = cast(dict[str, Any], json.loads(file.read_text(encoding="utf-8")))
        archives = {name: _parse_archives(document) for name, document in documents.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise typer.BadParameter(f"{file}: expected `config` and `archived_at` by configuration: {error}") from None
    print_each_report(configs, lambda name, catalog: _record(catalog, archives.get(name)))


def _parse_archives(document: Mapping[str, Any]) -> ArchivedWarehouses:
    from lakewright_spark.scheduler.archived_usage import ArchivedWarehouses  # noqa: PLC0415  # loads pyarrow

    times = {str(name): datetime.fromisoformat(str(time)) for name, time in document["archived_at"].items()}
    config = CatalogConfig.model_validate(document["config"])
    if config.ca_bundle:
        # Clients of the identity provider read only this variable. The bundle of the jobs replaces it.
        os.environ.setdefault("REQUESTS_CA_BUNDLE", config.ca_bundle)
    return ArchivedWarehouses(config, times)


def _record(catalog: CatalogConfig, archives: ArchivedWarehouses | None) -> tuple[dict[str, Any], list[str]]:
    from lakewright_spark.scheduler.archived_usage import record_archived_usage  # noqa: PLC0415  # loads pyarrow

    if archives is None:
        return {"days": {}}, []
    days, problems = record_archived_usage(catalog, archives, datetime.now(UTC))
    return {"days": days}, problems
