"""`--save-plan` and `--plan`: the plan that an operation keeps or follows, and what it was computed from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.cli.errors import UsageError
from lakewright.cli.options import EngineName
from lakewright.project_files import stack_files

if TYPE_CHECKING:
    from lakewright_engine import Operation
    from lakewright_engine.operation import PlanSummary
    from lakewright_engine.project.project import PulumiProject


def with_plan(operation: Operation, *, save_plan: Path | None = None, plan: Path | None = None) -> Operation:
    """Return an operation that keeps its plan in a file, or follows the plan in a file.

    Raises:
        UsageError: Another option contradicts the plan.
    """
    if save_plan is None and plan is None:
        return operation
    if operation.expect_no_changes:
        option = "--save-plan" if save_plan else "--plan"
        raise UsageError(f"{option} and --expect-no-changes cannot be combined: a plan says itself what changes")
    if plan is not None:
        _refuse_plan_options(operation)
    return replace(
        operation,
        save_plan=save_plan.absolute() if save_plan else None,
        plan=plan.absolute() if plan else None,
        plan_inputs=spec_inputs(operation.project, operation.stack),
    )


def engine_of_plan(engine: EngineName, plan: Path | None) -> EngineName:
    """Return the engine that follows a plan: the engine that made the plan, unless another engine is chosen."""
    if plan is None or engine is not EngineName.AUTO:
        return engine
    from lakewright_engine.plans.plan_file import read_plan  # noqa: PLC0415 - `--help` needs no engine

    name = read_plan(plan).engine
    return EngineName.PULUMI if name == EngineName.PULUMI else EngineName.EMBEDDED


def spec_inputs(project: PulumiProject, stack: str) -> dict[str, str]:
    """Return hashes of what a stack's spec depends on: shared values, environment and platform; empty without one."""
    from lakewright_engine.plans.state_version import content_hash  # noqa: PLC0415

    from lakewright.environment.platform_reference import read_platform_name  # noqa: PLC0415 - slow to load
    from lakewright.project_files.shared_values import FOLDER, read_merged_spec  # noqa: PLC0415

    stack_file = project.stack_file(stack)
    merged = read_merged_spec(stack_file, *stack_files.SPEC_SECTIONS)
    inputs = {f"{FOLDER}/": content_hash(merged.document)} if merged.origins else {}
    name = stack_files.raw_spec(stack_file).get("environment")
    if not isinstance(name, str) or not name:
        return inputs
    document = stack_files.raw_environment(project.root, name)
    file = stack_files.environment_file(project.root, name)
    inputs[str(file.relative_to(project.root))] = content_hash(document)
    if platform := read_platform_name(document):
        from lakewright.environment.loading import platform_reader  # noqa: PLC0415 - slow to load

        inputs[f"outputs of {platform}"] = content_hash(platform_reader(project)(platform))
    return inputs


def format_plan(plan: PlanSummary, verb: str) -> str:
    """Return a line about the plan that an operation has saved or followed."""
    if verb == "preview":
        return f"Plan saved: {plan.file} (sha256 {plan.sha256}). Apply it with `lakewright up --plan {plan.file}`"
    return f"Plan done: all steps of {plan.file} (sha256 {plan.sha256})"


def _refuse_plan_options(operation: Operation) -> None:
    options = {
        "--refresh": operation.refresh,
        "--target": operation.targets,
        "--exclude": operation.excludes,
        "--replace": operation.replace,
        "--preview-only": operation.verb == "preview",
    }
    if names := [name for name, value in options.items() if value]:
        raise UsageError(
            f"--plan and {', '.join(names)} cannot be combined: the plan holds the options of its preview. "
            "Leave them out, or make a plan with them"
        )
