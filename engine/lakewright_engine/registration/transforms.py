"""Transforms: the program's functions that may change a resource, or a function call, on its way."""

from __future__ import annotations

import threading
from typing import Any

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.properties import from_struct, from_wire, to_struct, to_wire
from lakewright_engine.model.resources import Properties
from lakewright_engine.processes import rpc
from lakewright_engine.registration.callbacks import Callbacks
from lakewright_engine.registration.desired_state import (
    AliasSpec,
    DesiredState,
    alias_from_message,
    timeouts_from_message,
)
from lakewright_engine.registration.hooks import bindings_from_message, bindings_to_message


class Transforms:
    """The transforms of resources, of the stack and of function calls; each is called back in the program's process."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._lock = threading.Lock()
        self._stack: list[Any] = []
        self._invokes: list[Any] = []
        self._resources: dict[str, list[Any]] = {}

    def add_for_stack(self, callback: Any) -> None:
        self._stack.append(callback)

    def add_for_invokes(self, callback: Any) -> None:
        self._invokes.append(callback)

    def remember(self, urn: str, callbacks: list[Any]) -> None:
        """A resource's transforms hold for its children too."""
        if callbacks:
            with self._lock:
                self._resources[urn] = callbacks

    def apply(self, goal: DesiredState, own: list[Any], ancestors: list[str]) -> None:
        """Own transforms first, then those of the parents from the inside out, then the stack's."""
        callbacks = [*own, *(one for urn in ancestors for one in self._resources.get(urn, ())), *self._stack]
        for callback in callbacks:
            request = rpc.resource_messages.TransformRequest(
                type=goal.type,
                name=goal.name,
                custom=goal.custom,
                parent=goal.parent,
                properties=to_struct(goal.inputs),
                options=_options(goal),
            )
            answer = rpc.resource_messages.TransformResponse.FromString(self._call(callback, request))
            if answer.HasField("properties"):
                goal.inputs = from_struct(answer.properties)
            if answer.HasField("options"):
                _take(goal, answer.options)

    def apply_to_invoke(self, token: str, arguments: Properties, options: Any) -> tuple[Properties, Any]:
        for callback in self._invokes:
            request = rpc.resource_messages.TransformInvokeRequest(
                token=token, args=to_struct(arguments), options=options
            )
            answer = rpc.resource_messages.TransformInvokeResponse.FromString(self._call(callback, request))
            if answer.HasField("args"):
                arguments = from_struct(answer.args)
            if answer.HasField("options"):
                options = answer.options
        return arguments, options

    @property
    def for_invokes(self) -> bool:
        return bool(self._invokes)

    def _call(self, callback: Any, request: Any) -> bytes:
        try:
            return self._callbacks.call(callback, request)
        except Exception as error:
            raise ProgramError(f"a transform failed: {error}") from error


def _options(goal: DesiredState) -> Any:
    options = rpc.resource_messages.TransformResourceOptions(
        depends_on=goal.dependencies,
        ignore_changes=goal.ignore_changes,
        replace_on_changes=goal.replace_on_changes,
        version=goal.version,
        aliases=[_alias(alias) for alias in goal.aliases],
        provider=goal.provider,
        plugin_download_url=goal.plugin_url,
        deleted_with=goal.deleted_with,
        additional_secret_outputs=goal.additional_secret_outputs,
        providers=goal.providers,
        hide_diff=goal.hide_diffs,
        replace_with=goal.replace_with,
    )
    setattr(options, "import", goal.import_id)
    for name, value in (
        ("protect", goal.protect),
        ("retain_on_delete", goal.retain_on_delete),
        ("delete_before_replace", goal.delete_before_replace),
    ):
        if value is not None:
            setattr(options, name, value)
    for verb, seconds in goal.custom_timeouts.items():
        setattr(options.custom_timeouts, verb, f"{seconds:g}s")
    if goal.replacement_trigger is not None:
        options.replacement_trigger.CopyFrom(to_wire(goal.replacement_trigger))
    if goal.hooks:
        options.hooks.CopyFrom(bindings_to_message(goal.hooks))
    return options


def _alias(alias: AliasSpec) -> Any:
    if alias.urn:
        return rpc.alias_messages.Alias(urn=alias.urn)
    spec = rpc.alias_messages.Alias.Spec(name=alias.name, type=alias.type, stack=alias.stack, project=alias.project)
    if alias.no_parent:
        spec.noParent = True
    elif alias.parent:
        spec.parentUrn = alias.parent
    return rpc.alias_messages.Alias(spec=spec)


def _take(goal: DesiredState, options: Any) -> None:
    goal.dependencies = sorted(options.depends_on)
    goal.ignore_changes = list(options.ignore_changes)
    goal.replace_on_changes = list(options.replace_on_changes)
    goal.version = options.version
    goal.aliases = [alias_from_message(alias) for alias in options.aliases]
    goal.provider = options.provider
    goal.plugin_url = options.plugin_download_url
    goal.deleted_with = options.deleted_with
    goal.additional_secret_outputs = list(options.additional_secret_outputs)
    goal.providers = dict(options.providers)
    goal.hide_diffs = list(options.hide_diff)
    goal.replace_with = list(options.replace_with)
    goal.hooks = bindings_from_message(options.hooks)
    goal.import_id = getattr(options, "import")
    goal.protect = options.protect if options.HasField("protect") else None
    goal.retain_on_delete = options.retain_on_delete if options.HasField("retain_on_delete") else None
    goal.delete_before_replace = options.delete_before_replace if options.HasField("delete_before_replace") else None
    goal.custom_timeouts = timeouts_from_message(options.custom_timeouts)
    goal.replacement_trigger = (
        from_wire(options.replacement_trigger) if options.HasField("replacement_trigger") else goal.replacement_trigger
    )
