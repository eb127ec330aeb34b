"""`lakewright spec`: check tenants' specs without a server, and print their JSON Schema."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.commands.specs.explain import explain
from lakewright.cli.commands.specs.from_server import from_server
from lakewright.cli.errors import UsageError
from lakewright.cli.json_errors import JsonErrorsCommand
from lakewright.cli.options import HERE, Directory, load_project
from lakewright.cli.stack_argument import CommandLine

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.spec import Problem, SpecError

app = CommandLine(add_completion=False, no_args_is_help=True, help="Check and explain specs; print their JSON Schema.")

app.command()(explain)
app.command("from-server", cls=JsonErrorsCommand)(from_server)

Files = Annotated[list[Path] | None, typer.Argument(help="Stack files. Default: all of the project.")]


@app.command()
def validate(
    files: Files = None,
    directory: Directory = HERE,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: the problems of each file.")] = False,
) -> None:
    """Check stack files in their environments, and that no two declare one tenant or place. Exit code 1 on mistakes.

    No server is asked. Settings of a platform stack, and of a sandbox that is not running, are not checked.

    Example: lakewright spec validate tenants/Pulumi.acme.yaml
    """
    # `--help` needs no models.
    from lakewright.cli.environments import servers_by_environment  # noqa: PLC0415
    from lakewright.deletions.protected_purges import find_contradictions  # noqa: PLC0415
    from lakewright.environment.stack_file_check import check_stack_file  # noqa: PLC0415
    from lakewright.project_files.shared_values import find_spec_positions  # noqa: PLC0415
    from lakewright.project_files.stack_files import SPEC_SECTIONS  # noqa: PLC0415
    from lakewright.spec import Problem, SpecError, TenantSpec  # noqa: PLC0415
    from lakewright.spec.stack_conflicts import find_stack_conflicts, group_possible_conflicts  # noqa: PLC0415

    specs: dict[Path, TenantSpec] = {}
    mistakes: dict[Path, SpecError] = {}
    notes: dict[Path, tuple[str, ...]] = {}
    project = _find_project(directory)
    root = project.root if project else None
    if project and (mistake := _find_program_mistake(project)):
        mistakes[Path(mistake.source)] = mistake
    for file in files or _stack_files(project or load_project(Path())):
        try:
            checked = check_stack_file(file, root, os.environ)
            specs[file], notes[file] = checked.spec, checked.notes
        except SpecError as error:
            mistakes[file] = error
    servers = servers_by_environment(root or Path())
    # A file that is named twice has no conflict with itself.
    distinct_files = {file.resolve(): file for file in specs}
    neighbors = group_possible_conflicts({str(file): specs[file] for file in distinct_files.values()})
    for file, spec in specs.items():
        other_specs = neighbors[str(distinct_files[file.resolve()])]
        if problems := [Problem(path, expected) for path, expected in find_stack_conflicts(spec, other_specs, servers)]:
            mistakes[file] = SpecError(str(file), find_spec_positions(problems, file, *SPEC_SECTIONS))
    if as_json:
        warnings = {file: find_contradictions(spec) for file, spec in specs.items()}
        report = _report_to_json([*specs, *mistakes], mistakes, notes, warnings)
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        for error in mistakes.values():
            print(error, file=sys.stderr)
        for file in (file for file in specs if file not in mistakes):
            print(f"{file}: valid")
            for note in notes[file]:
                print(f"  {note}")
            for warning in find_contradictions(specs[file]):
                print(f"warning: {file}: {warning}", file=sys.stderr)
    if mistakes:
        raise typer.Exit(1)


@app.command()
def schema(
    *,
    environment: Annotated[
        bool, typer.Option("--environment", help="Print the schema of environments/NAME.yaml instead.")
    ] = False,
    platform: Annotated[
        bool, typer.Option("--platform", help="Print the schema of a platform stack's spec instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of stack files, for editors.

    Example: lakewright spec schema --environment
    """
    if platform:
        from lakewright.explanation.json_schemas import format_platform_schema  # noqa: PLC0415

        sys.stdout.write(format_platform_schema())
        return
    if environment:
        from lakewright.explanation.json_schemas import environment_schema_text  # noqa: PLC0415

        sys.stdout.write(environment_schema_text())
        return
    from lakewright.explanation.json_schemas import schema_text  # noqa: PLC0415

    sys.stdout.write(schema_text())


def _report_to_json(
    files: list[Path],
    mistakes: dict[Path, SpecError],
    notes: dict[Path, tuple[str, ...]],
    warnings: dict[Path, list[Problem]],
) -> dict[str, Any]:
    entries = [
        {
            "file": str(file),
            "valid": file not in mistakes,
            "problems": [asdict(problem) for problem in mistakes[file].problems] if file in mistakes else [],
            "notes": list(notes.get(file, ())),
            "warnings": [asdict(warning) for warning in warnings.get(file, [])],
        }
        for file in sorted(set(files))
    ]
    return {"version": 1, "files": entries}


def _stack_files(project: PulumiProject) -> list[Path]:
    folder = project.stack_config_dir
    if files := sorted(folder.glob("Pulumi.*.yaml")):
        return files
    raise UsageError(
        f"{folder} has no Pulumi.<stack>.yaml; name the files, or write a spec with `lakewright new TENANT`"
    )


def _find_project(directory: Path) -> PulumiProject | None:
    """Return the project of a folder, and change into it; None outside a project, where files may be validated, too."""
    from lakewright_engine.model.errors import ProjectNotFoundError  # noqa: PLC0415 - `--help` needs no engine

    try:
        return load_project(directory)
    except ProjectNotFoundError:
        return None


def _find_program_mistake(project: PulumiProject) -> SpecError | None:
    """Return why the project's program would read no spec; None if it may read them."""
    from lakewright.environment.stack_file_check import refuse_unread_specs  # noqa: PLC0415
    from lakewright.spec import SpecError  # noqa: PLC0415

    try:
        refuse_unread_specs(project.program, str(project.file))
    except SpecError as error:
        return error
    return None
