"""Options that commands share, such as the configuration and its warehouse."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.policies.model import JOBS

if TYPE_CHECKING:
    from lakewright_spark.execution_registry.registry import ExecutionRegistry


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str) -> timedelta:
    """Read one; typer's BadParameter for anything else."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text.strip())
    if match is None or int(match[1]) == 0:
        raise typer.BadParameter(f"expected a duration such as 90s, 45m, 24h or 7d, found {text!r}")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The stack's catalog configuration (JSON); else $LAKEWRIGHT_CATALOG or $LAKEWRIGHT_CATALOG_FILE.",
    ),
]
Warehouse = Annotated[
    str | None, typer.Option("--warehouse", help="Name of the warehouse. Required if the configuration has several.")
]
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        help="sqlite:///PATH or postgresql://..; else $LAKEWRIGHT_REGISTRY, else a file in the user's data folder.",
    ),
]
RegistryIfNamed = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        help="Registry of executions: sqlite:///PATH or postgresql://..; else $LAKEWRIGHT_REGISTRY.",
    ),
]
NoRegistry = Annotated[
    bool,
    typer.Option("--no-registry", help="Use no registry, as in a computing unit. Earlier results are not replaced."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def job_name(text: str) -> str:
    """Parse the name of a maintenance job for typer."""
    if text not in JOBS:
        raise typer.BadParameter(f"expected one of {', '.join(JOBS)}, found {text!r}")
    return text


def key_and_value(text: str) -> tuple[str, str]:
    """Read KEY=VALUE of Spark's; typer's BadParameter for anything else."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise typer.BadParameter(f"--conf: expected KEY=VALUE, found {text!r}")
    return key, value


@contextmanager
def open_registry(
    config: CatalogConfig, url: str | None, *, none: bool = False
) -> Generator[ExecutionRegistry | None, None, None]:
    """Open the tenant's registry of executions, and close it after the block. Raises RegistryError."""
    from lakewright_spark.execution_registry.registry import ExecutionRegistry  # noqa: PLC0415  # `jars` and `read` do without

    if none:
        yield None
        return
    opened = ExecutionRegistry(config.tenant, url)
    try:
        yield opened
    finally:
        opened.close()


class VerifyDepth(Enum):
    """How many rows of a table and its copy are compared."""

    FULL = "full"
    SAMPLE = "sample"
    METADATA = "metadata"


FromWarehouse = Annotated[
    str | None, typer.Option("--from-warehouse", help="Required if --from has several warehouses.")
]
ToWarehouse = Annotated[str | None, typer.Option("--to-warehouse", help="Required if --to has several warehouses.")]
TablePatterns = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="PATTERN", help="NAMESPACE.TABLE, where * is any text; repeatable. Default: all."),
]
