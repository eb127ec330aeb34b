"""`lakewright plan`: kept plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from lakewright_spark.times import format_json_time_as_text

from lakewright.cli.stack_argument import CommandLine

if TYPE_CHECKING:
    from lakewright_engine.plans.plan_file import PlanDocument
    from rich.console import Console

app = CommandLine(add_completion=False, no_args_is_help=True, help="Kept plans of `preview --save-plan`.")


@app.callback()
def group() -> None:
    """Show a plan that `preview --save-plan` has kept."""


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="The plan.", metavar="FILE")],
    *,
    diff: Annotated[bool, typer.Option("--diff", help="Also show the properties of new resources.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what a plan changes, and what it was made from. Secrets are hidden, so no passphrase is needed.

    The signature is checked by `up --plan`, which has the passphrase.

    Example: lakewright plan show acme.plan.json --diff
    """
    from lakewright_engine.plans.deleted_contents import DeletedContents  # noqa: PLC0415
    from lakewright_engine.plans.plan_file import read_plan  # noqa: PLC0415 - `--help` needs no engine
    from lakewright_engine.plans.summary import plan_to_json  # noqa: PLC0415

    from lakewright.deletions.retention_report import rename_retained  # noqa: PLC0415

    document = read_plan(file)
    summary = rename_retained(plan_to_json(document), document)
    if as_json:
        print(json.dumps(summary, indent=2, ensure_ascii=False))
        return
    from lakewright.terminal.console import open_console  # noqa: PLC0415

    console = open_console(soft_wrap=True, highlight=False, markup=False)
    _print_header(console, document)
    _print_steps(console, summary["steps"], diff=diff)
    for counted in summary["contents"]:
        contents = DeletedContents(**counted)
        if not contents.is_empty:
            console.print(contents.to_message())


def _print_header(console: Console, document: PlanDocument) -> None:
    options = {name: value for name, value in document.options.to_json().items() if value}
    created = format_json_time_as_text(document.created)
    lines = {
        "Plan": f"stack {document.stack} of project {document.project}",
        "Made": f"{created} by the engine {document.engine} {document.engine_version}",
        "From": f"the state of {format_json_time_as_text(document.state.time) or 'a new stack'}",
        "Options": ", ".join(f"{name}={json.dumps(value)}" for name, value in options.items()) or "none",
        "SHA-256": document.sha256,
        "Signed": "yes" if document.is_signed else "no",
    }
    for name, text in lines.items():
        console.print(f"{name + ':':<9}{text}")


def _print_steps(console: Console, steps: list[dict[str, Any]], *, diff: bool) -> None:
    from lakewright_engine.display.lines import MARKS  # noqa: PLC0415

    from lakewright.terminal.escaping import escape_line  # noqa: PLC0415

    if not steps:
        console.print("No changes.")
    for step in steps:
        sign, colour, planned, _ = MARKS.get(step["op"], ("", "dim", step["op"], step["op"]))
        keys = f" [{', '.join(step['keys'])}]" if step["keys"] else ""
        console.print(escape_line(f"{sign:>3}  {step['type']}  {step['name']}  {planned}{keys}"), style=colour)
        if diff or step["op"] in ("update", "replace"):
            for item in step["properties"]:
                console.print(escape_line(f"      {item['sign']} {item['path']}: {item['text']}"))
