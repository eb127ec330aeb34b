"""Preview a destruction: make the checks of the deletion guard, which an engine makes only when it deletes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakewright_engine import Operation, Result
    from lakewright_engine.display.report import StepReport
    from pulumi.automation.events import EngineEvent

GUARD = "lakekeeper:DeletionGuard"


class OperationEngine(Protocol):
    """Runs operations."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        ...


@dataclass(frozen=True)
class GuardCheckingEngine:
    """Runs another engine. The preview of a `destroy` fails with the reasons for which the `destroy` would."""

    engine: OperationEngine

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        from lakewright_engine.display.report import OperationReport  # noqa: PLC0415 - `--help` needs no engine

        if operation.verb != "destroy" or not operation.is_dry:
            return self.engine.run(operation, on_event)
        report = OperationReport()
        result = self.engine.run(operation, report.observe(on_event))
        refusals = [f"error: {refusal}" for refusal in _find_refusals(operation, report.steps)]
        result.messages += refusals
        result.exit = result.exit or int(bool(refusals))
        return result


def _find_refusals(operation: Operation, steps: Sequence[StepReport]) -> Iterator[str]:
    """Yield the reasons for which the guards among the deleted resources refuse the deletion."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - slow to load

    from lakewright.credentials.references import UnresolvedCredentialError  # noqa: PLC0415
    from lakewright.deletions.recorded_objects import ProviderPool, find_deleted  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.errors import LakekeeperError  # noqa: PLC0415
    from lakewright.ownership.running_stack import run_as_stack  # noqa: PLC0415

    guards = [deleted for deleted in find_deleted(steps) if deleted.type == GUARD]
    if not guards:
        return
    with closing(ProviderPool(operation.project, operation.stack)) as providers:
        for guard in guards:
            provider = providers.get(guard)
            assert provider is not None
            try:
                # It only checks: the guard has no object. The stack is the stack that would run, whatever the state
                # says.
                delete = partial(provider.delete, guard.id, guard.outputs)
                run_as_stack(operation.project.name, operation.stack, delete)
            except (LakekeeperError, UnresolvedCredentialError, EngineError) as error:
                yield f"{type(error).__name__}: {error}"
