"""The Pulumi CLI behind the four verbs, driven through its Automation API, with the words and exit codes of the CLI."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.cli.engines.launcher_tracebacks import LauncherTracebacks
from lakewright.cli.errors import CliFailed, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright_engine import Operation, Result
    from pulumi.automation import CommandError, Stack
    from pulumi.automation.events import EngineEvent


_READS_OPTIONS_FROM_ENVIRONMENT = (3, 208)
"""The first version of the CLI that takes every option from PULUMI_OPTION_NAME as well."""


class PulumiCli:
    """Needs `pulumi` on the PATH, and pip in the environment that runs the program."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Raises CliFailed if the CLI could not begin; what happens to resources is told by events and the result."""
        from lakewright_engine import Result  # noqa: PLC0415 - `--help` needs neither engine
        from lakewright_engine.display.report import OperationReport  # noqa: PLC0415
        from lakewright_engine.state.backend import stack_not_found  # noqa: PLC0415
        from pulumi import automation  # noqa: PLC0415

        from lakewright.cli.engines.pulumi_process import PulumiInOwnSession  # noqa: PLC0415

        report = OperationReport()
        tracebacks = LauncherTracebacks(on_event)
        show = on_event if operation.verbose else tracebacks

        def heard(event: EngineEvent) -> None:
            report.add(event)
            show(event)

        try:
            workspace = automation.LocalWorkspace(
                work_dir=str(operation.project.root),
                env_vars=_environment(operation),
                pulumi_command=PulumiInOwnSession(),
            )
            stack = automation.Stack.select(operation.stack, workspace)
        except automation.StackNotFoundError as error:
            raise stack_not_found(operation.stack) from error
        except automation.CommandError as error:
            raise CliFailed(*_said(error)) from error
        result = Result(0)
        try:
            with pending_creations(stack, clears=not operation.is_dry) as environment:
                workspace.env_vars = {**workspace.env_vars, **environment}
                _operate(stack, operation, heard)
        except automation.CommandError as error:
            message, result.exit = _said(error)
            why = [one for one in report.messages if one.startswith("error: ")]
            if not why and not report.steps:
                raise CliFailed(message, result.exit) from error
            if not why or result.exit != 1:
                report.messages.append(f"error: {message}")
        finally:
            tracebacks.flush()
        result.changes, result.messages = report.changes, report.messages
        result.outputs = {
            name: "[secret]" if output.secret else output.value for name, output in stack.outputs().items()
        }
        return result


@contextmanager
def pending_creations(stack: Stack, *, clears: bool) -> Generator[dict[str, str]]:
    """The environment that tells providers what an interrupted run of this stack began to create.

    The CLI keeps such an operation in the state even after a later run carried it out. It would let this stack take
    over an object that another one makes later, so it is removed, also after a run that failed.

    Args:
        stack: The stack that runs.
        clears: Whether the run may write the state, which a preview must not.
    """
    from lakewright_engine.state import interrupted_creations as pending  # noqa: PLC0415 - `--help` needs no engine
    from pulumi.automation import CommandError  # noqa: PLC0415

    before = dict(stack.export_stack().deployment or {})
    has_failed = True
    try:
        with pending.write_environment(pending.from_export(before)) as environment:
            yield environment
        has_failed = False
    finally:
        if clears and before.get("pending_operations"):
            try:
                _clear_carried_out(stack, before)
            except CommandError:
                if not has_failed:  # the failure of the run itself counts
                    raise


def _clear_carried_out(stack: Stack, before: dict[str, Any]) -> None:
    """Remove carried-out creations from the state, unless another run changes it meanwhile."""
    from lakewright_engine.state import interrupted_creations as pending  # noqa: PLC0415
    from pulumi.automation import Deployment  # noqa: PLC0415

    after = stack.export_stack()
    cleared = pending.remove_completed(after.deployment or {}, before)
    if cleared is not None and stack.export_stack().deployment == after.deployment:
        stack.import_stack(Deployment(version=after.version, deployment=cleared))


def _operate(stack: Stack, operation: Operation, on_event: Callable[[EngineEvent], None]) -> None:
    shared: dict[str, Any] = {
        "parallel": operation.parallel,
        "on_event": on_event,
        "target": list(operation.targets) or None,
        "target_dependents": operation.target_dependents,
        "color": "never",
    }
    excluded: dict[str, Any] = {
        "exclude": list(operation.excludes) or None,
        "exclude_dependents": operation.exclude_dependents,
    }
    replaced: dict[str, Any] = {"replace": list(operation.replace) or None}
    expected: dict[str, Any] = {"expect_no_changes": operation.expect_no_changes}
    fresh: dict[str, Any] = {"refresh": operation.refresh}
    if operation.verb == "preview":
        stack.preview(**shared, **excluded, **replaced, **expected, **fresh)
    elif operation.verb == "up":
        stack.up(**shared, **excluded, **replaced, **expected, **fresh)
    elif operation.verb == "refresh":
        (stack.preview_refresh if operation.preview_only else stack.refresh)(**shared, **excluded, **expected)
    else:
        _pass_exclusions(stack, operation)
        (stack.preview_destroy if operation.preview_only else stack.destroy)(**shared, **fresh)


def _pass_exclusions(stack: Stack, operation: Operation) -> None:
    """Hand the exclusions of a destroy to the CLI in its environment: the Automation API has no argument for them.

    Raises:
        UsageError: The CLI would not see them, and would destroy everything.
    """
    if not operation.excludes:
        return
    version = stack.workspace.pulumi_version
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _READS_OPTIONS_FROM_ENVIRONMENT:
        needed = ".".join(map(str, _READS_OPTIONS_FROM_ENVIRONMENT))
        raise UsageError(
            f"destroy --exclude needs version {needed} of the Pulumi CLI or a newer one, and found {version}: "
            "update it, or use --engine embedded"
        )
    if any("," in urn for urn in operation.excludes):
        raise UsageError("destroy --exclude takes no URN with a comma on the Pulumi CLI: use --engine embedded")
    environment = {"PULUMI_OPTION_EXCLUDE": ",".join(operation.excludes)}
    stack.workspace.env_vars = {**stack.workspace.env_vars, **environment}


def _environment(operation: Operation) -> dict[str, str]:
    """A program without a virtual environment of its own runs in ours, as on the embedded engine.

    The Automation API runs the CLI in the project's folder: what is relative to the working directory is made absolute.
    """
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
    }
    if operation.project.state_url.startswith("file://"):
        environment["PULUMI_BACKEND_URL"] = f"file://{operation.project.backend().root.parent}"
    if file := os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        environment["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(Path(file).absolute())
    return environment


def _said(error: CommandError) -> tuple[str, int]:
    """The CLI's own error lines, and its exit code."""
    text = str(error)
    code = re.search(r"^\s*code: (-?\d+)", text, re.MULTILINE)
    stderr = text.partition("\n stderr: ")[2] or text
    lines = [line.removeprefix("error: ").strip() for line in stderr.splitlines() if line.strip()]
    return "\n".join(lines) or "the Pulumi CLI failed without saying why", int(code[1]) if code else 1
