"""The deployment of a run: the objects that all its parts share, and the steps on single resources."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lakewright_engine.display.events import Events
from lakewright_engine.model.errors import (
    DeploymentStoppedError,
    EngineError,
    HookError,
    InitializationError,
    ProtectedResourceError,
    ProviderError,
)
from lakewright_engine.model.properties import mark_secret_outputs
from lakewright_engine.model.resources import PendingOperation, ResourceState
from lakewright_engine.model.signatures import UNKNOWN
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.model.urns import is_provider_type, make_urn, split_reference
from lakewright_engine.processes.rpc import Callbacks
from lakewright_engine.providers.provider import Provider
from lakewright_engine.providers.registry import Registry
from lakewright_engine.registration.hooks import Hooks
from lakewright_engine.state.interrupted_creations import describe_removal, settles_creation
from lakewright_engine.state.journal import Journal
from lakewright_engine.state.natural_ids import natural_id
from lakewright_engine.steps.created_objects import adopt
from lakewright_engine.steps.observer import StepObserver
from lakewright_engine.steps.targets import TargetScope


def now() -> str:
    """Return the time in UTC in the format of states."""
    return format_time(datetime.now(UTC))


def format_time(moment: datetime) -> str:
    """Return a UTC time in the format of the CLI: RFC 3339 without trailing zeros in the fraction of a second."""
    seconds, _, fraction = moment.isoformat().replace("+00:00", "").partition(".")
    fraction = fraction.rstrip("0")
    return f"{seconds}.{fraction}Z" if fraction else f"{seconds}Z"


_AFTER_COMPONENT = {"create": "AfterCreate", "create-replacement": "AfterCreate", "update": "AfterUpdate"}


@dataclass
class Deployment:
    """A run over a stack, shared by its threads.

    After a failed step, steps in progress finish and no new step starts.
    """

    project: str
    stack: str
    organization: str
    root: Path
    """The folder of Pulumi.yaml."""
    program: Path
    """The program's working directory. Relative paths of assets start there."""
    dry_run: bool
    parallel: int
    config: dict[str, str]
    secret_keys: list[str]
    journal: Journal
    events: Events
    resources: list[ResourceState]
    """The state at the start, or after the refresh."""
    scope: TargetScope = field(default_factory=TargetScope)
    """The resources that the operation targets."""
    observer: StepObserver = field(default_factory=StepObserver)
    """Observes the steps, and may stop the run before one."""
    registry: Registry = field(init=False)
    stopped: threading.Event = field(default_factory=threading.Event)
    failed: bool = False
    on_failure: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        """Create the parts that depend on others."""
        self._slots = threading.BoundedSemaphore(self.parallel)
        self._lock = threading.Lock()
        self._step_ended = threading.Condition()
        self._in_progress = 0
        self._is_interrupted = False
        self.callbacks = Callbacks()
        self.hooks = Hooks(self.callbacks, self.events, self.stopped, dry_run=self.dry_run)
        self._marked_deleted: set[str] = set()
        self.deleted_early: set[int] = set()
        """Identities of pending deletions that a delete-before-replace has done."""
        self.news: dict[str, ResourceState] = {}
        self.olds: dict[str, ResourceState] = {}
        self.set_state(self.resources)

    @property
    def stack_urn(self) -> str:
        """The URN of the stack."""
        return make_urn(self.stack, self.project, "", "pulumi:pulumi:Stack", f"{self.project}-{self.stack}")

    def set_state(self, resources: list[ResourceState]) -> None:
        """Use `resources` as the state that the program is compared with."""
        self.resources = resources
        self.olds = {state.urn: state for state in resources if not state.delete}

    def find_provider(self, reference: str) -> ResourceState | None:
        """Return the provider of a reference, also if it is being replaced; by URN while its id is unknown."""
        urn, object_id = split_reference(reference)
        current = self.news.get(urn) or self.olds.get(urn)
        if object_id == UNKNOWN or (current is not None and current.id == object_id):
            return current
        return next((state for state in self.resources if state.urn == urn and state.id == object_id), None)

    def get_provider(self, state: ResourceState) -> Provider:
        """Return the provider of a resource."""
        return self.registry.get(state.provider)

    def check_running(self) -> None:
        """Raise DeploymentStoppedError if the run has stopped."""
        if self.stopped.is_set():
            raise DeploymentStoppedError

    def fail(self, message: str, urn: str = "") -> None:
        """Report an error and stop the run."""
        self.report_error(message, urn)
        if not self.stopped.is_set():
            self.stopped.set()
            self.on_failure()

    def interrupt(self) -> None:
        """Stop the run at a user's request. It starts no deletion that a failure would let start."""
        self._is_interrupted = True
        self.fail("the operation was interrupted: steps in progress finish, no new step starts")

    def report_error(self, message: str, urn: str) -> None:
        """Report an error and continue. The run fails at its end; a preview displays the rest of the plan."""
        first = not self.failed
        self.failed = True
        self.events.diagnostic("error", message, urn)
        if first and not self.stopped.is_set() and urn != self.stack_urn:
            verb = "preview" if self.dry_run else "update"
            self.events.diagnostic("error", f"{verb} failed", self.stack_urn)

    def run(self, step: DeploymentStep, apply: Callable[[], None], *, even_if_stopped: bool = False) -> None:
        """Run one step when a slot is free.

        Raises:
            DeploymentStoppedError: The run has stopped, perhaps because this step failed.
            ProtectedResourceError: The step would delete a protected resource. The run continues and fails at its end.
        """
        with self._slots, self._count_step():
            if self._is_interrupted or not even_if_stopped:
                self.check_running()
            try:
                self.observer.check_start(step)
                self.events.report_start(step)
                apply()
                self.observer.note_end(step)
            except ProtectedResourceError as error:
                self.report_error(str(error), step.urn)
                self.events.report_failure(step)
                raise
            except (EngineError, OSError) as error:
                self.fail(str(error), step.urn)
                self.events.report_failure(step)
                raise DeploymentStoppedError from error
        self.events.report_end(step)
        if step.state.custom:
            self.events.outputs(step)

    @contextlib.contextmanager
    def _count_step(self) -> Generator[None]:
        with self._step_ended:
            self._in_progress += 1
        try:
            yield
        finally:
            with self._step_ended:
                self._in_progress -= 1
                self._step_ended.notify_all()

    def wait_for_hooks(self) -> None:
        """Wait until no step is in progress if there are hooks, which need the program until then."""
        if self.hooks.registered:
            with self._step_ended:
                self._step_ended.wait_for(lambda: self._in_progress == 0)

    def _run_hooks_after(self, kind: str, step: DeploymentStep) -> None:
        """Run the hooks after a step. Their failure stops the run; the step is kept."""
        try:
            self.hooks.run(kind, step)
        except HookError as error:
            self.fail(str(error), step.urn)

    def finish_component(self, step: DeploymentStep) -> None:
        """Run the hooks after the creation or update of a component, which ends when its outputs are registered."""
        kind = _AFTER_COMPONENT.get(step.op)
        if kind is not None and not step.state.custom and not self.stopped.is_set():
            with self._count_step():
                self._run_hooks_after(kind, step)

    def mark_secrets(self, state: ResourceState) -> None:
        """Mark the secret outputs of a resource before its state is saved, as the CLI does after every step."""
        if "id" in state.additional_secret_outputs:
            message = "The 'id' property cannot be made secret. See pulumi/pulumi#2717 for more details."
            self.events.diagnostic("warning", message, state.urn)
        state.outputs = mark_secret_outputs(state.outputs, state.additional_secret_outputs, state.inputs)

    def same(self, step: DeploymentStep, *, silent: bool = False) -> None:
        """Keep the object, and record the options in the program.

        `silent` reports no step, for an object just imported.
        """
        old, new = _old_and_new(step)

        def apply() -> None:
            new.id = old.id
            if not is_provider_type(new.type):
                new.outputs = old.outputs
            new.init_errors = list(old.init_errors)
            new.created, new.modified = old.created, old.modified
            self.mark_secrets(new)
            self.journal.replace(old, new)

        if silent:
            apply()
        else:
            self.run(step, apply)

    def create(self, step: DeploymentStep) -> None:
        """Create an object. For a replacement, the old object still exists or was deleted before."""
        new, old = step.new, step.old
        assert new is not None

        def apply() -> None:
            self.hooks.run("BeforeCreate", step)
            execute()
            if new.custom:
                self._run_hooks_after("AfterCreate", step)

        def execute() -> None:
            if not new.custom or is_provider_type(new.type):
                new.created = new.modified = now()
                self.mark_secrets(new)
                self._replace_in_state(old, new, None)
                return
            provider = self.get_provider(new)
            pending = self._begin(new, "creating")
            failure: InitializationError | None = None
            try:
                failure = self._create(provider, step, new)
            except ProviderError as error:
                if pending is None or not error.ambiguous:
                    self.journal.finish(pending)
                    raise
                self.journal.keep_pending(pending)
                raise ProviderError(
                    f"{error}\nIt is not known whether the object was created: the next `up` looks it up"
                ) from error
            except EngineError:
                self.journal.finish(pending)
                raise
            self.mark_secrets(new)
            new.created = new.modified = now()
            self._replace_in_state(old, new, pending)
            if failure is not None:
                raise failure

        self.run(step, apply)

    def _replace_in_state(
        self, old: ResourceState | None, new: ResourceState, pending: PendingOperation | None
    ) -> None:
        """Save a created object. The object that it replaces is removed from the state or deleted later."""
        if old is not None and not old.pending_replacement:
            self.journal.change(lambda: setattr(old, "delete", True))
        self.journal.finish(pending, done=old if old is not None and old.pending_replacement else None, new=new)

    def _create(self, provider: Provider, step: DeploymentStep, new: ResourceState) -> InitializationError | None:
        interrupted = None if self.dry_run else self._find_interrupted(new)
        try:
            adopted = None
            if interrupted is not None:
                adopted = adopt(provider, new, interrupted, step.old.id if step.old is not None else "")
            if adopted is not None:
                new.id, new.outputs = adopted
                return None
            new.id, new.outputs = self.hooks.run_with_retries(
                "create", step, lambda: provider.create(new, preview=self.dry_run)
            )
        except InitializationError as failed:
            new.id, new.outputs, new.init_errors = failed.object_id, failed.outputs, failed.reasons
            return failed
        return None

    def _find_interrupted(self, new: ResourceState) -> ResourceState | None:
        """Return the interrupted creation of the object. Report creations that may have made a different object."""
        creations = [op.resource for op in self.journal.pending_creations if op.resource.urn == new.urn]
        for creation in creations:
            if settles_creation(new, creation):
                continue
            object_id = natural_id(creation.type, creation.inputs)
            advice = (
                f"`lakewright refresh --stack {self.stack}` looks up {object_id}"
                if object_id
                else f"The engine cannot look it up: {describe_removal(self.stack)}"
            )
            message = (
                "an interrupted run may have created another object of this resource. The creation remains pending in "
                f"the state. {advice}"
            )
            self.events.diagnostic("warning", message, new.urn)
        return next((creation for creation in creations if settles_creation(new, creation)), None)

    def update(self, step: DeploymentStep) -> None:
        """Update an object."""
        old, new = _old_and_new(step)

        def apply() -> None:
            new.id, new.created = old.id, old.created
            self.hooks.run("BeforeUpdate", step)
            execute()
            if new.custom:
                self._run_hooks_after("AfterUpdate", step)

        def execute() -> None:
            failure: InitializationError | None = None
            pending: PendingOperation | None = None
            if new.custom and not is_provider_type(new.type):
                provider = self.get_provider(new)
                pending = self._begin(new, "updating")
                try:
                    new.outputs = self.hooks.run_with_retries(
                        "update", step, lambda: provider.update(old, new, preview=self.dry_run)
                    )
                except InitializationError as failed:
                    new.outputs, new.init_errors, failure = failed.outputs, failed.reasons, failed
                except EngineError:
                    self.journal.finish(pending)
                    raise
            elif not new.custom:
                new.outputs = old.outputs
            self.mark_secrets(new)
            new.modified = now()
            self.journal.finish(pending, done=old, new=new)
            if failure is not None:
                raise failure

        self.run(step, apply)

    def delete(self, step: DeploymentStep, *, before_replacement: bool = False, even_if_stopped: bool = False) -> None:
        """Delete an object, or only remove it from the state if an option says so."""
        old = step.old
        assert old is not None
        is_deleted = step.op == "remove-pending-replace"

        def apply() -> None:
            if not is_deleted:
                self.hooks.run("BeforeDelete", step)
            execute()
            if not is_deleted:
                self._run_hooks_after("AfterDelete", step)

        def execute() -> None:
            if old.protect and step.op == "delete":
                raise ProtectedResourceError(
                    f'resource "{old.urn}" cannot be deleted\nbecause it is protected. To unprotect the resource, '
                    "remove the `protect` flag from the resource in your program and run `up`"
                )
            pending: PendingOperation | None = None
            if not is_deleted and self._calls_provider(old):
                provider = self.get_provider(old)
                pending = self._begin(old, "deleting")
                try:
                    self.hooks.run_with_retries("delete", step, lambda: provider.delete(old))
                except EngineError:
                    self.journal.finish(pending)
                    raise
            if before_replacement:
                self.journal.change(lambda: setattr(old, "pending_replacement", True))
                self.journal.finish(pending)
            else:
                self.journal.finish(pending, done=old)

        self.run(step, apply, even_if_stopped=even_if_stopped)

    def _calls_provider(self, old: ResourceState) -> bool:
        if self.dry_run or not old.custom or is_provider_type(old.type):
            return False
        return not (old.external or old.retain_on_delete or old.deleted_with in self._marked_deleted)

    def mark_deleted(self, urns: set[str]) -> None:
        """Record resources that this run deletes.

        A resource that is `deletedWith` one of them needs no provider call.
        """
        with self._lock:
            self._marked_deleted |= urns

    def unmark_deleted(self, urn: str) -> None:
        """Remove a resource from the record: it was deleted early and is created again."""
        with self._lock:
            self._marked_deleted.discard(urn)

    def _begin(self, state: ResourceState, operation: str) -> PendingOperation | None:
        return None if self.dry_run else self.journal.begin(state, operation)


def _old_and_new(step: DeploymentStep) -> tuple[ResourceState, ResourceState]:
    assert step.old is not None
    assert step.new is not None
    return step.old, step.new
