"""The list of commands. A command's module says what it takes; what it does is loaded when it runs."""

from __future__ import annotations

import typer

from lakewright_spark.cli import (
    executions,
    jars,
    job,
    maintain,
    policy,
    read,
    registry,
    restore,
    run,
    runs,
    usage,
)


def register(app: typer.Typer) -> None:
    """Add every command, in the order in which `--help` lists them."""
    app.command("run")(run.run)
    app.command("read")(read.read)
    app.add_typer(executions.app, name="executions")
    app.add_typer(registry.app, name="registry")
    app.command("job")(job.job)
    app.command("maintain")(maintain.maintain)
    app.command("restore")(restore.restore)
    app.add_typer(runs.app, name="runs")
    app.add_typer(policy.app, name="policy")
    app.command("usage")(usage.usage)
    app.command("jars")(jars.fetch_jars)
