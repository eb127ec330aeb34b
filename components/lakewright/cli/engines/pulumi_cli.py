"""The Pulumi CLI as an engine, driven through the Automation API. Messages and exit codes come from the CLI."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.cli.engines.cli_state import export_deployment, export_state, import_state, read_outputs
from lakewright.cli.engines.launcher_tracebacks import LauncherTracebacks
from lakewright.cli.errors import NO_MESSAGE, PulumiCliError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright_engine import Operation, Result
    from pulumi.automation import CommandError, Stack
    from pulumi.automation.events import EngineEvent

    from lakewright.cli.engines.pulumi_plans import CliPlan


_READS_OPTIONS_FROM_ENVIRONMENT = (3, 208)
"""The first version of the CLI that takes every option from PULUMI_OPTION_NAME as well."""


_DECLARED = re.compile(r"registering resource: ty=(?P<type>\S+), name=(?P<name>.*), custom=")
"""A debug message of the SDK when a program declares a resource."""


_SDK_LOG = re.compile(r"SDK \d{4}/\d\d/\d\d ")
"""A line of the CLI's AWS SDK, which warns of stores without checksums."""


class PulumiCli:
    """The Pulumi CLI. It must be on the PATH, and the program's environment needs pip."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event.

        Raises:
            PulumiCliError: The CLI failed before it touched a resource.
        """
        from lakewright_engine import Result  # noqa: PLC0415 - `--help` needs neither engine
        from lakewright_engine.display.report import OperationReport  # noqa: PLC0415
        from lakewright_engine.state.backend import stack_not_found  # noqa: PLC0415
        from pulumi import automation  # noqa: PLC0415

        from lakewright.cli.engines.pulumi_plans import observe, open_cli_plan  # noqa: PLC0415
        from lakewright.cli.engines.pulumi_process import PulumiInOwnSession  # noqa: PLC0415

        _refuse_locked(operation)
        report = OperationReport()
        command = PulumiInOwnSession()
        tracebacks = LauncherTracebacks(on_event)
        show = on_event if operation.verbose else tracebacks

        declared_resources: list[tuple[str, str]] = []

        def collect_event(event: EngineEvent) -> None:
            report.add(event)
            if event.diagnostic_event is not None and (match := _DECLARED.match(event.diagnostic_event.message)):
                declared_resources.append((match["type"], match["name"]))
            show(event)

        try:
            workspace = automation.LocalWorkspace(
                work_dir=str(operation.project.root),
                env_vars=_environment(operation),
                pulumi_command=command,
            )
            stack = automation.Stack.select(operation.stack, workspace)
        except automation.StackNotFoundError as error:
            raise stack_not_found(operation.stack) from error
        except automation.CommandError as error:
            raise PulumiCliError(*_message_and_code(error)) from error
        result = Result(0)
        with _cli_errors(), open_cli_plan(operation, stack) as plan:
            try:
                with write_pending_creations(stack, clears=not operation.is_dry) as environment:
                    workspace.env_vars = {**workspace.env_vars, **environment, **plan.environment}
                    if command.is_interrupted:
                        raise PulumiCliError("interrupted before the operation began; nothing was changed", 1)
                    _operate(stack, plan, observe(plan, collect_event))
            except automation.CommandError as error:
                cli_error, result.exit = _message_and_code(error)
                cli_error = plan.redact(cli_error)
                errors = [message for message in report.messages if message.startswith("error: ")]
                if not errors and not report.steps:
                    raise PulumiCliError(cli_error, result.exit) from None
                if not errors or result.exit != 1:
                    report.messages.append(f"error: {cli_error}")
            finally:
                tracebacks.flush()
            plan.complete(report, result)
        result.changes, result.messages = report.changes, report.messages
        result.is_interrupted, result.declared_resources = command.is_interrupted, declared_resources
        _add_outputs(result, stack)
        return result


@contextmanager
def _cli_errors() -> Generator[None]:
    """Turn a failed command of the CLI into a PulumiCliError."""
    from pulumi.automation import CommandError  # noqa: PLC0415 - `--help` needs no engine

    try:
        yield
    except CommandError as error:
        raise PulumiCliError(*_message_and_code(error)) from error


def _refuse_locked(operation: Operation) -> None:
    """Remove locks that killed runs of the embedded engine left, which the CLI would take for locks of living runs.

    Raises:
        StackLockedError: Another process holds the lock; the message says since when.
    """
    from lakewright_engine.state.backends import is_native  # noqa: PLC0415

    if not operation.is_dry and is_native(operation.project.state_url):
        operation.project.backend().refuse_locked(operation.project.name, operation.stack)


