"""`lakewright stack`: list, create, read, export, import and remove stacks of a file backend."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from lakewright_spark.times import format_json_time, format_time, parse_json_time

from lakewright.cli import completions
from lakewright.cli.commands.ownership import forget
from lakewright.cli.default_stack import read_selected_stack, write_selected_stack
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, load_project, open_stack
from lakewright.cli.stack_argument import CommandLine

if TYPE_CHECKING:
    from lakewright_engine.state.backend import StackSummary

app = CommandLine(add_completion=False, no_args_is_help=True)

app.command()(forget)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("ls")
def list_stacks(
    *,
    directory: Directory = HERE,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also list stacks of other projects.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the stacks of this project. A stack whose state cannot be read is marked, with the reason on standard error.

    Resources are counted as by `up`: with stack and components, without default providers. `resource_count` of --json
    is the number of all entries of the state, as of `pulumi stack ls`.

    Example: lakewright stack ls --json
    """
    project = load_project(directory)
    stacks = project.backend().stacks(None if everything else project.name)
    if as_json:
        entries = [
            {
                "name": _display_name(stack, project.name),
                "last_update": stack.updated,
                "resource_count": stack.resources,
                "problem": stack.problem,
                "locks": [lock.to_json() for lock in stack.locks],
            }
            for stack in stacks
        ]
        _print_json({"version": 1, "stacks": entries})
        return
    rows = [
        (
            _display_name(stack, project.name),
            _ago(stack.updated),
            "unreadable" if stack.problem else str(stack.without_default_providers),
            ", ".join(lock.summary for lock in stack.locks),
        )
        for stack in stacks
    ]
    columns = 4 if any(stack.locks for stack in stacks) else 3
    head = ("NAME", "LAST UPDATE", "RESOURCES", "LOCKED BY")
    _print_table(head[:columns], [row[:columns] for row in rows])
    for problem in filter(None, (stack.problem for stack in stacks)):
        print(f"error: {problem}", file=sys.stderr)


@app.command()
def init(
    stack: Annotated[str | None, typer.Option("--stack", "-s", help="Name of the new stack.")] = None,
    directory: Directory = HERE,
) -> None:
    """Create a stack, and write the salt of its passphrase to its settings file.

    Example: lakewright stack init acme
    """
    from lakewright_engine.project.project import OWN_STATE  # noqa: PLC0415 - `--help` needs no engine

    from lakewright.fleet.absent_stacks import create_stack  # noqa: PLC0415

    if stack is None:
        raise UsageError("name the stack: `lakewright stack init NAME`")
    project = load_project(directory)
    backend = project.backend()
    is_first = project.has_own_state and backend.is_new
    create_stack(project, stack)
    if is_first:
        print(
            f"No backend is configured: states are kept in {project.root / OWN_STATE}. "
            "Set PULUMI_BACKEND_URL, or `backend: {url: ...}` in Pulumi.yaml, to keep them elsewhere.",
            file=sys.stderr,
        )
    print(f"Created stack '{stack}'")


@app.command()
def select(
    stack: Annotated[
        str | None,
        typer.Option("--stack", "-s", help="Name of the stack to select.", autocompletion=completions.complete_stack),
    ] = None,
    directory: Directory = HERE,
    *,
    clear: Annotated[bool, typer.Option("--clear", help="Select no stack.")] = False,
) -> None:
    """Select the stack of later commands that name none. Without a name, print the selected stack.

    `LAKEWRIGHT_STACK` takes precedence. `lakewright fleet` does not use the selection.

    Example: lakewright stack select acme
    """
    if clear and stack is not None:
        raise UsageError("--clear selects no stack: leave out the name, or --clear")
    if stack is not None:
        project, _ = open_stack(directory, stack)
        write_selected_stack(project, stack)
        print(f"Selected stack '{stack}'.")
        return
    project = load_project(directory)
    if clear:
        write_selected_stack(project, "")
        print("No stack is selected.")
        return
    print(read_selected_stack(project) or "No stack is selected.")


