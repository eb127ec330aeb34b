"""The catalog configuration of jobs, which the last update of a stack exported, and its text in each format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright_spark.catalog import CatalogConfig

from lakewright.cli.config_formats.registry import load_format
from lakewright.cli.errors import UsageError
from lakewright.cli.options import open_stack

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject


OUTPUT = "catalog_config"


def read_catalog_config(project: PulumiProject, stack: str) -> CatalogConfig:
    """Return the configuration of a stack.

    Raises:
        EngineError: The state cannot be read.
        UsageError: The state has no configuration.
    """
    from lakewright_engine.state.outputs import stack_outputs  # noqa: PLC0415 - only commands that need the state load it
    from lakewright_spark.catalog import CatalogConfig  # noqa: PLC0415
    from pydantic import ValidationError  # noqa: PLC0415

    exported = stack_outputs(project.backend(), project.name, stack).get(OUTPUT)
    if exported is None:
        raise UsageError(f"stack '{stack}' has no output `{OUTPUT}`; run `lakewright up --stack {stack}` first")
    try:
        return CatalogConfig.model_validate(exported)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        message = f"output `{OUTPUT}` of stack '{stack}' is not a catalog configuration: {path}: {first['msg']}"
        raise UsageError(message) from None


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
