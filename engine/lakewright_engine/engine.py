"""Run an operation on a stack: preview, up, refresh or destroy."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from lakewright_engine.display.events import Events, OnEvent
from lakewright_engine.display.secret_mask import SecretMask
from lakewright_engine.kept_plan import KeptPlan, create_kept_plan
from lakewright_engine.model.errors import DeploymentStoppedError, EngineError, StateError
from lakewright_engine.model.properties import to_output_json
from lakewright_engine.model.resources import PendingOperation, Properties, ResourceState, StackSnapshot
from lakewright_engine.model.urns import ROOT_STACK_TYPE
from lakewright_engine.operation import UNEXPECTED_CHANGES, Operation, Result
from lakewright_engine.planning.deletes import check_nothing_left, delete_unregistered, refuse_delete_hooks
from lakewright_engine.planning.planner import Planner
from lakewright_engine.processes import rpc
from lakewright_engine.processes.child_process import ChildProcess, name_signal
from lakewright_engine.processes.forkserver import ForkServer
from lakewright_engine.processes.interrupts import Interrupts
from lakewright_engine.processes.sockets import SocketFolder
from lakewright_engine.program.engine_service import PluginEngine, ProgramEngine
from lakewright_engine.program.monitor import Monitor
from lakewright_engine.providers.builtin import BuiltinProvider
from lakewright_engine.providers.registry import Registry
from lakewright_engine.state import interrupted_creations
from lakewright_engine.state.backend import ORGANIZATION, StateBackend, stack_not_found
from lakewright_engine.state.journal import Journal
from lakewright_engine.state.unsupported import refuse_autonaming, refuse_unsupported_state
from lakewright_engine.steps.deployment import Deployment
from lakewright_engine.steps.recovery import recover_created_objects, refuse_unrecoverable
from lakewright_engine.steps.refresh import refresh
from lakewright_engine.steps.targets import TargetScope, sort_by_dependency
from lakewright_engine.unsaved_state import is_unsaved, keep_unsaved

_NO_CHANGE = ("same", "read", "read-replacement", "discard", "discard-replaced")
_ERROR_REPORTED = 32
_HOST = Path(__file__).parent / "program" / "program_host.py"


def run(operation: Operation, on_event: OnEvent, forks: ForkServer) -> Result:
    """Run an operation; see `lakewright_engine.run`."""
    project, stack = operation.project, operation.stack
    backend = project.backend()
    if not backend.exists(project.name, stack):
        raise stack_not_found(stack, backend.names(project.name))
    plan = create_kept_plan(operation)
    operation = plan.operation
    if operation.is_dry:
        with Interrupts() as interrupts, SocketFolder() as sockets:
            run = _Run(
                operation, backend, on_event, forks=forks, sockets=sockets, interrupts=interrupts, save=None, plan=plan
            )
            return plan.complete(run.execute())
    secrets = project.secrets(stack)
    secrets.unlock()  # report a wrong passphrase before the first secret is saved
    with Interrupts() as interrupts, backend.lock(project.name, stack) as lock, SocketFolder() as sockets:
        plan.refuse_changed_state()

        def save(now: StackSnapshot) -> None:
            lock.verify()
            backend.save(project.name, stack, _sort_if_limited(operation, now), secrets)

        run = _Run(
            operation, backend, on_event, forks=forks, sockets=sockets, interrupts=interrupts, save=save, plan=plan
        )
        return plan.complete(run.execute())


class _Run:
    def __init__(
        self,
        operation: Operation,
        backend: StateBackend,
        on_event: OnEvent,
        *,
        forks: ForkServer,
        sockets: SocketFolder,
        interrupts: Interrupts,
        save: Callable[[StackSnapshot], None] | None,
        plan: KeptPlan,
    ) -> None:
        project, stack = operation.project, operation.stack
        self._sockets = sockets
        self._interrupts = interrupts
        self._operation = operation
        self._plan = plan.session
        self._backend = backend
        self._forks = forks
        self._is_interrupted = False
        self._declarations = sockets.new_file("declarations")
        self._base = backend.load(project.name, stack) or StackSnapshot()
        self._before = self._base.resources
        refuse_unsupported_state(stack, self._before)
        config = project.configuration(stack)
        refuse_autonaming(config.values)
        self._events = Events(
            on_event,
            planning=operation.is_dry,
            refreshing=operation.verb == "refresh",
            mask=SecretMask(config.secret_values),
        )
        self._deployment = Deployment(
            project=project.name,
            stack=stack,
            organization=ORGANIZATION,
            root=project.root,
            program=project.working_directory,
            dry_run=operation.is_dry,
            parallel=operation.parallel,
            config=config.values,
            secret_keys=config.secret_keys,
            journal=Journal(self._base, save),
            events=self._events,
            resources=self._before,
            scope=TargetScope(
                operation.targets,
                operation.excludes,
                operation.replace,
                target_dependents=operation.target_dependents,
                exclude_dependents=operation.exclude_dependents,
            ),
            observer=self._plan.observer,
        )
        deployment = self._deployment
        self._plugin_engine = PluginEngine(deployment.events, sockets)
        deployment.registry = Registry(
            project=project.name,
            root=project.root,
            program=project.working_directory,
            forks=forks,
            builtin=BuiltinProvider(self._stack_outputs, deployment.news.get),
            find=deployment.find_provider,
            log=lambda line: self._events.output(line, error=True),
            engine=self._plugin_engine.address,
            sockets=sockets,
            in_sandbox=operation.in_sandbox,
            verbose=operation.verbose or _is_debugging(),
        )

    def execute(self) -> Result:
        operation, deployment, events = self._operation, self._deployment, self._events
        displayed = {
            key: "[secret]" if key in deployment.secret_keys else value for key, value in deployment.config.items()
        }
        events.prelude(displayed)
        if self._base.pending_operations and operation.verb != "refresh":
            events.diagnostic("warning", _format_pending_warning(self._base.pending_operations))
        try:
            creations = interrupted_creations.from_snapshot(self._base)
            with interrupted_creations.write_environment(creations) as environment:
                deployment.registry.environment = {
                    **self._operation.environment,
                    **environment,
                    **self._plan.environment,
                }
                self._interrupts.call_at_first(self._interrupt)
                self._run_steps()
        except DeploymentStoppedError:
            pass  # the cause has been reported
        except EngineError as error:
            deployment.fail(str(error))
        finally:
            deployment.registry.close()
            self._plugin_engine.stop()
            self._close_journal()
        events.summary()
        return self._result()

    def _close_journal(self) -> None:
        try:
            self._deployment.journal.close()
        except Exception as error:  # noqa: BLE001 - whatever failed, the state must not be lost
            # A step that waited for the save has reported the error.
            if not self._events.has_reported_error(str(error)):
                self._deployment.fail(str(error))
            snapshot = _sort_if_limited(self._operation, self._deployment.journal.snapshot())
            if is_unsaved(snapshot, self._base):
                operation = self._operation
                self._deployment.fail(keep_unsaved(operation.project, operation.stack, snapshot, error))

    def _run_steps(self) -> None:
        operation, deployment = self._operation, self._deployment
        if operation.verb == "destroy":
            refuse_unrecoverable(deployment)
            refuse_delete_hooks(deployment)
        known_urns = {state.urn for state in deployment.resources}
        if operation.refresh or operation.verb not in ("preview", "up"):
            deployment.scope.refuse_unknown(known_urns)
        deployment.scope.replace.refuse_unknown(known_urns)
        deployment.registry.start_ahead(deployment.resources)
        if operation.verb in ("preview", "up"):
            self._plan.check_before_program(deployment)
            with self._run_program() as registered_urns:
                delete_unregistered(deployment, registered_urns)
                self._plan.check_after_program(deployment)
            # As on the CLI, other steps run before this check: the program may create the target.
            deployment.scope.targets.refuse_unknown(known_urns | registered_urns)
            return
        recover_created_objects(deployment)
        if operation.refresh or operation.verb == "refresh":
            refresh(deployment)
            deployment.check_running()
        if operation.verb == "destroy":
            delete_unregistered(deployment, set())
            check_nothing_left(deployment)

    @contextlib.contextmanager
    def _run_program(self) -> Generator[set[str]]:
        """Run the program until it has registered all resources. Yield their URNs.

        A refresh runs while the program starts, and registrations wait for it. A program with hooks runs until the
        context ends, any other has ended before.
        """
        operation, deployment = self._operation, self._deployment
        planner = Planner(deployment)
        monitor, engine = Monitor(deployment, planner), ProgramEngine(deployment)
        address = self._sockets.new_address("monitor")
        server = rpc.serve(monitor, engine, address, operation.parallel * 4 + 16)
        request = {"script": str(_HOST), "arguments": [json.dumps(self._arguments(address))]}
        folder = operation.project.working_directory
        child = self._forks.start(request, folder, self._environment(), self._events.output, "the program")
        child.read_output()
        deployment.on_failure = lambda: self._end_program(child)
        if deployment.stopped.is_set():
            child.kill()
        ended = threading.Thread(
            target=self._wait_for_program, args=(child, engine, monitor), daemon=True, name="program-end"
        )
        ended.start()
        is_complete = False
        try:
            if operation.refresh:
                refresh(deployment)
                deployment.check_running()
                # A limited refresh reads no other objects, so the state does not prove their values.
                read = {state.urn for state in deployment.scope.select_refreshed(self._before)}
                self._plan.check_refresh(
                    [state for state in self._before if state.urn in read],
                    [state for state in deployment.resources if state.urn in read],
                )
            monitor.ready.set()
            monitor.done.wait()
            monitor.wait_idle()
            deployment.on_failure = lambda: None
            deployment.check_running()
            planner.report_kept_dependencies()
            yield planner.registered_urns
            monitor.released.set()
            ended.join()
            is_complete = True
        finally:
            monitor.ready.set()
            monitor.released.set()
            deployment.on_failure = lambda: None
            child.kill()
            server.stop(None)
            planner.save_stack_outputs(has_failed=deployment.failed or not is_complete)
        deployment.check_running()

    def _end_program(self, child: ChildProcess) -> None:
        """End the program of a failed run, after the hooks of steps in progress."""
        if not self._deployment.hooks.registered:
            child.kill()
            return

        def end() -> None:
            self._deployment.wait_for_hooks()
            child.kill()

        threading.Thread(target=end, daemon=True, name="end-program").start()

    def _wait_for_program(self, child: ChildProcess, engine: ProgramEngine, monitor: Monitor) -> None:
        code = child.wait()
        self._report_exit(code, engine)
        monitor.done.set()

    def _report_exit(self, code: int, engine: ProgramEngine) -> None:
        if code == 0 or self._deployment.stopped.is_set():
            return
        if engine.logged_error and code == _ERROR_REPORTED:
            self._deployment.failed = True
            self._deployment.stopped.set()
        elif code < 0:
            self._deployment.fail(f"program was ended by signal {-code} ({name_signal(-code)})")
        else:
            self._deployment.fail(f"program exited with non-zero exit code: {code}")

    def _arguments(self, address: str) -> dict[str, Any]:
        operation = self._operation
        program = operation.project.find_program()
        return {
            "program": str(program),
            "monitor": address,
            "engine": address,
            "callbacks": self._sockets.new_address("callbacks"),
            "declarations": str(self._declarations),
            "project": operation.project.name,
            "stack": operation.stack,
            "organization": ORGANIZATION,
            "root": str(operation.project.root),
            "parallel": operation.parallel,
            "dry_run": operation.is_dry,
            "debug": _is_debugging(),
        }

    def _environment(self) -> dict[str, str]:
        deployment = self._deployment
        return {
            **os.environ,
            **self._operation.environment,
            "PULUMI_CONFIG": json.dumps(deployment.config),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(deployment.secret_keys),
            "PULUMI_PROJECT": deployment.project,
            "PULUMI_STACK": deployment.stack,
            "PULUMI_DRY_RUN": str(deployment.dry_run).lower(),
            "PYTHONUNBUFFERED": "1",
        }

    def _interrupt(self) -> None:
        self._is_interrupted = True
        self._deployment.interrupt()
        self._deployment.registry.cancel()

    def _stack_outputs(self, name: str) -> Properties:
        """Return the outputs of the stack that a StackReference names: `[[ORGANIZATION/]PROJECT/]STACK`."""
        parts = name.split("/")
        project = parts[-2] if len(parts) > 1 else self._operation.project.name
        snapshot = self._backend.load(project, parts[-1])
        if snapshot is None:
            raise StateError(f"the referenced stack {name!r} does not exist in {self._backend.url}")
        stacks = [state for state in snapshot.resources if state.type == ROOT_STACK_TYPE]
        return stacks[0].outputs if stacks else {}

    def _result(self) -> Result:
        operation, deployment, events = self._operation, self._deployment, self._events
        resources = self._before if deployment.dry_run else deployment.journal.snapshot().resources
        result = Result(0, _outputs(resources), dict(events.changes), events.messages)
        result.is_interrupted = self._is_interrupted
        if self._is_interrupted and self._declarations.exists():
            lines = self._declarations.read_text(encoding="utf-8").split("\n")[:-1]  # the last line may be incomplete
            result.declared_resources = [(kind, name) for kind, name in map(json.loads, lines)]
        if deployment.failed:
            result.exit = 1
        elif operation.expect_no_changes and any(op not in _NO_CHANGE for op in events.changes):
            verb = "update" if operation.verb == "up" else operation.verb
            message = f"no changes were expected for {verb} but changes were proposed"
            result.messages.append(f"error: {message}")
            result.exit = UNEXPECTED_CHANGES
        return result


def _sort_if_limited(operation: Operation, snapshot: StackSnapshot) -> StackSnapshot:
    """Return a state whose resources follow what they depend on, which a run with targets may have changed."""
    if operation.is_limited:
        snapshot.resources = sort_by_dependency(snapshot.resources)
    return snapshot


def _outputs(resources: list[ResourceState]) -> dict[str, Any]:
    stack = next((state for state in resources if state.type == ROOT_STACK_TYPE), None)
    return {key: to_output_json(value) for key, value in stack.outputs.items()} if stack is not None else {}


def _is_debugging() -> bool:
    """Return whether LAKEWRIGHT_DEBUG requests all output of the program and of providers."""
    return os.environ.get("LAKEWRIGHT_DEBUG", "") not in ("", "0")


def _format_pending_warning(pending: list[PendingOperation]) -> str:
    lines = "\n".join(f"  * {op.resource.urn}, interrupted while {op.type}" for op in pending)
    return (
        f"Attempting to deploy or update resources with {len(pending)} pending operations from previous deployment.\n"
        f"{lines}\n"
        "The run that started them ended before it knew their results. Interrupted creations are looked up if their "
        "objects have names, and adopted if the object exists; interrupted updates and deletions are repeated if they "
        "are still needed."
    )
