"""The command line `lakewright-spark`: a module for each command or group of commands."""

from __future__ import annotations

import gc
import logging
import os
import sys
from enum import Enum
from importlib.metadata import version
from typing import Annotated, Any

import typer

from lakewright_spark.cli import (
    activate,
    connect_server,
    daily_usage,
    executions,
    job,
    maintain,
    migrate,
    policy,
    printing,
    record_archives,
    record_compute,
    restore,
    run,
    runs,
    standby,
    startup_warnings,
    usage,
)
from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.plain_help import PlainHelpTyper
from lakewright_spark.session import jars, storage_jars
from lakewright_spark.usage_errors import format_usage_error

PROGRAM = "lakewright-spark"
USAGE_ERROR = 2
"""Exit code of a wrong command line, as in `lakewright_spark.errors`."""
_COMPLETES = "_LAKEWRIGHT_SPARK_COMPLETE"
"""Variable of a shell that asks for completions; `lakewright completion` prints the scripts of both programs."""

app = PlainHelpTyper(
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Run scripts and maintenance on a tenant's warehouses; read and clean up execution results.",
)
# In the order in which `--help` lists them. A module declares options; it loads what a command needs when that runs.
app.command("run")(run.run)
app.command("read")(executions.read)
app.add_typer(executions.app, name="executions")
app.add_typer(executions.registry_app, name="registry")
app.command("job")(job.job)
app.command("maintain")(maintain.maintain)
app.command("migrate")(migrate.migrate)
app.add_typer(standby.app, name="standby")
app.command("restore")(restore.restore)
app.add_typer(runs.app, name="runs")
app.add_typer(policy.app, name="policy")
app.command("usage")(usage.usage)
app.command("daily-usage")(daily_usage.daily_usage)
app.command("record-compute")(record_compute.record_compute)
app.command("record-archives")(record_archives.record_archives)
app.command(connect_server.NAME)(connect_server.serve)
app.command("activate")(activate.activate)


class CloudService(Enum):
    """Storage services whose jars are downloaded on request."""

    ADLS = "adls"
    GCS = "gcs"


@app.command("jars")
def fetch_jars(
    storages: Annotated[
        list[CloudService] | None,
        typer.Option("--storage", help="Also download the jars for tables on Azure or Google; repeatable."),
    ] = None,
) -> None:
    """Download the Iceberg jars and compile this package's own, unless they exist, and print their paths.

    Example: lakewright-spark jars --storage adls
    """
    sdks = [package for storage in storages or [] for package in storage_jars.PACKAGES[storage.value]]
    for path in [*jars.fetch([*jars.PACKAGES, *sdks]), jars.own()]:
        print(path)


def _print_version(is_requested: object) -> None:  # typer calls it
    if is_requested:
        typer.echo(f"lakewright-spark {version('lakewright-spark')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also show the messages that Spark and its JVM write on every start.")
    ] = False,
) -> None:
    """Run scripts and maintenance on a tenant's warehouses; read and clean up execution results."""
    del show_version  # printed while it is parsed
    # A server replaces this process, which then filters nothing.
    if not verbose and context.invoked_subcommand != connect_server.NAME:
        context.with_resource(startup_warnings.filter_warnings())


SUPPRESSED = ("Exception while sending command.", "Failed to delete metadata file")
"""py4j's traceback for each call that Spark's end interrupts; PyIceberg on files that the server deletes before it."""


def _is_relevant(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(SUPPRESSED)


def main() -> None:
    """Run the command line. Errors of this package print a sentence and set the exit code."""
    gc.set_threshold(50_000, 20, 20)  # imports create many objects and hardly any garbage
    for name in (None, "pyiceberg.catalog"):
        logging.getLogger(name).addFilter(_is_relevant)
    if _COMPLETES in os.environ:
        from typer.completion import completion_init  # noqa: PLC0415 # pyright: ignore[reportPrivateImportUsage]

        completion_init()
    try:
        code: Any = typer.main.get_command(app).main(prog_name=PROGRAM, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except LakewrightSparkError as error:
        printing.complain(f"lakewright-spark: {error}")
        raise SystemExit(error.exit_code) from None
    except typer.Abort:
        printing.complain("Aborted.")
        raise SystemExit(1) from None
    except BrokenPipeError:  # the reader has closed the pipe, such as `head`
        raise SystemExit(1) from None
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # printed its help
            raise SystemExit(USAGE_ERROR) from None
        message = format_usage_error(error)
        if message is None:
            raise
        printing.complain(f"error: {message}")
        raise SystemExit(USAGE_ERROR) from None
    finally:
        printing.flush()
