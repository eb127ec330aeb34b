"""`lakewright preview`, `up`, `refresh` and `destroy`: the operations, on either engine."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import typer

from lakewright.cli.changes_page import write_changes
from lakewright.cli.engines.plan_options import engine_of_plan, format_plan, with_plan
from lakewright.cli.engines.plugin_errors import PluginErrorExplainingEngine
from lakewright.cli.engines.remainder import RemainderReportingEngine
from lakewright.cli.engines.validation import ValidatingEngine
from lakewright.cli.environments import warn_of_ignored_sandbox
from lakewright.cli.errors import UsageError
from lakewright.cli.json_errors import InterruptedOperationError
from lakewright.cli.operation_options import (
    DEFAULT_PARALLEL,
    Adopt,
    AsJson,
    Diff,
    Engine,
    ExcludeDependents,
    Exclusions,
    ExpectNoChanges,
    HtmlPage,
    Parallel,
    Plan,
    PolicyPackConfigs,
    PolicyPacks,
    PreviewOnly,
    Refresh,
    Replacements,
    ResendCredentials,
    SavePlan,
    TargetDependents,
    Targets,
    Validate,
    Verbose,
    Yes,
    limit_operation,
    make_absolute,
)
from lakewright.cli.options import HERE, Directory, EngineName, StackName, load_project
from lakewright.cli.ownership.consents import read_operator_consents
from lakewright.cli.ownership.declared_tenants import refuse_shared_tenant
from lakewright.cli.ownership.lost_objects import refuse_lost_objects
from lakewright.cli.ownership.refusals import refuse_owned_objects
from lakewright.cli.ownership.retained_objects import refuse_retained_objects
from lakewright.cli.ownership.server_access import ServerAccess
from lakewright.credentials.resending import RESEND
from lakewright.deletions.counting_engine import ContentCountingEngine
from lakewright.deletions.destroy_preview import GuardCheckingEngine, OperationEngine
from lakewright.names.tenant_parts import add_parts, group_by_part, sort_by_part
from lakewright.ownership.backend_identity import VARIABLE as BACKEND
from lakewright.ownership.backend_identity import compute_identity
from lakewright.ownership.consent import ADOPT, format_consents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakewright_engine import Operation, Result
    from lakewright_engine.project.project import PulumiProject

    from lakewright.cli.engines.choice import EngineChoice
    from lakewright.environment.environment import Environment

NOUNS = {"up": "update", "refresh": "refresh", "destroy": "destroy"}


def preview(
    stack: StackName,
    *,
    engine: Engine = EngineName.AUTO,
    directory: Directory = HERE,
    refresh: Refresh = False,
    expect_no_changes: ExpectNoChanges = False,
    target: Targets = None,
    target_dependents: TargetDependents = False,
    exclude: Exclusions = None,
    exclude_dependents: ExcludeDependents = False,
    replaced: Replacements = None,
    diff: Diff = False,
    as_json: AsJson = False,
    parallel: Parallel = DEFAULT_PARALLEL,
    verbose: Verbose = False,
    validate: Validate = False,
    policy_pack: PolicyPacks = None,
    policy_pack_config: PolicyPackConfigs = None,
    save_plan: SavePlan = None,
    html: HtmlPage = None,
    adopt: Adopt = None,
    resend_credentials: ResendCredentials = False,
) -> None:
    """Show what an update would change; with --refresh also changes made outside the stack.

    Example: lakewright preview --stack acme --refresh --diff
    """
    from lakewright_engine import Operation  # noqa: PLC0415 - `--help` needs no engine

    page = html.absolute() if html else None
    operation = Operation(
        "preview",
        load_project(directory),
        stack,
        refresh=refresh,
        expect_no_changes=expect_no_changes,
        parallel=parallel,
        policy_packs=make_absolute(policy_pack),
        policy_pack_configs=make_absolute(policy_pack_config),
    )
    operation = limit_operation(
        operation,
        target=target,
        target_dependents=target_dependents,
        exclude=exclude,
        exclude_dependents=exclude_dependents,
        replaced=replaced,
    )
    operation = with_plan(operation, save_plan=save_plan)
    _run_operation(
        operation,
        engine,
        diff=diff,
        as_json=as_json,
        yes=True,
        verbose=verbose,
        validate=validate,
        adopt=adopt,
        resend=resend_credentials,
        page=page,
    )


def up(
    stack: StackName,
    *,
    engine: Engine = EngineName.AUTO,
    directory: Directory = HERE,
    refresh: Refresh = False,
    expect_no_changes: ExpectNoChanges = False,
    preview_only: PreviewOnly = False,
    target: Targets = None,
    target_dependents: TargetDependents = False,
    exclude: Exclusions = None,
    exclude_dependents: ExcludeDependents = False,
    replaced: Replacements = None,
    diff: Diff = False,
    as_json: AsJson = False,
    yes: Yes = False,
    parallel: Parallel = DEFAULT_PARALLEL,
    verbose: Verbose = False,
    policy_pack: PolicyPacks = None,
    policy_pack_config: PolicyPackConfigs = None,
    plan: Plan = None,
    adopt: Adopt = None,
    resend_credentials: ResendCredentials = False,
) -> None:
    """Create or update the resources that the program declares.

    Example: lakewright up --stack acme --yes
    """
    from lakewright_engine import Operation  # noqa: PLC0415

    verb = "preview" if preview_only else "up"
    operation = Operation(
        verb,
        load_project(directory),
        stack,
        refresh=refresh,
        expect_no_changes=expect_no_changes,
        parallel=parallel,
        policy_packs=make_absolute(policy_pack),
        policy_pack_configs=make_absolute(policy_pack_config),
    )
    operation = limit_operation(
        operation,
        target=target,
        target_dependents=target_dependents,
        exclude=exclude,
        exclude_dependents=exclude_dependents,
        replaced=replaced,
    )
    operation = with_plan(operation, plan=plan)
    _run_operation(
        operation,
        engine_of_plan(engine, plan),
        diff=diff,
        as_json=as_json,
        yes=yes,
        verbose=verbose,
        adopt=adopt,
        resend=resend_credentials,
    )


def refresh(
    stack: StackName,
    *,
    engine: Engine = EngineName.AUTO,
    directory: Directory = HERE,
    expect_no_changes: ExpectNoChanges = False,
    preview_only: PreviewOnly = False,
    target: Targets = None,
    target_dependents: TargetDependents = False,
    exclude: Exclusions = None,
    exclude_dependents: ExcludeDependents = False,
    diff: Diff = False,
    as_json: AsJson = False,
    yes: Yes = False,
    parallel: Parallel = DEFAULT_PARALLEL,
    verbose: Verbose = False,
) -> None:
    """Read every object, and update the state with changes. The objects themselves do not change.

    Example: lakewright refresh --stack acme --preview-only
    """
    from lakewright_engine import Operation  # noqa: PLC0415

    operation = Operation(
        "refresh",
        load_project(directory),
        stack,
        expect_no_changes=expect_no_changes,
        preview_only=preview_only,
        parallel=parallel,
    )
    operation = limit_operation(
        operation,
        target=target,
        target_dependents=target_dependents,
        exclude=exclude,
        exclude_dependents=exclude_dependents,
    )
    _run_operation(operation, engine, diff=diff, as_json=as_json, yes=yes, verbose=verbose)


def destroy(
    stack: StackName,
    *,
    engine: Engine = EngineName.AUTO,
    directory: Directory = HERE,
    refresh: Refresh = False,
    preview_only: PreviewOnly = False,
    target: Targets = None,
    target_dependents: TargetDependents = False,
    exclude: Exclusions = None,
    diff: Diff = False,
    as_json: AsJson = False,
    yes: Yes = False,
    parallel: Parallel = DEFAULT_PARALLEL,
    verbose: Verbose = False,
) -> None:
    """Delete the resources of the stack that its spec allows to delete.

    Example: lakewright destroy --stack acme --preview-only
    """
    from lakewright_engine import Operation  # noqa: PLC0415

    operation = Operation(
        "destroy", load_project(directory), stack, refresh=refresh, preview_only=preview_only, parallel=parallel
    )
    operation = limit_operation(operation, target=target, target_dependents=target_dependents, exclude=exclude)
    _run_operation(operation, engine, diff=diff, as_json=as_json, yes=yes, verbose=verbose)


def _run_operation(
    operation: Operation,
    engine: EngineName,
    *,
    diff: bool,
    as_json: bool,
    yes: bool,
    verbose: bool,
    validate: bool = False,
    adopt: list[str] | None = None,
    resend: bool = False,
    page: Path | None = None,
) -> None:
    from lakewright.cli.engines.choice import choose_engine, format_choice  # noqa: PLC0415

    operation = replace(operation, verbose=verbose)
    yes = yes or operation.plan is not None  # a kept plan was reviewed before
    changes_objects = operation.verb != "preview" and not operation.preview_only
    if changes_objects and not yes and (as_json or not is_interactive()):
        raise UsageError("--yes or --preview-only must be passed in to proceed when running in non-interactive mode")
    access = open_server_access(operation.project)
    if operation.verb in ("preview", "up"):
        refuse_shared_tenant(access, operation.stack)
    if operation.verb != "refresh":
        consents = read_operator_consents(adopt)
        variables = {ADOPT: format_consents(consents)} if consents else {}
        variables[BACKEND] = compute_identity(operation.project.state_url)
        operation = replace(operation, environment=variables | ({RESEND: "1"} if resend else {}))
        refuse_owned_objects(access, operation.stack, consents, deletes=operation.verb == "destroy")
        if operation.verb == "destroy" or operation.targets or operation.excludes:
            refuse_lost_objects(access, operation.stack, consents)
        if operation.verb != "destroy":
            refuse_retained_objects(access, operation.stack, consents)
    choice = choose_engine(engine, operation.project, operation.stack)
    print(format_choice(choice), file=sys.stderr)
    if ignored := warn_of_ignored_sandbox(operation.project, operation.stack):
        print(f"warning: {ignored}", file=sys.stderr)
    choice = replace(choice, engine=_add_reports(choice.engine, access))
    if validate:
        choice = replace(choice, engine=ValidatingEngine(choice.engine))
    planned = 0
    if changes_objects and not yes:
        confirmed = _confirm(choice, operation, diff=diff)
        if confirmed is None:
            raise typer.Exit(1)
        planned = confirmed
    result = _run(choice, operation, diff=diff, as_json=as_json, planned=planned, page=page)
    raise typer.Exit(result.exit)


def _add_reports(engine: OperationEngine, access: ServerAccess) -> OperationEngine:
    """Return an engine that also reports contents, retained and adopted objects, refusals and what remains."""
    from lakewright.cli.adoption_display import AdoptionReportingEngine  # noqa: PLC0415 - loads the embedded engine
    from lakewright.deletions.retention_report import RetentionReportingEngine  # noqa: PLC0415

    counting = ContentCountingEngine(RetentionReportingEngine(PluginErrorExplainingEngine(engine)), access.find_bucket)
    return AdoptionReportingEngine(RemainderReportingEngine(GuardCheckingEngine(counting)).run)


def open_server_access(project: PulumiProject) -> ServerAccess:
    """Return how to read the environments and secrets of a project's stacks. Models are loaded on first use."""

    def load(name: str) -> Environment:
        from lakewright.environment.loading import load_environment  # noqa: PLC0415 - slow to load

        return load_environment(project, name)

    def open_resolver(stack: str) -> Callable[[str], str]:
        from lakewright.environment.loading import stack_resolver  # noqa: PLC0415 - slow to load

        return stack_resolver(project.stack_config(stack))

    return ServerAccess(project, load, open_resolver)