@app.command()
def output(
    stack: StackName,
    name: Annotated[str | None, typer.Argument(help="Print only this output.")] = None,
    *,
    directory: Directory = HERE,
    as_json: AsJson = False,
    show_secrets: Annotated[bool, typer.Option("--show-secrets", help="Print secret outputs in plain text.")] = False,
) -> None:
    """Print the outputs of the stack.

    Example: lakewright stack output --stack acme catalogConfig
    """
    from lakewright_engine.model.errors import StateError  # noqa: PLC0415
    from lakewright_engine.state.outputs import stack_outputs  # noqa: PLC0415

    project, backend = open_stack(directory, stack)
    outputs = stack_outputs(backend, project.name, stack, show_secrets=show_secrets)
    if name is not None:
        if name not in outputs:
            output_names = ", ".join(sorted(outputs)) or "none"
            raise StateError(f"stack '{stack}' does not have output property '{name}'; it has: {output_names}")
        value = outputs[name]
        _print_json(value) if as_json or not isinstance(value, str) else print(value)
    elif as_json:
        _print_json(outputs)
    else:
        print(f"Current stack outputs ({len(outputs)}):")
        _print_table(
            ("OUTPUT", "VALUE"), [(key, _text(value)) for key, value in sorted(outputs.items())], indent="    "
        )


