"""`lakewright config --format json`: the catalog configuration of jobs, from the stack's outputs. No engine runs."""

from __future__ import annotations

import sys
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig

from lakewright.cli.catalog_outputs import read_catalog_config
from lakewright.cli.config_formats.registry import load_format
from lakewright.cli.options import open_stack


def print_config(stack: str, format_name: str, directory: Path) -> None:
    """Print the stack's catalog configuration. Raises UsageError if there is none."""
    config = catalog_config(stack, directory)
    config_format = load_format(format_name)
    print(config_format.render(config).rstrip("\n"))
    if omissions := config_format.describe_omissions(config):
        print(f"note: {omissions}", file=sys.stderr)


def catalog_config(stack: str, directory: Path) -> CatalogConfig:
    """Return the configuration that the stack's last update exported. Raises UsageError if there is none."""
    project, _ = open_stack(directory, stack)
    return read_catalog_config(project, stack)
