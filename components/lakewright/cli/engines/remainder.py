"""Report what an interrupted run did not do: steps that were not finished, and the command that continues it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.validation.documents import as_list, as_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakewright_engine import Operation, Result
    from lakewright_engine.display.report import StepReport
    from lakewright_engine.operation import Remainder, RemainingStep
    from pulumi.automation.events import EngineEvent

    from lakewright.cli.engines.choice import Engine

_MAX_LISTED = 20
_NOT_COMPARED = {"up": "check", "refresh": "refresh", "destroy": "delete"}
_NO_CHANGE = ("same", "read", "refresh", "replace")
"""Steps of a preview that change no object. `replace` announces a creation and a deletion."""
_NOT_COUNTED = ("pulumi:pulumi:Stack", "pulumi:providers:")


@dataclass
class RemainderReportingEngine:
    """Runs another engine. The result of an interrupted run says what remains.

    The preview that a user confirmed names the steps. Without a preview, the steps are the resources of the state and
    of the program that the run did not reach.
    """

    engine: Engine
    _planned: list[StepReport] | None = field(default=None, init=False)

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        from lakewright_engine.display.report import OperationReport  # noqa: PLC0415 - `--help` needs no engine

        report = OperationReport()
        try:
            result = self.engine.run(operation, report.observe(on_event))
        except KeyboardInterrupt:
            if not operation.is_dry:
                print(_describe_sudden_stop(operation), file=sys.stderr)
            raise
        if operation.is_dry:
            self._planned = report.steps
        elif result.is_interrupted:
            result.remainder = find_remainder(
                operation,
                report.steps,
                self._planned,
                declared_resources=result.declared_resources,
                state=_urns_in_state(operation),
            )
            result.messages.append(f"note: {format_remainder(result.remainder)}")
        return result


def find_remainder(
    operation: Operation,
    taken: Sequence[StepReport],
    planned: Sequence[StepReport] | None,
    *,
    declared_resources: Sequence[tuple[str, str]] = (),
    state: Sequence[str] = (),
) -> Remainder:
    """Return what an interrupted run did not do.

    Args:
        operation: The operation.
        taken: The steps of the run.
        planned: The steps of its preview; None without a preview.
        declared_resources: Type and name of the resources that the program declared.
        state: The URNs in the state after the run.
    """
    from lakewright_engine.operation import Remainder  # noqa: PLC0415

    finished = {(step.urn, step.op) for step in taken if step.done and not step.failed}
    if planned is not None and operation.verb != "refresh":
        steps = [_step(step.op, step.urn) for step in planned if step.op not in _NO_CHANGE]
        steps = [step for step in steps if (step.urn, step.op) not in finished]
        return Remainder(tuple(steps), is_complete=True, command=_command(operation))
    urns = {urn for urn, _ in finished}
    remaining_steps = {step.urn: _step(step.op, step.urn) for step in taken if step.urn not in urns}
    for urn in state:
        if operation.verb == "destroy" or urn not in urns:
            remaining_steps.setdefault(urn, _step(_NOT_COMPARED[operation.verb], urn))
    finished_names = {(step.type, step.name) for step in (*remaining_steps.values(), *(_step("", urn) for urn in urns))}
    steps = [*remaining_steps.values(), *_not_registered(declared_resources, finished_names)]
    remaining = tuple(step for step in steps if not step.type.startswith(_NOT_COUNTED))
    return Remainder(remaining, is_complete=operation.verb != "up", command=_command(operation))


def format_remainder(remainder: Remainder) -> str:
    """Return the text at the end of an interrupted run."""
    count = len(remainder.steps)
    lines = ["interrupted. What finished is saved."]
    if count:
        lines.append(f"{count} step(s) remain:")
    elif remainder.is_complete:
        lines.append("No step remains.")
    lines += [f"  {step.op} {step.name} ({step.type})" for step in remainder.steps[:_MAX_LISTED]]
    if count > _MAX_LISTED:
        lines.append(f"  and {count - _MAX_LISTED} more")
    if not remainder.is_complete:
        lines.append("The program was stopped before it ended, and may declare more resources.")
    lines.append(f"Continue with: {remainder.command}")
    return "\n".join(lines)


def _not_registered(
    declared_resources: Sequence[tuple[str, str]], finished_names: set[tuple[str, str]]
) -> list[RemainingStep]:
    """Return the resources that the program declared and that the run did not come to."""
    from lakewright_engine.operation import RemainingStep  # noqa: PLC0415

    return [
        RemainingStep("create", kind, name)
        for kind, name in dict.fromkeys(declared_resources)
        if (kind, name) not in finished_names
    ]


def _step(op: str, urn: str) -> RemainingStep:
    from lakewright_engine.model.urns import urn_name  # noqa: PLC0415
    from lakewright_engine.operation import RemainingStep  # noqa: PLC0415

    kind = urn.split("::")[2].rpartition("$")[2] if urn.count("::") > 2 else ""
    return RemainingStep(op, kind, urn_name(urn), urn)


def _command(operation: Operation) -> str:
    arguments = ["lakewright", operation.verb, "--stack", operation.stack]
    if operation.refresh:
        arguments.append("--refresh")
    for option, values in (
        ("--target", operation.targets),
        ("--exclude", operation.excludes),
        ("--replace", operation.replace),
    ):
        arguments += [word for value in values for word in (option, value)]
    arguments += ["--target-dependents"] if operation.target_dependents else []
    arguments += ["--exclude-dependents"] if operation.exclude_dependents else []
    return shlex.join(arguments)


def _urns_in_state(operation: Operation) -> list[str]:
    return [str(resource.get("urn")) for resource in _resources(operation, "resources") if not resource.get("delete")]


def _describe_sudden_stop(operation: Operation) -> str:
    """Return the text after a second interrupt, which ends a run at once."""
    pending = [as_mapping(item.get("resource")).get("urn") for item in _resources(operation, "pending_operations")]
    text = f"Stopped at once. The state of stack '{operation.stack}' is whole; "
    if pending:
        text += (
            f"{len(pending)} operation(s) with an unknown result are recorded in it, and the next run looks them up:"
        )
        text += "".join(f"\n  {urn}" for urn in pending)
    else:
        text += "no operation was in progress."
    return f"{text}\nContinue with: {_command(operation)}"


def _resources(operation: Operation, part: str) -> Iterator[Any]:
    """Yield a part of the deployment in the state, from backends that the engine reads."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415

    try:
        exported = operation.project.backend().export(operation.project.name, operation.stack)
    except EngineError:  # the run reports it
        return
    yield from map(as_mapping, as_list(as_mapping(exported.get("deployment")).get(part)))
