"""Run a program on a new stack with the embedded engine or the Pulumi CLI, and return the outcome."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from lakewright_engine import Operation, Result, run
from lakewright_engine.display.report import to_text
from lakewright_engine.model.resources import StackSnapshot
from lakewright_engine.plans.deleted_contents import CountContents
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
from lakewright_engine.state.outputs import stack_outputs
from lakewright_engine.state.secrets import PassphraseManager
from pulumi.automation.events import EngineEvent

from tests.command_server import run_command
from tests.sdk_process import use_sdk_process

HERE = Path(__file__).parent
PASSPHRASE = "conformance"
ENCRYPTION_SALT = "v1:s6gsVG4kTl0=:v1:21NusquNVoSoMq2Q:4zuzPIFF2JFMLAcOix8ap825BXnopQ=="
"""A salt for the passphrase. Stacks share it, so that a worker derives the key of their secrets once."""

RUN_UP = HERE / "run_up.py"


@dataclass
class RunOutcome:
    """The effects of a run."""

    exit: int
    steps: list[dict[str, str]]
    """Started steps with `op`, `type` and `name`, without the stack and providers."""
    messages: list[str]
    provider_calls: list[str]
    files: dict[str, Any]
    outputs: dict[str, Any]
    changes: dict[str, int] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)


class Stack:
    """A stack `dev` of the project `conf`, with the provider's objects in `store/`.

    The state is in `state/` unless `backend_url` names another place.
    """

    def __init__(
        self, folder: Path, program: str, name: str = "dev", project: str = "conf", backend_url: str = ""
    ) -> None:
        self.folder = folder
        self.name = name
        self.project_name = project
        self.store = folder / "store"
        self.program_dir = folder / project
        self.program_dir.mkdir(parents=True)
        self.store.mkdir(exist_ok=True)
        (folder / "state").mkdir(exist_ok=True)
        (self.program_dir / "Pulumi.yaml").write_text(f"name: {project}\nruntime: python\n")
        (self.program_dir / f"Pulumi.{name}.yaml").write_text(f"encryptionsalt: {ENCRYPTION_SALT}\n")
        self.write_program(program)
        self.environment = {
            "FILESTORE": str(self.store),
            "PULUMI_BACKEND_URL": backend_url or f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_HOME": str(folder / "home"),
            "PYTHONPATH": str(HERE),
        }
        with self._environment({}):
            self.backend.create(project, name, self.project.secrets(name))

    def write_program(self, program: str) -> None:
        (self.program_dir / "__main__.py").write_text(program)

    @property
    def project(self) -> PulumiProject:
        return PulumiProject.load(self.program_dir)

    @property
    def backend(self) -> StateBackend:
        return open_backend(self.environment["PULUMI_BACKEND_URL"])

    def set_config(self, key: str, value: str, *, secret: bool = False) -> None:
        with self._environment({}):
            config = self.project.stack_config(self.name)
            config.set(key, value, secret=secret)
            config.save()

    def run(
        self,
        *command: str,
        env: dict[str, str] | None = None,
        parallel: int = 16,
        in_sandbox: bool = False,
        verbose: bool = False,
        on_event: Callable[[EngineEvent], None] = lambda _: None,
        save_plan: Path | None = None,
        plan: Path | None = None,
        count_contents: CountContents | None = None,
    ) -> RunOutcome:
        """Run `preview`, `up`, `refresh` or `destroy` with flags of the CLI on the embedded engine."""
        log = self._forget_calls()
        events: list[Any] = []
        operation = Operation(
            verb=command[0],
            project=self.project,
            stack=self.name,
            refresh="--refresh" in command,
            expect_no_changes="--expect-no-changes" in command,
            preview_only="--preview-only" in command,
            targets=_values(command, "--target"),
            target_dependents="--target-dependents" in command,
            excludes=_values(command, "--exclude"),
            exclude_dependents="--exclude-dependents" in command,
            replace=_values(command, "--replace"),
            parallel=parallel,
            in_sandbox=in_sandbox,
            verbose=verbose,
            save_plan=save_plan,
            plan=plan,
            count_contents=count_contents,
        )

        def record_event(event: EngineEvent) -> None:
            events.append(event)
            on_event(event)

        with self._environment(env or {}), use_sdk_process():
            result: Result = run(operation, record_event)
        return RunOutcome(
            exit=result.exit,
            steps=_steps(events),
            messages=result.messages,
            provider_calls=_calls(log),
            files=self.files(),
            outputs=result.outputs,
            changes=result.changes,
            events=events,
        )

    def run_up(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `run_up.py` in a process of its own, which may be killed."""
        environment = {**os.environ, **self.environment, **variables}
        return run_command([str(self.program_dir), *arguments], self.folder, environment, script=RUN_UP)

    def cli(self, *command: str, env: dict[str, str] | None = None) -> RunOutcome:
        """Run the same with the Pulumi CLI."""
        log = self._forget_calls()
        flags = [] if command[0] == "preview" or "--preview-only" in command else ["--yes", "--skip-preview"]
        done = self._run_cli(*command, "--json", *flags, env=env)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        events = [EngineEvent.from_json(line) for line in lines if "sequence" in line]
        messages = [line["diagnosticEvent"]["message"] for line in lines if "diagnosticEvent" in line]
        return RunOutcome(
            exit=done.returncode,
            steps=_steps(events),
            messages=[*messages, done.stderr],
            provider_calls=_calls(log),
            files=self.files(),
            outputs=stack_outputs(self.backend, self.project_name, self.name),
            events=events,
        )

    def read_cli_outputs(self, *flags: str) -> dict[str, Any]:
        """Return the outputs that `pulumi stack output` prints."""
        return json.loads(self._run_cli("stack", "output", "--json", *flags).stdout)

    def _run_cli(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        path = self.environment.get("PATH", os.environ["PATH"])
        return subprocess.run(
            ["pulumi", *arguments, "--stack", self.name, "--non-interactive"],
            cwd=self.program_dir,
            env={
                **os.environ,
                **self.environment,
                **(env or {}),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}",
                "PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "1",
                # No plugins for installed packages that no program here uses.
                "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def files(self) -> dict[str, Any]:
        """Return the provider's objects. Other files of a test are not JSON."""
        contents = {path.name: _parse_json(path) for path in sorted(self.store.glob("[!.]*"))}
        return {name: content for name, content in contents.items() if content is not None}

    def resources(self) -> list[Any]:
        """Return the resources of the saved state with decrypted secrets."""
        with self._environment({}):
            snapshot = self.backend.load(self.project_name, self.name)
        assert snapshot is not None
        return snapshot.resources

    def resource(self, name: str) -> Any:
        return next(resource for resource in self.resources() if resource.urn.endswith(f"::{name}"))

    def deployment(self) -> dict[str, Any]:
        """Return the saved state on the disk, with encrypted secrets."""
        return self.backend.export(self.project_name, self.name)["deployment"]

    def save(self, snapshot: StackSnapshot) -> None:
        """Replace the state of the stack."""
        with self._environment({}):
            self.backend.save(self.project_name, self.name, snapshot, self.project.secrets(self.name))

    def secrets(self) -> PassphraseManager:
        with self._environment({}):
            return self.project.secrets(self.name)

    def list_pending_operations(self) -> list[Any]:
        with self._environment({}):
            snapshot = self.backend.load(self.project_name, self.name)
        assert snapshot is not None
        return snapshot.pending_operations

    @contextmanager
    def _environment(self, more: dict[str, str]) -> Iterator[None]:
        before = dict(os.environ)
        os.environ.update({**self.environment, **more})
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def _forget_calls(self) -> Path:
        log = self.store / ".log"
        log.unlink(missing_ok=True)
        return log


def _parse_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except ValueError:
        return None


def _values(command: tuple[str, ...], option: str) -> tuple[str, ...]:
    return tuple(value for name, value in pairwise(command) if name == option)


def has_cli() -> bool:
    return shutil.which("pulumi") is not None


def _calls(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def _steps(events: list[Any]) -> list[dict[str, str]]:
    started = [event.resource_pre_event.metadata for event in events if event.resource_pre_event is not None]
    return [
        {"op": to_text(metadata.op), "type": metadata.type, "name": metadata.urn.rsplit("::", 1)[-1]}
        for metadata in started
        if _is_compared(metadata.type)
    ]


def _is_compared(type_: str) -> bool:
    return type_ != "pulumi:pulumi:Stack" and not type_.startswith("pulumi:providers:")
