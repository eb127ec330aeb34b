"""The two engines that run operations, and the choice between them."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from lakewright.cli.engines.pulumi_cli import PulumiCli
from lakewright.cli.environments import is_in_sandbox
from lakewright.cli.errors import UsageError
from lakewright.cli.options import EngineName
from lakewright.project_files import plugins

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright_engine import Operation, Result
    from lakewright_engine.project.project import PulumiProject
    from pulumi.automation.events import EngineEvent


_SANDBOX_PROVIDERS = {"aws", "kubernetes"}
"""Packages with a provider in the sandbox. The Pulumi CLI uses it only if PULUMI_DEBUG_PROVIDERS attaches it."""


class Engine(Protocol):
    """Runs operations."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and report each event."""
        ...


@dataclass(frozen=True)
class EngineChoice:
    """An engine, its name, and why it was chosen."""

    engine: Engine
    name: str
    reason: str


@dataclass(frozen=True)
class EmbeddedEngine:
    """The embedded engine. It records updates in the stack's history as the Pulumi CLI does."""

    in_sandbox: bool
    """Whether the environment is a sandbox, which has its own providers."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        """Run an operation, and record it in the history."""
        from lakewright_engine import run  # noqa: PLC0415 - `--help` needs no engine
        from lakewright_engine.model.errors import StateError  # noqa: PLC0415

        started = int(time.time())
        result = run(replace(operation, in_sandbox=self.in_sandbox), on_event)
        if operation.verb != "preview" and not operation.preview_only:
            try:
                _record(operation, result, started)
            except StateError as error:  # the state is saved, so the operation succeeded
                result.messages.append(f"warning: {error}")
        return result


def choose_engine(name: EngineName, project: PulumiProject, stack: str) -> EngineChoice:
    """Return the engine of a name. `auto` is the Pulumi CLI if it can run the stack, else the embedded engine."""
    cli = shutil.which("pulumi")
    if name is EngineName.PULUMI:
        if cli is None:
            raise UsageError(
                "--engine pulumi needs the Pulumi CLI, which is not on the PATH; install it, or use --engine embedded"
            )
        return EngineChoice(PulumiCli(), "pulumi", f"chosen with --engine; {cli}")
    in_sandbox = is_in_sandbox(project, stack)
    if name is EngineName.EMBEDDED:
        return EngineChoice(EmbeddedEngine(in_sandbox), "embedded", "chosen with --engine")
    needed = plugins.find_needed_plugins(project, stack) if cli is not None else set[str]()
    if reason := _why_not_cli(needed, in_sandbox=in_sandbox):
        return EngineChoice(EmbeddedEngine(in_sandbox), "embedded", reason)
    has = f" and has the plugins for {', '.join(sorted(needed))}" if needed else ""
    return EngineChoice(PulumiCli(), "pulumi", f"it is on the PATH{has}")


def _why_not_cli(needed: set[str], *, in_sandbox: bool) -> str:
    """Return why the Pulumi CLI cannot run the stack, or should not; empty if it should."""
    if shutil.which("pulumi") is None:
        return "the Pulumi CLI is not on the PATH"
    if shutil.which("pulumi-language-python") is None:
        return "the Pulumi CLI has no pulumi-language-python beside it"
    if absent := plugins.find_missing_plugins(needed):
        return f"the Pulumi CLI has no plugin for {', '.join(absent)}"
    if in_sandbox and (sandbox_plugins := plugins.find_unattached_plugins(needed & _SANDBOX_PROVIDERS)):
        return f"the environment is a sandbox, which has its own {', '.join(sandbox_plugins)}"
    return ""


def _record(operation: Operation, result: Result, started: int) -> None:
    project = operation.project
    backend = project.backend()
    settings = project.stack_config(operation.stack)
    backend.record(
        project.name,
        operation.stack,
        {
            "kind": {"up": "update"}.get(operation.verb, operation.verb),
            "startTime": started,
            "message": "",
            "environment": {
                "exec.kind": "lakewright",
                "runtime.name": "python",
                "pulumi.os": sys.platform,
                **({"lakewright.plan": result.plan.sha256} if result.plan is not None else {}),
            },
            "config": {
                key: value if isinstance(value, (str, dict)) else str(value) for key, value in settings.values.items()
            },
            "version": 0,
            "result": "failed" if result.exit == 1 else "succeeded",
            "endTime": int(time.time()),
            "resourceChanges": result.changes,
        },
    )


def format_choice(choice: EngineChoice) -> str:
    """Return a line with the engine and the reason."""
    return f"Engine: {choice.name} ({choice.reason})"
