"""Transforms: functions of the program that may change a resource or a function call before it is processed."""

from __future__ import annotations

import threading
from typing import Any

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.properties import from_struct, from_wire, to_struct, to_wire
from lakewright_engine.model.resources import Properties
from lakewright_engine.processes import rpc
from lakewright_engine.processes.rpc import Callbacks
from lakewright_engine.registration.desired_state import (
    AliasSpec,
    DesiredState,
    alias_from_message,
    timeouts_from_message,
)
from lakewright_engine.registration.hooks import bindings_from_message, bindings_to_message


class Transforms:
    """The transforms of resources, of the stack and of function calls. Each runs in the program's process."""

    def __init__(self, callbacks: Callbacks) -> None:
        """Start without transforms."""
        self._callbacks = callbacks
        self._lock = threading.Lock()
        self._stack: list[Any] = []
        self._invokes: list[Any] = []
        self._resources: dict[str, list[Any]] = {}

    def add_for_stack(self, callback: Any) -> None:
        """Register a transform of all resources."""
        self._stack.append(callback)

    def add_for_invokes(self, callback: Any) -> None:
        """Register a transform of function calls."""
        self._invokes.append(callback)

    def remember(self, urn: str, callbacks: list[Any]) -> None:
        """Register the transforms of a resource, which also apply to its children."""
        if callbacks:
            with self._lock:
                self._resources[urn] = callbacks

    def apply(self, desired: DesiredState, own_transforms: list[Any], ancestors: list[str]) -> None:
        """Apply the resource's own transforms, then its ancestors' transforms, nearest first, then the stack's."""
        callbacks = [
            *own_transforms,
            *(callback for urn in ancestors for callback in self._resources.get(urn, ())),
            *self._stack,
        ]
        for callback in callbacks:
            request = rpc.resource_messages.TransformRequest(
                type=desired.type,
                name=desired.name,
                custom=desired.custom,
                parent=desired.parent,
                properties=to_struct(desired.inputs),
                options=_options_message(desired),
            )
            response = rpc.resource_messages.TransformResponse.FromString(self._call(callback, request))
            if response.HasField("properties"):
                desired.inputs = from_struct(response.properties)
            if response.HasField("options"):
                _apply_options(desired, response.options)

    def apply_to_invoke(self, token: str, arguments: Properties, options: Any) -> tuple[Properties, Any]:
        """Apply the transforms of function calls. Return the arguments and options."""
        for callback in self._invokes:
            request = rpc.resource_messages.TransformInvokeRequest(
                token=token, args=to_struct(arguments), options=options
            )
            response = rpc.resource_messages.TransformInvokeResponse.FromString(self._call(callback, request))
            if response.HasField("args"):
                arguments = from_struct(response.args)
            if response.HasField("options"):
                options = response.options
        return arguments, options

    def _call(self, callback: Any, request: Any) -> bytes:
        try:
            return self._callbacks.call(callback, request)
        except Exception as error:
            raise ProgramError(f"a transform failed: {error}") from error


def _options_message(desired: DesiredState) -> Any:
    options = rpc.resource_messages.TransformResourceOptions(
        depends_on=desired.dependencies,
        ignore_changes=desired.ignore_changes,
        replace_on_changes=desired.replace_on_changes,
        version=desired.version,
        aliases=[_alias_message(alias) for alias in desired.aliases],
        provider=desired.provider,
        plugin_download_url=desired.plugin_url,
        deleted_with=desired.deleted_with,
        additional_secret_outputs=desired.additional_secret_outputs,
        providers=desired.providers,
        hide_diff=desired.hide_diffs,
        replace_with=desired.replace_with,
    )
    setattr(options, "import", desired.import_id)
    for name, value in (
        ("protect", desired.protect),
        ("retain_on_delete", desired.retain_on_delete),
        ("delete_before_replace", desired.delete_before_replace),
    ):
        if value is not None:
            setattr(options, name, value)
    for verb, seconds in desired.custom_timeouts.items():
        setattr(options.custom_timeouts, verb, f"{seconds:g}s")
    if desired.replacement_trigger is not None:
        options.replacement_trigger.CopyFrom(to_wire(desired.replacement_trigger))
    if desired.hooks:
        options.hooks.CopyFrom(bindings_to_message(desired.hooks))
    return options


def _alias_message(alias: AliasSpec) -> Any:
    if alias.urn:
        return rpc.alias_messages.Alias(urn=alias.urn)
    spec = rpc.alias_messages.Alias.Spec(name=alias.name, type=alias.type, stack=alias.stack, project=alias.project)
    if alias.no_parent:
        spec.noParent = True
    elif alias.parent:
        spec.parentUrn = alias.parent
    return rpc.alias_messages.Alias(spec=spec)


def _apply_options(desired: DesiredState, options: Any) -> None:
    desired.dependencies = sorted(options.depends_on)
    desired.ignore_changes = list(options.ignore_changes)
    desired.replace_on_changes = list(options.replace_on_changes)
    desired.version = options.version
    desired.aliases = [alias_from_message(alias) for alias in options.aliases]
    desired.provider = options.provider
    desired.plugin_url = options.plugin_download_url
    desired.deleted_with = options.deleted_with
    desired.additional_secret_outputs = list(options.additional_secret_outputs)
    desired.providers = dict(options.providers)
    desired.hide_diffs = list(options.hide_diff)
    desired.replace_with = list(options.replace_with)
    desired.hooks = bindings_from_message(options.hooks)
    desired.import_id = getattr(options, "import")
    desired.protect = options.protect if options.HasField("protect") else None
    desired.retain_on_delete = options.retain_on_delete if options.HasField("retain_on_delete") else None
    desired.delete_before_replace = options.delete_before_replace if options.HasField("delete_before_replace") else None
    desired.custom_timeouts = timeouts_from_message(options.custom_timeouts)
    desired.replacement_trigger = (
        from_wire(options.replacement_trigger)
        if options.HasField("replacement_trigger")
        else desired.replacement_trigger
    )
