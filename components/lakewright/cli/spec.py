"""`lakewright spec`: check tenants' specs before anything is called, and print their JSON Schema."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, load_project

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Check a tenant's spec; print its JSON Schema.")

Files = Annotated[list[Path] | None, typer.Argument(help="Stack files. Default: all of the project.")]


@app.command()
def validate(files: Files = None, directory: Directory = HERE) -> None:
    """Tell every mistake in the given files, each with its path and what was expected; exit code 1 if there is one."""
    from lakewright.spec import SpecError, read_stack_file  # noqa: PLC0415 - `--help` needs no models

    faulty = False
    for file in files or _stack_files(directory):
        try:
            read_stack_file(file)
        except SpecError as error:
            faulty = True
            print(error, file=sys.stderr)
            continue
        print(f"{file}: valid")
    if faulty:
        raise typer.Exit(1)


@app.command()
def schema(
    environment: Annotated[bool, typer.Option("--environment", help="The schema of environments/NAME.yaml.")] = False,
) -> None:
    """Print the JSON Schema that editors use."""
    if environment:
        from lakewright.environment_schema import environment_schema_text  # noqa: PLC0415

        sys.stdout.write(environment_schema_text())
        return
    from lakewright.spec.schema import schema_text  # noqa: PLC0415

    sys.stdout.write(schema_text())


def _stack_files(directory: Path) -> list[Path]:
    folder = load_project(directory).stack_config_dir
    if found := sorted(folder.glob("Pulumi.*.yaml")):
        return found
    raise UsageError(f"{folder} has no Pulumi.<stack>.yaml; name the files, or make one with `lakewright new TENANT`")
