"""Options that commands share, and what they mean: the configuration, and a warehouse of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import ConfigMissingError, WarehouseRefusedError
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
    str | None, typer.Option("--warehouse", help="Its name; needed if the configuration has several.")
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
        "--registry", metavar="URL", help="Of executions: sqlite:///PATH or postgresql://..; else $LAKEWRIGHT_REGISTRY."
    ),
]
NoRegistry = Annotated[
    bool, typer.Option("--no-registry", help="Keep no registry, as in a computing unit: nothing is replaced then.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]


def load_config(path: Path | None) -> CatalogConfig:
    """The configuration of this process, whose certificate authorities it trusts from then on. ConfigMissingError."""
    config = _found(path)
    if config.ca_bundle:
        # Our own process, in which libraries that call the identity provider and the signer read these alone, and
        # others let them win over what they are told.
        os.environ |= dict.fromkeys(("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"), config.ca_bundle)
    return config


def chosen_warehouse(config: CatalogConfig, name: str | None) -> str:
    """The warehouse of that name, or the only one. Raises ConfigMissingError, WarehouseRefusedError."""
    if name is None:
        if len(config.warehouses) == 1:
            return config.warehouses[0].name
        names = ", ".join(w.name for w in config.warehouses)
        raise ConfigMissingError(f"tenant {config.tenant} has several warehouses, give --warehouse: {names}")
    try:
        return config.warehouse(name).name
    except KeyError as error:
        raise WarehouseRefusedError(error.args[0]) from None


def job_name(text: str) -> str:
    """A maintenance job's name, as a parser of typer's."""
    if text not in JOBS:
        raise typer.BadParameter(f"expected one of {', '.join(JOBS)}, found {text!r}")
    return text


def key_and_value(text: str) -> tuple[str, str]:
    """Read KEY=VALUE of Spark's; typer's BadParameter for anything else."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise typer.BadParameter(f"--conf: expected KEY=VALUE, found {text!r}")
    return key, value


def _found(path: Path | None) -> CatalogConfig:
    text, file = os.environ.get("LAKEWRIGHT_CATALOG"), os.environ.get("LAKEWRIGHT_CATALOG_FILE")
    if path is None and not text and file:
        path = Path(file)
    try:
        if path:
            return CatalogConfig.load(path)
        if text:
            return CatalogConfig.from_json(text)
    except (FileNotFoundError, IsADirectoryError):
        raise ConfigMissingError(f"no catalog configuration at {path}: write one with `lakewright config`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigMissingError(f"{path} cannot be read: {type(error).__name__}") from None
    except ValidationError as error:
        source = path or "$LAKEWRIGHT_CATALOG"
        raise ConfigMissingError(f"{source} is no catalog configuration: {_told(error)}") from None
    raise ConfigMissingError("no catalog configuration: give --config FILE or set LAKEWRIGHT_CATALOG")


def _told(error: ValidationError) -> str:
    """All that is wrong, without what was found: that may be anything."""
    problems = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(str(step) for step in p['loc']) or 'it'}: {p['msg']}" for p in problems)


@contextmanager
def open_registry(config: CatalogConfig, url: str | None, *, none: bool = False) -> Iterator[ExecutionRegistry | None]:
    """The tenant's registry of executions, closed after the block. Raises RegistryError."""
    from lakewright_spark.execution_registry.registry import ExecutionRegistry  # noqa: PLC0415  # `jars` and `read` do without

    if none:
        yield None
        return
    opened = ExecutionRegistry(config.tenant, url)
    try:
        yield opened
    finally:
        opened.close()
