"""Enforce the limits of many stacks, by usage that is measured now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import EngineError
from pydantic import ValidationError

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.drift.session import ScanSession
from lakewright.errors import LakewrightError
from lakewright.fleet.states import StateReader, state_reader
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.provider.run_context import RunContext
from lakewright.limits.compute_enforcement import find_namespace
from lakewright.limits.limited_parts import read_measured_limits
from lakewright.limits.stack_enforcement import StackEnforcement, StackEnforcer
from lakewright.terminal.json_document import make_head
from lakewright.validation.documents import as_mapping
from lakewright.validation.moment import Clock, read_clock

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack
    from lakewright.fleet.spark_reports import SparkReport

_GRANT = "pulumi-python:dynamic/lakekeeper:Grant"
MEASURE_COMMAND = ("usage",)
"""The command of `lakewright-spark` that measures usage."""
Measure = Callable[[Sequence["SelectedStack"]], Sequence["SparkReport"]]
"""Returns the reports of `lakewright-spark usage` on stacks, measured now."""


def enforce_limits(
    project: PulumiProject,
    selected: Sequence[SelectedStack],
    measure: Measure,
    *,
    reader: StateReader | None = None,
    clock: Clock = read_clock,
) -> list[StackEnforcement]:
    """Suspend grants of writers and starts of units where a limit is reached, and end enforcement below the limit.

    Only stacks whose states have limited grants or units are measured. States are never written.

    Args:
        project: The project of the stacks.
        selected: The stacks.
        measure: Measures the usage of stacks.
        reader: Reads the states; the reader of the project's backend if omitted.
        clock: Time with which ends of grants are compared.
    """
    states, session = reader or state_reader(project), ScanSession(project, clock=clock)
    try:
        measured = [stack for stack in selected if _has_enforced_limits(states, stack)]
        reports = {report.stack.name: report for report in measure(measured)} if measured else {}
        return [*session.map(lambda stack: _enforce_stack(session, states, stack, reports.get(stack.name)), selected)]
    finally:
        session.close()


def _has_enforced_limits(states: StateReader, stack: SelectedStack) -> bool:
    try:
        state = states.read(stack.name)
    except EngineError:
        return False  # reported when the stack is processed
    if any(resource.type == _GRANT and resource.inputs.get("limited_by") for resource in state.resources):
        return True
    namespace = find_namespace(state)
    return namespace is not None and namespace.is_limited


def _enforce_stack(
    session: ScanSession, states: StateReader, stack: SelectedStack, report: SparkReport | None
) -> StackEnforcement:
    context = RunContext(clients=ClientPool(shared=session.clients), clock=session.clock)
    enforcer = StackEnforcer(session, context, stack.name, lambda: states.read(stack.name))
    limits = read_measured_limits(report.report) if report else []
    problem = _describe_gaps(report) if report else ""
    try:
        enforcement = enforcer.run(limits, is_complete=not problem)
    except (LakewrightError, UnresolvedCredentialError, EngineError) as error:
        enforcement = StackEnforcement(stack.name, problems=[str(error)])
    except ValidationError:
        text = "its state is not as this version writes it; run `lakewright up`"
        enforcement = StackEnforcement(stack.name, problems=[text])
    finally:
        context.clients.close()
    if problem:
        enforcement.problems.append(
            f"usage was not measured completely, so no enforcement of limits of data ends: {problem}"
        )
    return enforcement


def _describe_gaps(report: SparkReport) -> str:
    """Return what a report does not measure: failures, and warehouses that its identity cannot see."""
    hidden = as_mapping(report.report.get("left_out"))
    gaps = [
        f"warehouse {name} is hidden from the identity of jobs: {reason}" for name, reason in sorted(hidden.items())
    ]
    return "; ".join([*([report.problem] if report.problem else []), *gaps])


def compute_exit_code(enforcements: Iterable[StackEnforcement]) -> int:
    """Return 1 if anything could not be measured, suspended or granted again, else 0."""
    return 1 if any(enforcement.problems for enforcement in enforcements) else 0


def to_json(enforcements: Sequence[StackEnforcement]) -> dict[str, Any]:
    """Return a run as JSON."""
    stacks = [enforcement.to_json() for enforcement in enforcements]
    return {**make_head("enforce-limits"), "exit": compute_exit_code(enforcements), "stacks": stacks}