@app.command()
def history(
    stack: StackName,
    *,
    directory: Directory = HERE,
    page_size: Annotated[int, typer.Option("--page-size", min=1, help="Updates per page.")] = 10,
    page: Annotated[int, typer.Option("--page", min=1, help="Page number; page 1 has the newest updates.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Print the updates of the stack with result, time and changes, newest first.

    Example: lakewright stack history --stack acme --page-size 3
    """
    project, backend = open_stack(directory, stack)
    entries = backend.history(project.name, stack)[(page - 1) * page_size : page * page_size]
    if as_json:
        _print_json({"version": 1, "updates": [_history_to_json(entry) for entry in entries]})
        return
    if not entries:
        print(f"Stack '{stack}' has never been updated." if page == 1 else f"There are no updates on page {page}.")
        return
    rows = [
        (
            str(entry.get("kind", "")),
            str(entry.get("result", "")),
            format_time(_to_time(entry.get("startTime"))),
            f"{max(0, int(entry.get('endTime') or 0) - int(entry.get('startTime') or 0))} s",
            ", ".join(f"{count} {change}" for change, count in _changes(entry).items()),
        )
        for entry in entries
    ]
    _print_table(("KIND", "RESULT", "STARTED", "TOOK", "CHANGES"), rows)


@app.command()
def export(
    stack: StackName,
    directory: Directory = HERE,
    file: Annotated[Path | None, typer.Option("--file", help="File to write. Default: standard output.")] = None,
) -> None:
    """Print the stack's state; secrets remain encrypted under its passphrase.

    Example: lakewright stack export --stack acme --file acme.json
    """
    project, backend = open_stack(directory, stack)
    text = json.dumps(backend.export(project.name, stack), indent=4, ensure_ascii=False) + "\n"
    if file is None:
        sys.stdout.write(text)
    else:
        file.write_text(text, encoding="utf-8")


@app.command("import")
def import_state(
    stack: StackName,
    *,
    directory: Directory = HERE,
    file: Annotated[Path | None, typer.Option("--file", help="File to read. Default: standard input.")] = None,
    backup: Annotated[
        bool, typer.Option("--backup", help="Restore the previous state, which the backend keeps as `.bak`.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Also import the state of another stack.")] = False,
) -> None:
    """Replace the stack's state with an exported state, after checking it.

    Example: lakewright stack import --stack acme --file acme.json
    """
    from lakewright_engine.model.errors import StateError  # noqa: PLC0415

    project, backend = open_stack(directory, stack)
    if backup:
        if file is not None:
            raise UsageError("--backup and --file cannot be combined")
        backend.import_(project.name, stack, backend.export_backup(project.name, stack), force=force)
        print("Import complete.")
        return
    source = str(file) if file is not None else "standard input"
    try:
        text = file.read_text(encoding="utf-8") if file is not None else sys.stdin.read()
        exported: Any = json.loads(text)
    except (OSError, ValueError) as error:
        raise StateError(f"{source} is not an exported state: {error}") from error
    if not isinstance(exported, dict):
        raise StateError(f"{source} is not an exported state: expected an object with version and deployment")
    backend.import_(project.name, stack, exported, force=force)  # pyright: ignore[reportUnknownArgumentType]
    print("Import complete.")


@app.command("rm")
def remove(
    stack: StackName,
    *,
    directory: Directory = HERE,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Remove it even if it has resources; the resources continue to exist.")
    ] = False,
    yes: Yes = False,
    remove_spec: Annotated[
        bool, typer.Option("--remove-spec", help="Also delete the stack's file, which has the tenant's spec.")
    ] = False,
    preserve_config: Annotated[
        bool, typer.Option("--preserve-config", help="Keep the stack's file: the default.", hidden=True)
    ] = False,
) -> None:
    """Remove a stack: its state and history. Its file with the spec is kept, unless `--remove-spec` is given.

    Example: lakewright stack rm --stack acme
    """
    if remove_spec and preserve_config:
        raise UsageError("--remove-spec and --preserve-config cannot be combined")
    project, backend = open_stack(directory, stack)
    spec = project.stack_file(stack)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("--yes must be passed in to remove a stack when running in non-interactive mode")
        file = f"deletes its file {spec}" if remove_spec else f"keeps its file {spec}"
        typer.confirm(
            f"This permanently removes the state and the history of stack '{stack}', and {file}. Continue?", abort=True
        )
    backend.remove(project.name, stack, force=force)
    print(f"Stack '{stack}' has been removed!")
    if remove_spec:
        spec.unlink(missing_ok=True)
        print(f"Deleted {spec}")
    elif spec.exists():
        print(f"Kept {spec}")


@app.command()
def cancel(stack: StackName, *, directory: Directory = HERE, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove the locks that interrupted runs left.

    Example: lakewright stack cancel --stack acme --yes
    """
    project, backend = open_stack(directory, stack)
    if not yes and sys.stdin.isatty():
        typer.confirm(
            f"This removes the locks of '{stack}', even of a run that is still in progress. Continue?", abort=True
        )
    removed = backend.cancel(project.name, stack)
    if as_json:
        _print_json({"version": 1, "removed": [{**lock.to_json(), "holder": lock.holder} for lock in removed]})
        return
    for lock in removed:
        print(f"Removed {lock.name}: {lock.holder}")
    if not removed:
        print(f"Stack '{stack}' has no locks.")


def _history_to_json(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry with the fields of `pulumi stack history --json`; a secret setting has no value."""
    config: dict[str, Any] = {}
    settings: dict[str, Any] = entry.get("config") or {}
    for key, value in settings.items():
        is_secret = isinstance(value, dict) and "secure" in value
        config[key] = {"secret": True} if is_secret else {"value": value, "secret": False}
    printed = {
        "version": entry.get("version", 0),
        "kind": entry.get("kind", ""),
        "start_time": format_json_time(_to_time(entry.get("startTime"))),
        "message": entry.get("message", ""),
        "environment": entry.get("environment") or {},
        "config": config,
        "result": entry.get("result", ""),
    }
    if entry.get("endTime"):
        printed |= {
            "end_time": format_json_time(_to_time(entry["endTime"])),
            "resource_changes": _changes(entry),
        }
    return printed


def _display_name(stack: StackSummary, project: str) -> str:
    return stack.name if stack.project == project else f"{stack.project}/{stack.name}"


def _changes(entry: dict[str, Any]) -> dict[str, int]:
    return entry.get("resourceChanges") or {}


def _to_time(seconds: Any) -> datetime:
    return datetime.fromtimestamp(int(seconds or 0), UTC)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _print_table(head: tuple[str, ...], rows: list[tuple[str, ...]], indent: str = "") -> None:
    from lakewright.terminal.text_lines import format_table  # noqa: PLC0415 - `--help` prints no table

    print("\n".join(format_table(head, rows, indent)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _ago(timestamp: str) -> str:
    """Return the age of a timestamp, such as `3 days ago`; `n/a` without one."""
    then = parse_json_time(timestamp)
    if then is None:
        return "n/a"
    seconds = max(0, int((datetime.now(UTC) - then).total_seconds()))
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "now"
