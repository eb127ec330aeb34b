"""The options of `preview`, `up`, `refresh` and `destroy`, and the operations that they limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.completions import complete_urn
from lakewright.cli.errors import UsageError
from lakewright.cli.options import EngineName

if TYPE_CHECKING:
    from lakewright_engine import Operation

Engine = Annotated[EngineName, typer.Option("--engine", help="Engine that runs the operation.")]
Refresh = Annotated[bool, typer.Option("--refresh", "-r", help="Read every object first.")]
ExpectNoChanges = Annotated[bool, typer.Option("--expect-no-changes", help="Exit with 7 if anything would change.")]
PreviewOnly = Annotated[bool, typer.Option("--preview-only", help="Show what would change; change nothing.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show each property that changes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Also show the output of the program's launcher and of provider plugins.")
]
Parallel = Annotated[int, typer.Option("--parallel", "-p", min=1, help="Number of concurrent steps.")]
Validate = Annotated[
    bool,
    typer.Option("--validate", help="Also check names, locations and storage of warehouses; writes probe objects."),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        help="Include only this URN; repeatable. * and ** match any text.",
        autocompletion=complete_urn,
    ),
]
TargetDependents = Annotated[
    bool, typer.Option("--target-dependents", help="Also include resources that depend on the targets.")
]
Exclusions = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        "-x",
        help="Exclude this URN; repeatable, with * and ** as for --target.",
        autocompletion=complete_urn,
    ),
]
ExcludeDependents = Annotated[
    bool, typer.Option("--exclude-dependents", help="Also exclude resources that depend on excluded resources.")
]
Replacements = Annotated[
    list[str] | None,
    typer.Option(
        "--replace", help="Replace this URN even if it has not changed; repeatable.", autocompletion=complete_urn
    ),
]
PolicyPacks = Annotated[
    list[str] | None,
    typer.Option("--policy-pack", help="Check resources by the policy pack in this folder; repeatable."),
]
PolicyPackConfigs = Annotated[
    list[str] | None,
    typer.Option("--policy-pack-config", help="File with settings of a policy pack; a file per pack, in order."),
]
SavePlan = Annotated[
    Path | None, typer.Option("--save-plan", help="Keep the plan in this file, for `up --plan`.", metavar="FILE")
]
HtmlPage = Annotated[
    Path | None,
    typer.Option(
        "--html", help="Write a page with whole documents, such as policies, before and after.", metavar="FILE"
    ),
]
Plan = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        help="Do exactly the steps of this kept plan, without asking; see docs/guides/plans.md.",
        metavar="FILE",
    ),
]
Adopt = Annotated[
    list[str] | None,
    typer.Option(
        "--adopt",
        help="Permit the adoption of a bucket, project, warehouse, role or key that the spec declares with `adopt`;"
        " repeatable. See docs/guides/taking-over.md.",
        metavar="KIND=NAME",
    ),
]
ResendCredentials = Annotated[
    bool,
    typer.Option(
        "--resend-credentials",
        help="Send the credentials of warehouses again even if they have not changed; see docs/guides/rotation.md.",
    ),
]
DEFAULT_PARALLEL = 16


def make_absolute(paths: list[str] | None) -> tuple[str, ...]:
    """Return absolute paths: the Pulumi CLI runs in the project's folder."""
    return tuple(str(Path(path).absolute()) for path in paths or ())


def limit_operation(
    operation: Operation,
    *,
    target: list[str] | None,
    target_dependents: bool,
    exclude: list[str] | None,
    exclude_dependents: bool = False,
    replaced: list[str] | None = None,
) -> Operation:
    """Return the operation limited to a part of the stack.

    Raises:
        UsageError: Targets and exclusions are combined, or an option for dependents stands alone.
    """
    if target and exclude:
        raise UsageError("--target and --exclude cannot be combined. Name what to include, or what to exclude")
    if target_dependents and not target:
        raise UsageError("--target-dependents requires --target")
    if exclude_dependents and not exclude:
        raise UsageError("--exclude-dependents requires --exclude")
    return replace(
        operation,
        targets=tuple(target or ()),
        target_dependents=target_dependents,
        excludes=tuple(exclude or ()),
        exclude_dependents=exclude_dependents,
        replace=tuple(replaced or ()),
    )
