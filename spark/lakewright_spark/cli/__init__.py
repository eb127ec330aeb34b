"""`lakewright-spark`: a folder's commands, one file each; a module registers its own on import of `commands`."""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Annotated

import typer

from lakewright_spark.cli import commands, printing, startup_warnings
from lakewright_spark.errors import LakewrightSparkError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run jobs and scripts on a tenant's warehouses, read and clean up what executions wrote.",
)
commands.register(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"lakewright-spark {version('lakewright-spark')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show what Spark and its JVM write on every start, too.")
    ] = False,
) -> None:
    """Run jobs and scripts on a tenant's warehouses, read and clean up what executions wrote."""
    del show_version  # printed while it is parsed
    if not verbose:
        context.with_resource(startup_warnings.left_out())


NOISE = ("Exception while sending command.", "Failed to delete metadata file")
"""py4j's traceback for each call that Spark's end interrupts; PyIceberg on files that the server deletes before it."""


def _says_something(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(NOISE)


def main() -> None:
    """The entry point: errors of this package are a sentence and an exit code by kind, not a traceback."""
    for name in (None, "pyiceberg.catalog"):
        logging.getLogger(name).addFilter(_says_something)
    try:
        app()
    except LakewrightSparkError as error:
        printing.complain(f"lakewright-spark: {error}")
        raise SystemExit(error.exit_code) from None
