"""Reports on a folder of catalog configurations: one JSON object per line, which `lakewright fleet` reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright_spark.catalog.loading import load_config
from lakewright_spark.errors import ConfigMissingError, JobFailedError, LakewrightSparkError

if TYPE_CHECKING:
    from lakewright_spark.catalog import CatalogConfig

_CONCURRENT_TENANTS = 4
"""Configurations that are reported on at the same time. Each may read several tables at once."""

Configs = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Report on each configuration FOLDER/NAME.json instead: one JSON object per line."
    ),
]


def print_each_report(
    folder: Path, make_report: Callable[[str, CatalogConfig], tuple[dict[str, Any], list[str]]]
) -> None:
    """Print the report, or the error, of each configuration in a folder. They share one bundle of authorities.

    Args:
        folder: The folder.
        make_report: Returns the report on a configuration, by its name, for JSON, and its problems.

    Raises:
        ConfigMissingError: The folder has no configuration, or does not exist.
        JobFailedError: Some have an error.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        raise ConfigMissingError(
            f"{folder}: expected a folder of catalog configurations NAME.json, found none. `lakewright config --stack "
            "NAME --format json` prints one"
        )

    def report_on(file: Path) -> dict[str, Any]:
        try:
            report, problems = make_report(file.stem, load_config(file))
        except LakewrightSparkError as error:
            return {"config": file.stem, "error": str(error)}
        return {"config": file.stem, "error": "; ".join(problems), **report}

    failures = 0
    with ThreadPoolExecutor(_CONCURRENT_TENANTS, thread_name_prefix="tenant") as pool:
        for printed in pool.map(report_on, files):
            failures += bool(printed["error"])
            print(json.dumps(printed), flush=True)
    if failures:
        raise JobFailedError(f"{failures} of the configurations in {folder} have errors, which their lines name")
