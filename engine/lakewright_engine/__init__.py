"""An embedded engine for Pulumi Python programs: `run` an Operation on a stack, get events on the way and a Result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright_engine.operation import Operation, Result
from lakewright_engine.processes.forkserver import ForkServer

if TYPE_CHECKING:
    from pulumi.automation.events import EngineEvent

__all__ = ["Operation", "Result", "run"]


def run(operation: Operation, on_event: Callable[[EngineEvent], None]) -> Result:
    """Carries out the operation; whatever happens to single resources is told by events and in the result.

    Raises EngineError when it cannot begin: an unknown or locked stack, a wrong passphrase, an unsupported option.
    """
    python = operation.project.python
    interpreter = str(python) if python is not None else sys.executable
    with ForkServer(interpreter, operation.project.working_directory) as forks:
        _prepare_key(operation)
        # Half a second of imports, which reading or editing a stack's state and settings does not need; here they go
        # on beside those of the fork server.
        from lakewright_engine.engine import run as run_operation  # noqa: PLC0415

        return run_operation(operation, on_event, forks)


def _prepare_key(operation: Operation) -> None:
    """Lets the key of the stack's secrets be derived beside the imports, where the operation will need it."""
    project, stack = operation.project, operation.stack
    if not operation.is_dry and project.backend().exists(project.name, stack):
        project.secrets(stack).prepare()
