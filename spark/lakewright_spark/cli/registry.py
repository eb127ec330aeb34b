"""`lakewright-spark registry`: the database of executions."""

from __future__ import annotations

import typer

from lakewright_spark.cli.options import RegistryUrl

app = typer.Typer(no_args_is_help=True, help="The database of executions.")


@app.callback()
def _group() -> None:
    """The database of executions."""


@app.command()
def upgrade(*, registry: RegistryUrl = None) -> None:
    """Bring its tables to this release's version, from nothing or from an older one."""
    from lakewright_spark.execution_registry import database  # noqa: PLC0415  # SQLAlchemy takes a while to load

    engine = database.connect(registry or database.default_url())
    version = database.upgrade(engine)
    print(f"{database.shown(engine.url)} is at version {version}")
