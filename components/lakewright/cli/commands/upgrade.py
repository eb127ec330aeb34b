"""`lakewright upgrade`: convert a project of an earlier version, and show the differences."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, load_project


def upgrade(
    directory: Directory = HERE,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write the files without asking.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if files differ.")] = False,
) -> None:
    """Convert a project to the installed version: program, specs, requirements, schemas and CI. Shows the differences.

    Names and states of stacks do not change.

    Example: lakewright upgrade --check
    """
    from lakewright.new_project.files import write_files  # noqa: PLC0415 - `--help` needs no models
    from lakewright.new_project.upgrade import format_changes, list_changes  # noqa: PLC0415

    if yes and check:
        raise UsageError("`--yes` writes and `--check` does not; give one of them")
    root = load_project(directory).root
    changes = list_changes(root)
    if not changes:
        print(f"{root} has the files of this version")
        return
    print("\n".join(format_changes(changes)))
    count = f"{len(changes)} files differ"
    if check:
        print(f"{count}: `lakewright upgrade` writes them", file=sys.stderr)
        raise typer.Exit(1)
    if not yes and not sys.stdin.isatty():
        raise UsageError(f"{count}, and nothing was written; `--yes` writes them")
    if not yes and not typer.confirm(f"{count}. Write them?"):
        raise typer.Exit(1)
    write_files(root, {str(path): after for path, (_, after) in changes.items()})
    print(f"Wrote {len(changes)} files. Commit them together with the new version of Lakewright.")
