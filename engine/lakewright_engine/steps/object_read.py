"""Read one object again and compare it with the state, as a refresh does with each resource."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lakewright_engine.model.errors import InitializationError
from lakewright_engine.model.properties import is_equal, mark_secrets
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.model.step import Diff
from lakewright_engine.providers.provider import Provider
from lakewright_engine.steps.resource_diff import resource_diff


@dataclass(frozen=True)
class ObjectRead:
    """An object as it was read. `result` is that of a refresh: `same`, `update` or `delete`."""

    new: ResourceState | None
    """The state with the found properties; None if the object does not exist."""
    result: str
    diff: Diff = field(default_factory=lambda: Diff("none"))
    """The provider's diff that leads from the found object back to the inputs of the state."""
    is_unhealthy: bool = False
    """Whether the object exists, but failed to initialize. The reasons are the `init_errors` of the new state."""
    is_modified: bool = False
    """Whether inputs or outputs differ from the state."""


def read_object(
    provider: Provider, old: ResourceState, mark_outputs: Callable[[ResourceState], None] | None = None
) -> ObjectRead:
    """Read the object of a resource and compare it with the state.

    Args:
        provider: The configured provider of the resource.
        old: The state of the resource.
        mark_outputs: Marks the secret outputs of the new state.

    Raises:
        ProviderError: The provider cannot read the object.
    """
    init_errors: list[str] = []
    is_unhealthy = False
    try:
        live_object = provider.read(old.urn, old.id, old.inputs, old.outputs, old.custom_timeouts.get("read", 0))
        object_id, inputs, outputs = live_object.id, live_object.inputs, live_object.outputs
    except InitializationError as failed:
        object_id, inputs, outputs, init_errors = failed.object_id, failed.inputs, failed.outputs, failed.reasons
        is_unhealthy = True
    if not object_id:
        return ObjectRead(None, "delete")
    # Also for a provider that accepts secrets, which may still return them in plain text.
    kept_inputs = mark_secrets(inputs, old.inputs) if inputs is not None else old.inputs
    new = replace(old, id=object_id, outputs=outputs, inputs=kept_inputs, init_errors=init_errors)
    if mark_outputs is not None:
        mark_outputs(new)
    unchanged = is_equal(dict(new.outputs), dict(old.outputs))
    is_modified = not unchanged or not is_equal(dict(new.inputs), dict(old.inputs))
    if not is_modified and inputs is not None and object_id == old.id and init_errors == old.init_errors:
        # Everything is as in the state, except perhaps secret marks: no diff from the provider is needed.
        return ObjectRead(new if new != old else old, "same", is_unhealthy=is_unhealthy)
    if old.external:
        result = "same" if unchanged else "update"
        return ObjectRead(new, result, is_unhealthy=is_unhealthy, is_modified=is_modified)
    # The diff leads back to the state; inverted, it is the change of the object.
    diff = resource_diff(provider, new.urn, new, old.inputs, old.ignore_changes)
    changed = diff.changes == "some"
    return ObjectRead(
        new,
        "update" if changed else "same",
        diff if changed else Diff("none"),
        is_unhealthy=is_unhealthy,
        is_modified=is_modified,
    )
