"""`lakewright config --format`: what a job needs, from a stack's outputs. The state is read; no engine runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from lakewright_spark.catalog import CatalogConfig
from pydantic import ValidationError

from lakewright.cli.errors import UsageError
from lakewright.cli.options import existing_stack
from lakewright.kubernetes.runtimes import spark_defaults

FORMATS = ("json", "spark", "pyiceberg", "env")
OUTPUT = "catalog_config"


def print_config(*, stack: str, format: str, directory: Path) -> None:  # noqa: A002 - the option's name
    """Print the stack's catalog configuration; UsageError if there is none, or for an unknown format."""
    if format not in FORMATS:
        raise UsageError(f"--format {format} is unknown; expected one of {', '.join(FORMATS)}")
    config = catalog_config(stack, directory)
    print(rendered(config, format).rstrip("\n"))
    if format == "env" and (unnamed := config.without_variables()):
        names = ", ".join(unnamed)
        print(f"note: PyIceberg's variables cannot name {names}; use --format pyiceberg for it", file=sys.stderr)


def catalog_config(stack: str, directory: Path) -> CatalogConfig:
    """The configuration that the stack's last update left."""
    from lakewright_engine.state.outputs import stack_outputs  # noqa: PLC0415 - only commands that need the state load it

    project, backend = existing_stack(directory, stack)
    found = stack_outputs(backend, project.name, stack).get(OUTPUT)
    if found is None:
        raise UsageError(f"stack '{stack}' has no output `{OUTPUT}`; run `lakewright up --stack {stack}` first")
    try:
        return CatalogConfig.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        message = f"output `{OUTPUT}` of stack '{stack}' is no catalog configuration: {where}: {first['msg']}"
        raise UsageError(message) from None


def rendered(config: CatalogConfig, form: str) -> str:
    """The configuration as a file's text: JSON, spark-defaults.conf, .pyiceberg.yaml, or a shell's exports."""
    match form:
        case "spark":
            return spark_defaults(config)
        case "pyiceberg":
            return config.pyiceberg_yaml()
        case "env":
            return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in config.environment().items())
        case _:
            return config.to_json()
