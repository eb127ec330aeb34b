"""`lakewright adopt` and `lakewright stack forget`: let a stack adopt objects, and give up a stack's objects."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from lakewright.cli.completions import complete_environment
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, load_project, open_stack
from lakewright.cli.stack_argument import CommandLine

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

app = CommandLine(add_completion=False, no_args_is_help=True)


@app.callback()
def adopt() -> None:
    """Let a stack adopt objects that it did not create."""


@app.command()
def consent(
    objects: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND=NAME...",
            help="Objects: bucket=NAME, project=ID, role=NAME (IAM) or key=ALIAS (KMS). In a shared project:"
            " warehouse=PROJECT/NAME or role=PROJECT/NAME.",
        ),
    ],
    stack: StackName,
    *,
    directory: Directory = HERE,
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment",
            help="Environment of the objects. Default: the environment that the stack's spec names.",
            autocompletion=complete_environment,
        ),
    ] = None,
) -> None:
    """Permit a stack to adopt objects: write its name on them. Its spec also needs `adopt: true`.

    The stack may be in another project: name it PROJECT/STACK. A consent for a project covers what is in it, a consent
    for a bucket covers its key. The adoption removes the consent.

    Example: lakewright adopt consent --stack acme bucket=acme-lake project=acme
    """
    # `--help` needs no servers.
    from lakewright.cli.commands.operations import open_server_access  # noqa: PLC0415
    from lakewright.cli.ownership.consents import parse_options  # noqa: PLC0415
    from lakewright.cli.ownership.server_marks import open_server_marks  # noqa: PLC0415
    from lakewright.ownership.mark import format_stack  # noqa: PLC0415

    consents = sorted(parse_options("adopt consent", objects))
    project = load_project(directory)
    other_project, _, name = stack.rpartition("/")
    adopter = format_stack(other_project or project.name, name)
    marks = open_server_marks(open_server_access(project), name, environment)
    for item in consents:
        marks.write_consent(item, adopter)
        print(f"{item}: stack `{adopter}` may adopt it.")
    print(f"`lakewright up --refresh --stack {name}` adopts what the stack declares.")


def forget(
    stack: StackName,
    *,
    directory: Directory = HERE,
    yes: Yes = False,
) -> None:
    """Remove all resources from the stack's state, as for a stack whose objects another stack owns now.

    No server is asked or changed: the objects keep existing. To keep some of them in the state, use `state rm`.

    Example: lakewright stack forget --stack acme
    """
    project, backend = open_stack(directory, stack)
    deployment: dict[str, Any] = backend.export(project.name, stack)["deployment"]
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    urns = [str(resource["urn"]) for resource in resources]
    if not urns and not deployment.get("pending_operations"):
        print(f"Stack '{stack}' has no resources.")
        return
    for urn in urns:
        print(urn)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("--yes must be passed in to forget resources when running in non-interactive mode")
        typer.confirm(
            f"This removes {len(urns)} resources from the state of '{stack}'. Their objects keep existing, and no"
            " stack deletes them unless it has them in its state. Continue?",
            abort=True,
        )

    def empty(edited: dict[str, Any]) -> None:
        edited["resources"] = []
        edited.pop("pending_operations", None)

    backend.edit(project.name, stack, empty)
    print(
        f"Stack '{stack}' has forgotten {len(urns)} resources. `lakewright stack import --stack {stack} --backup`"
        f" restores the state, `lakewright stack rm --stack {stack}` removes the stack."
    )
