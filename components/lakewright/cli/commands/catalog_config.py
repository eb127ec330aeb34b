"""`lakewright config --format json`: the catalog configuration of jobs, from the stack's outputs. No engine runs."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig

from lakewright.cli.catalog_outputs import read_catalog_config
from lakewright.cli.options import open_stack
from lakewright.kubernetes.runtimes import spark_defaults


class ConfigFormat(StrEnum):
    """Forms of the catalog configuration."""

    JSON = "json"
    SPARK = "spark"
    PYICEBERG = "pyiceberg"
    ENV = "env"


def print_config(stack: str, config_format: ConfigFormat, directory: Path) -> None:
    """Print the stack's catalog configuration. Raises UsageError if there is none."""
    config = catalog_config(stack, directory)
    print(render(config, config_format).rstrip("\n"))
    if config_format is ConfigFormat.ENV and (unnamed := config.list_inexpressible_warehouses()):
        names = ", ".join(unnamed)
        print(f"note: PyIceberg's variables cannot name {names}; use --format pyiceberg instead", file=sys.stderr)


def catalog_config(stack: str, directory: Path) -> CatalogConfig:
    """Return the configuration that the stack's last update exported. Raises UsageError if there is none."""
    project, _ = open_stack(directory, stack)
    return read_catalog_config(project, stack)


def render(config: CatalogConfig, config_format: ConfigFormat) -> str:
    """Return the configuration as JSON, spark-defaults.conf, .pyiceberg.yaml, or exports of a shell."""
    match config_format:
        case ConfigFormat.SPARK:
            return spark_defaults(config)
        case ConfigFormat.PYICEBERG:
            return config.pyiceberg_yaml()
        case ConfigFormat.ENV:
            return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in config.environment().items())
        case ConfigFormat.JSON:
            return config.to_json()