@contextmanager
def write_pending_creations(stack: Stack, *, clears: bool) -> Generator[dict[str, str]]:
    """Yield the environment variables that name the creations that an interrupted run of this stack started.

    The CLI keeps such an operation in the state after a later run completed it. It would let this stack adopt an
    object that another stack creates later, so it is removed, also after a failed run.

    Args:
        stack: The stack that runs.
        clears: Whether the run may write the state; a preview must not.
    """
    from lakewright_engine.state import interrupted_creations as pending  # noqa: PLC0415 - `--help` needs no engine
    from pulumi.automation import CommandError  # noqa: PLC0415

    before = export_deployment(stack)
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
                if not has_failed:  # the error of the run matters more
                    raise


def _clear_carried_out(stack: Stack, before: dict[str, Any]) -> None:
    """Remove completed creations from the state, unless another run changes it in the meantime."""
    from lakewright_engine.state import interrupted_creations as pending  # noqa: PLC0415

    after = export_state(stack)
    cleared = pending.remove_completed(after.get("deployment") or {}, before)
    if cleared is not None and export_state(stack) == after:
        import_state(stack, {**after, "deployment": cleared})


def _operate(stack: Stack, plan: CliPlan, on_event: Callable[[EngineEvent], None]) -> None:
    operation = plan.operation
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
    checked: dict[str, Any] = {
        "policy_packs": list(operation.policy_packs) or None,
        "policy_pack_configs": list(operation.policy_pack_configs) or None,
    }
    if operation.verb == "preview":
        stack.preview(**shared, **excluded, **replaced, **expected, **fresh, **checked, plan=plan.file)
    elif operation.verb == "up":
        stack.up(**shared, **excluded, **replaced, **expected, **fresh, **checked, plan=plan.file)
    elif operation.verb == "refresh":
        (stack.preview_refresh if operation.preview_only else stack.refresh)(**shared, **excluded, **expected)
    else:
        _pass_exclusions(stack, operation)
        (stack.preview_destroy if operation.preview_only else stack.destroy)(**shared, **fresh)


def _add_outputs(result: Result, stack: Stack) -> None:
    """Add the stack's outputs to a result. The operation has ended, so a failure is a warning."""
    from pulumi.automation import CommandError  # noqa: PLC0415 - `--help` needs no engine

    try:
        result.outputs = read_outputs(stack)
    except (CommandError, ValueError) as error:
        reason = _message_and_code(error)[0] if isinstance(error, CommandError) else str(error)
        result.messages.append(f"warning: the outputs of the stack could not be read: {reason}")


def _pass_exclusions(stack: Stack, operation: Operation) -> None:
    """Pass the exclusions of a destroy to the CLI as environment variable: the Automation API has no argument for them.

    Raises:
        UsageError: The CLI would ignore them and destroy everything.
    """
    if not operation.excludes:
        return
    version = stack.workspace.pulumi_version
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _READS_OPTIONS_FROM_ENVIRONMENT:
        needed = ".".join(map(str, _READS_OPTIONS_FROM_ENVIRONMENT))
        raise UsageError(
            f"destroy --exclude needs the Pulumi CLI {needed} or later; found {version}. "
            "Update it, or use --engine embedded"
        )
    if any("," in urn for urn in operation.excludes):
        raise UsageError("destroy --exclude accepts no URN with a comma on the Pulumi CLI. Use --engine embedded")
    environment = {"PULUMI_OPTION_EXCLUDE": ",".join(operation.excludes)}
    stack.workspace.env_vars = {**stack.workspace.env_vars, **environment}


def _environment(operation: Operation) -> dict[str, str]:
    """Return the environment variables of the CLI.

    A program without a virtual environment runs in the current environment, as on the embedded engine. The Automation
    API runs the CLI in the project's folder, so relative paths become absolute.
    """
    from lakewright_engine.state.backends import is_native  # noqa: PLC0415

    environment = {
        **operation.environment,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        # The CLI reads this option from the environment, too.
        "PULUMI_OPTION_SHOW_SECRETS": "false",
    }
    if is_native(operation.project.state_url):
        environment["PULUMI_BACKEND_URL"] = operation.project.backend().cli_url
    if file := os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        environment["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(Path(file).absolute())
    return environment


def _message_and_code(error: CommandError) -> tuple[str, int]:
    """Return the CLI's error lines and its exit code, 1 where a signal ended it."""
    from lakewright_engine.processes.child_process import name_signal  # noqa: PLC0415 - `--help` needs no engine

    text = str(error)
    match = re.search(r"^\s*code: (-?\d+)", text, re.MULTILINE)
    code = int(match[1]) if match else 1
    lines = [line.removeprefix("error: ").strip() for line in text.partition("\n stderr: ")[2].splitlines()]
    lines = [line for line in lines if line and not _SDK_LOG.match(line)]
    if code < 0:
        lines.append(f"the Pulumi CLI was ended by {name_signal(-code)}")
    return "\n".join(lines) or NO_MESSAGE, max(code, 1)
