"""The two engines behind the four verbs, and the choice between them."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from lakewright.cli.engines.pulumi_cli import PulumiCli
from lakewright.cli.environments import is_in_sandbox
from lakewright.cli.errors import UsageError
from lakewright.project_files import plugins

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright_engine import Operation, Result
    from lakewright_engine.project.project import PulumiProject
    from pulumi.automation.events import EngineEvent


_SANDBOX_PROVIDERS = {"aws", "kubernetes"}
"""Packages that the sandbox has providers for. The CLI uses them only where PULUMI_DEBUG_PROVIDERS attaches them."""


class Engine(Protocol):
    """Carries out an operation, telling events on the way."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result: ...


@dataclass(frozen=True)
class Choice:
    """An engine, its name, and why it was chosen."""

    engine: Engine
    name: str
    reason: str


@dataclass(frozen=True)
class Embedded:
    """The embedded engine; deployments enter the stack's history as the CLI's do."""

    in_sandbox: bool
    """Whether the stack's environment is a sandbox, which has its own providers."""

    def run(self, operation: Operation, on_event: Callable[[EngineEvent], None], /) -> Result:
        from lakewright_engine import run  # noqa: PLC0415 - `--help` needs no engine
        from lakewright_engine.model.errors import StateError  # noqa: PLC0415

        started = int(time.time())
        result = run(replace(operation, in_sandbox=self.in_sandbox), on_event)
        if operation.verb != "preview" and not operation.preview_only:
            try:
                _record(operation, result, started)
            except StateError as error:  # the state itself is saved: the operation stays as good as it was
                result.messages.append(f"warning: {error}")
        return result


def choose(wanted: str, project: PulumiProject, stack: str) -> Choice:
    """`auto` is the Pulumi CLI where it could run the stack, else the embedded engine."""
    if wanted not in ("auto", "pulumi", "embedded"):
        raise UsageError(f"--engine is {wanted!r}; expected auto, embedded or pulumi")
    cli = shutil.which("pulumi")
    if wanted == "pulumi":
        if cli is None:
            raise UsageError(
                "--engine pulumi needs the Pulumi CLI, which is not on the PATH; install it, or use --engine embedded"
            )
        return Choice(PulumiCli(), "pulumi", f"asked for ({cli})")
    in_sandbox = is_in_sandbox(project, stack)
    if wanted == "embedded":
        return Choice(Embedded(in_sandbox), "embedded", "asked for")
    needed = plugins.needed(project, stack) if cli is not None else set[str]()
    if reason := _why_not_cli(needed, in_sandbox=in_sandbox):
        return Choice(Embedded(in_sandbox), "embedded", reason)
    has = f" and has the plugins for {', '.join(sorted(needed))}" if needed else ""
    return Choice(PulumiCli(), "pulumi", f"it is on the PATH{has}")


def _why_not_cli(needed: set[str], *, in_sandbox: bool) -> str:
    """Return why the Pulumi CLI cannot run the stack, or should not; empty if it should."""
    if shutil.which("pulumi") is None:
        return "the Pulumi CLI is not on the PATH"
    if shutil.which("pulumi-language-python") is None:
        return "the Pulumi CLI has no pulumi-language-python beside it"
    if absent := plugins.missing(needed):
        return f"the Pulumi CLI has no plugin for {', '.join(absent)}"
    if in_sandbox and (own := plugins.unattached(needed & _SANDBOX_PROVIDERS)):
        return f"the environment is a sandbox, which has its own {', '.join(own)}"
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
            "environment": {"exec.kind": "lakewright", "runtime.name": "python", "pulumi.os": sys.platform},
            "config": {
                key: value if isinstance(value, (str, dict)) else str(value) for key, value in settings.values.items()
            },
            "version": 0,
            "result": "failed" if result.exit == 1 else "succeeded",
            "endTime": int(time.time()),
            "resourceChanges": result.changes,
        },
    )


def told(choice: Choice) -> str:
    """The line that says which engine runs, and why."""
    return f"Engine: {choice.name} ({choice.reason})"
