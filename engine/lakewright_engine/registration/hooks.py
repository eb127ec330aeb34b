"""Hooks: functions of the program that run before and after the steps of a resource, and after failed steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from lakewright_engine.display.events import Events
from lakewright_engine.model.errors import HookError, InitializationError, ProviderError
from lakewright_engine.model.properties import to_struct
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import DeploymentStep
from lakewright_engine.model.urns import urn_name
from lakewright_engine.processes import rpc
from lakewright_engine.processes.rpc import Callbacks

T = TypeVar("T")

KINDS = {
    "BeforeCreate": "before_create",
    "AfterCreate": "after_create",
    "BeforeUpdate": "before_update",
    "AfterUpdate": "after_update",
    "BeforeDelete": "before_delete",
    "AfterDelete": "after_delete",
    "OnError": "on_error",
}
"""Kind of hook in a state -> its name in requests."""

_SENT_PROPERTIES = {
    "BeforeCreate": ("new_inputs",),
    "AfterCreate": ("new_inputs", "new_outputs"),
    "BeforeUpdate": ("new_inputs", "old_inputs", "old_outputs"),
    "AfterUpdate": ("new_inputs", "old_inputs", "new_outputs", "old_outputs"),
    "BeforeDelete": ("old_inputs", "old_outputs"),
    "AfterDelete": ("old_inputs", "old_outputs"),
    "create": ("new_inputs",),
    "update": ("new_inputs", "old_inputs", "old_outputs"),
    "delete": ("old_inputs", "old_outputs"),
}
"""The properties that a hook receives, by kind of hook, or by failed operation for error hooks."""

_MAX_ATTEMPTS = 100


def bindings_from_message(message: Any) -> dict[str, list[str]]:
    """Return the names of hooks by kind, without empty kinds."""
    names_by_kind = {kind: list(getattr(message, name)) for kind, name in KINDS.items()}
    return {kind: names for kind, names in names_by_kind.items() if names}


def bindings_to_message(hooks: dict[str, list[str]]) -> Any:
    """Return the names of hooks as a message."""
    binding = rpc.resource_messages.RegisterResourceRequest.ResourceHooksBinding
    return binding(**{KINDS[kind]: names for kind, names in hooks.items()})


class Hooks:
    """The hooks that the program has registered, by name. Resources refer to them by name."""

    def __init__(self, callbacks: Callbacks, events: Events, stopped: threading.Event, *, dry_run: bool) -> None:
        """Start without hooks; `stopped` is set when the run stops."""
        self._callbacks = callbacks
        self._events = events
        self._stopped = stopped
        self._dry_run = dry_run
        self._steps: dict[str, Any] = {}
        self._errors: dict[str, Any] = {}

    @property
    def registered(self) -> bool:
        """Return whether there are hooks. The program must then run until the last step has ended."""
        return bool(self._steps or self._errors)

    def add(self, request: Any) -> None:
        """Register a hook. Raise HookError if the name is empty or taken."""
        self._refuse_known(request.name)
        self._steps[request.name] = request

    def add_for_errors(self, request: Any) -> None:
        """Register an error hook. Raise HookError if the name is empty or taken."""
        self._refuse_known(request.name)
        self._errors[request.name] = request

    def _refuse_known(self, name: str) -> None:
        if not name:
            raise HookError("resource hook name cannot be empty")
        if name in self._steps or name in self._errors:
            raise HookError(f'resource hook already registered for name "{name}"')

    def run(self, kind: str, step: DeploymentStep) -> None:
        """Run the hooks of one kind in order. Raise HookError for the first failure that is not ignored."""
        for name in _state(kind, step).hooks.get(kind, ()):
            hook = self._steps.get(name)
            if hook is None:
                raise HookError(f'hook "{name}" was not registered')
            if self._dry_run and not hook.on_dry_run:
                continue
            failure = self._call(hook, rpc.resource_messages.ResourceHookRequest(**_hook_fields(kind, step)))
            if failure and hook.ignore_errors:
                self._events.diagnostic("warning", f'{kind} hook "{name}" failed: {failure}', step.urn)
            elif failure:
                when = "before" if kind.startswith("Before") else "after"
                raise HookError(f'{when} hook "{name}" failed: {failure}')

    def _call(self, hook: Any, request: Any) -> str:
        try:
            response_bytes = self._callbacks.call(hook.callback, request)
        except ProviderError as error:
            return str(error)
        return rpc.resource_messages.ResourceHookResponse.FromString(response_bytes).error

    def run_with_retries(self, operation: str, step: DeploymentStep, attempt: Callable[[], T]) -> T:
        """Return the result of `attempt`. Repeat it while it fails and an error hook of the resource requests a retry.

        A stopped run makes no new attempt.
        """
        failures: list[str] = []
        while True:
            try:
                return attempt()
            except ProviderError as error:
                failures.insert(0, str(error))
                if len(failures) >= _MAX_ATTEMPTS:
                    message = f"maximum number of error hook retries ({_MAX_ATTEMPTS}) reached"
                    self._events.diagnostic("warning", message, step.urn)
                    raise
                if self._stopped.is_set() or not self._wants_retry(operation, step, error, failures):
                    raise
            count = f"{len(failures)}/{_MAX_ATTEMPTS}"
            self._events.diagnostic("warning", f"retrying {operation} due to on-error hook request ({count})", step.urn)

    def _wants_retry(self, operation: str, step: DeploymentStep, error: ProviderError, failures: list[str]) -> bool:
        try:
            return self._ask_error_hooks(operation, step, failures)
        except HookError as failed:
            may_exist = operation == "create" and error.ambiguous
            if operation != "delete" and not isinstance(error, InitializationError) and not may_exist:
                raise
            # The error of the step is more important: the object exists, is not ready, or may have been created.
            self._events.diagnostic("warning", str(failed), step.urn)
            return False

    def _ask_error_hooks(self, operation: str, step: DeploymentStep, failures: list[str]) -> bool:
        retries = False
        for name in _state(operation, step).hooks.get("OnError", ()):
            hook = self._errors.get(name)
            if hook is None:
                raise HookError(f'error hooks execution failed: error hook "{name}" was not registered')
            request = rpc.resource_messages.ErrorHookRequest(
                **_hook_fields(operation, step), failed_operation=operation, errors=failures
            )
            try:
                response_bytes = self._callbacks.call(hook.callback, request)
            except ProviderError as error:
                raise _build_hook_error(name, str(error), failures) from error
            response = rpc.resource_messages.ErrorHookResponse.FromString(response_bytes)
            if response.error:
                raise _build_hook_error(name, response.error, failures)
            retries = retries or response.retry
        return retries


def _build_hook_error(name: str, reason: str, failures: list[str]) -> HookError:
    return HookError(f'error hooks execution failed: error hook "{name}" failed: {reason} (after: {failures[0]})')


def _state(kind: str, step: DeploymentStep) -> ResourceState:
    """Return the state whose hooks run: the old state for a deletion, else the new state."""
    state = step.new if "new_inputs" in _SENT_PROPERTIES[kind] else step.old
    assert state is not None
    return state


def _hook_fields(kind: str, step: DeploymentStep) -> dict[str, Any]:
    state = _state(kind, step)
    fields: dict[str, Any] = {"urn": state.urn, "id": state.id, "name": urn_name(state.urn), "type": state.type}
    for part in _SENT_PROPERTIES[kind]:
        age, _, properties = part.partition("_")
        fields[part] = to_struct(getattr(step.new if age == "new" else step.old, properties))
    return fields