def is_interactive() -> bool:
    """Return whether a user can be asked."""
    return sys.stdin.isatty()


def _confirm(choice: EngineChoice, operation: Operation, *, diff: bool) -> int | None:
    """Show what would change, and ask. Return the number of planned resources; None if the user does not agree."""
    if operation.verb == "up":
        trial = replace(operation, verb="preview", expect_no_changes=False)
    else:
        trial = replace(operation, preview_only=True, expect_no_changes=False)
    noun = NOUNS[operation.verb]
    while True:
        result = _run(choice, trial, diff=diff, as_json=False)
        if result.exit:
            return None
        planned = sum(result.changes.values())
        if diff:
            return planned if typer.confirm(f"Do you want to perform this {noun}?") else None
        answer = typer.prompt(f"Do you want to perform this {noun}? [yes/no/details]", default="no", show_default=False)
        if answer != "details":
            return planned if answer in ("y", "yes") else None
        diff = True


def _run(
    choice: EngineChoice,
    operation: Operation,
    *,
    diff: bool,
    as_json: bool,
    planned: int = 0,
    page: Path | None = None,
) -> Result:
    from lakewright_engine.display.lines import Display  # noqa: PLC0415
    from lakewright_engine.display.report import MESSAGE_PREFIXES, OperationReport  # noqa: PLC0415

    from lakewright.terminal.console import open_console  # noqa: PLC0415

    if as_json:
        report = OperationReport()
        try:
            result = choice.engine.run(operation, report.take)
        except Exception as error:
            raise InterruptedOperationError(report) from error
        noted = [line for line in report.messages if line.startswith(MESSAGE_PREFIXES) and line not in result.messages]
        report.messages, report.changes = [*result.messages, *noted], result.changes
        printed = report.to_json(result.outputs, result.exit)
        steps = add_parts(printed["steps"])
        printed["steps"] = sort_by_part(steps) if operation.is_dry else steps
        if isinstance(choice.engine, ValidatingEngine):
            printed["validation"] = choice.engine.to_json()
        if result.remainder is not None:
            printed["remainder"] = result.remainder.to_json()
        if result.plan is not None:
            printed["plan"] = asdict(result.plan)
        if result.deleted_contents:
            printed["deleted_contents"] = [counted.to_json() for counted in result.deleted_contents]
        print(json.dumps(printed, indent=2, ensure_ascii=False))
        write_changes(page, operation, report)
        return result
    console = open_console(soft_wrap=True)
    errors = open_console(soft_wrap=True, stderr=True)
    display = Display(
        console,
        operation.verb,
        operation.stack,
        dry=operation.is_dry,
        diff=diff,
        errors=errors,
        planned=planned,
        group=group_by_part,
    )
    with display:
        result = choice.engine.run(operation, display)
    display.summary(result.outputs)
    for message in result.messages:
        if message not in display.report.messages:
            display.message(message)
    if result.plan is not None and result.exit == 0:
        print(format_plan(result.plan, operation.verb), file=sys.stderr)
    write_changes(page, operation, display.report)
    return result
