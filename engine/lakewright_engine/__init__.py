r"""An embedded engine for Pulumi Python programs: `run` an `Operation` on a stack, with events and a `Result`.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from lakewright_engine import Operation
>>> from lakewright_engine.project.project import PulumiProject
>>> with TemporaryDirectory() as folder:
...     _ = Path(folder, "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
...     project = PulumiProject.load(folder)
>>> operation = Operation("preview", project, "dev", refresh=True)
>>> operation.is_dry
True

`run(operation, print)` runs it, and prints its events.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulumi.automation.events import EngineEvent

    from lakewright_engine.operation import Operation, Result

__all__ = ["Operation", "Result", "run"]


def run(operation: Operation, on_event: Callable[[EngineEvent], None]) -> Result:
    """Run an operation. Errors of single resources are in the events and in the result.

    Raises:
        EngineError: The operation cannot start: the stack is unknown or locked, the passphrase is wrong, or an option
            is not supported.
    """
    from lakewright_engine.operation import refuse_policy_packs  # noqa: PLC0415 - as `__getattr__`
    from lakewright_engine.processes.forkserver import ForkServer  # noqa: PLC0415

    refuse_policy_packs(operation)
    python = operation.project.python
    interpreter = str(python) if python is not None else sys.executable
    with ForkServer(interpreter, operation.project.working_directory) as forks:
        _prepare_key(operation)
        # Half a second of imports that reading or editing a stack's state and settings does not need. They run in
        # parallel with the imports of the fork server.
        from lakewright_engine.engine import run as run_operation  # noqa: PLC0415

        return run_operation(operation, on_event, forks)


def __getattr__(name: str) -> Any:
    """Import `Operation` and `Result` on use: most modules of the package need neither."""
    if name not in {"Operation", "Result"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lakewright_engine import operation  # noqa: PLC0415

    return getattr(operation, name)


def _prepare_key(operation: Operation) -> None:
    """Start to derive the key of the stack's secrets, in parallel with the imports, if the operation needs it."""
    project, stack = operation.project, operation.stack
    if not operation.is_dry and project.backend().exists(project.name, stack):
        project.secrets(stack).prepare()
