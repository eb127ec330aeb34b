"""Find objects that a killed run created, by the natural id in the inputs of the interrupted creation.

The run may have been killed before it created the object, and an existing object of that name may belong to another
user. An object is therefore adopted only if the properties that are set on creation match: tags and trust policy of a
role, labels and annotations of a Kubernetes object. The tags of a bucket may be set by a second call, so a bucket
without tags is adopted too. Objects that a creation overwrites (a role's policy, a bucket's settings) are not compared.
"""

from __future__ import annotations

from dataclasses import replace

from lakewright_engine.model.errors import InitializationError, ProviderError
from lakewright_engine.model.paths import parse_path
from lakewright_engine.model.properties import plaintext_properties
from lakewright_engine.model.resources import Properties, ResourceState
from lakewright_engine.model.urns import find_package
from lakewright_engine.providers.provider import Provider
from lakewright_engine.state.natural_ids import natural_id
from lakewright_engine.steps.resource_diff import resource_diff

_SET_ON_CREATE = {
    "aws:iam/role:Role": {
        "assumeRolePolicy",
        "description",
        "maxSessionDuration",
        "path",
        "permissionsBoundary",
        "tags",
    },
    "aws:s3/bucket:Bucket": {"tags"},
}
"""Properties that are set on creation, by type. They distinguish the object from another user's object."""
_SET_AFTER_CREATE = {"aws:s3/bucket:Bucket": {"tags"}}
"""Properties of `_SET_ON_CREATE` that an interrupted creation may have left unset."""
_FORCE_OPTIONS = ("forceDestroy", "forceDetachPolicies")
"""Options with which a deletion destroys more than was created."""


def adopt(
    provider: Provider, new: ResourceState, interrupted: ResourceState, replaced_id: str
) -> tuple[str, Properties] | None:
    """Adopt the object of an interrupted creation and update it to the desired inputs.

    Types without a natural id are left to their provider: dynamic providers adopt on create. The object that is being
    replaced is never adopted as the new object. The update also waits for an object that is not ready.

    Returns:
        The id and outputs; None if there is no such object.

    Raises:
        InitializationError: The object is still not ready after the update.
        ProviderError: The lookup failed, or the object differs from the object that the interrupted run would have
        created.
    """
    object_id = natural_id(new.type, new.inputs)
    if not object_id or object_id == replaced_id or object_id != natural_id(interrupted.type, interrupted.inputs):
        return None
    try:
        existing = _read_object(provider, replace(interrupted, urn=new.urn), new.inputs)
    except ProviderError as error:
        raise ProviderError(
            f"a run was killed while creating {new.urn}; looking up {object_id} failed: {error}"
        ) from error
    if existing is None:
        return None
    mismatched = list_mismatched_properties(provider, interrupted, existing)
    if mismatched:
        raise ProviderError(
            f"a run was killed while creating {new.urn}, and {object_id} exists, but it is not the object of that run: "
            f"different {', '.join(mismatched)}. Rename the resource or remove the object. To manage the object with "
            f"this stack, import it (import_={object_id!r} in the resource's options)"
        )
    is_ready = not existing.init_errors
    if is_ready and provider.diff(new.urn, existing, new.inputs, new.ignore_changes).changes == "none":
        return existing.id, existing.outputs
    try:
        return existing.id, provider.update(existing, new, preview=False)
    except InitializationError as failed:
        failed.object_id = existing.id
        raise


def find_created_object(provider: Provider, interrupted: ResourceState) -> ResourceState | None:
    """Return the object of an interrupted creation as a resource; None if it does not exist.

    It is for operations without a program. The inputs of the creation must imply a natural id. The object has not been
    used, so its deletion does not need force options.
    """
    live_object = _read_object(provider, interrupted, interrupted.inputs)
    if live_object is None:
        return None
    for properties in (live_object.inputs, live_object.outputs):
        properties.update({key: False for key in _FORCE_OPTIONS if properties.get(key)})
    return live_object


def list_mismatched_properties(provider: Provider, interrupted: ResourceState, live_object: ResourceState) -> list[str]:
    """Return the properties in which an object differs from that of the interrupted creation.

    Empty if it may be the same.
    """
    if find_package(interrupted.type) == "kubernetes":
        return [
            f"metadata.{part}"
            for part in ("labels", "annotations")
            if not _is_contained(part, interrupted, live_object)
        ]
    identifying = _SET_ON_CREATE.get(interrupted.type)
    if identifying is None:
        return []
    unset = {key for key in _SET_AFTER_CREATE.get(interrupted.type, ()) if not live_object.outputs.get(key)}
    diff = resource_diff(provider, live_object.urn, live_object, interrupted.inputs, [])
    changed = {str(parse_path(path)[0]) for path in (*diff.keys, *diff.replace_keys, *(diff.detailed or ()))}
    return sorted(changed & identifying - unset)


def _read_object(provider: Provider, interrupted: ResourceState, inputs: Properties) -> ResourceState | None:
    init_errors: list[str] = []
    try:
        response = provider.read(interrupted.urn, natural_id(interrupted.type, interrupted.inputs), inputs, {})
        object_id, live_inputs, outputs = response.id, response.inputs, response.outputs
    except InitializationError as failed:
        object_id, live_inputs, outputs, init_errors = failed.object_id, failed.inputs, failed.outputs, failed.reasons
    if not object_id:
        return None
    existing = live_inputs if live_inputs is not None else interrupted.inputs
    return replace(interrupted, id=object_id, inputs=dict(existing), outputs=outputs, init_errors=init_errors)


def _is_contained(part: str, interrupted: ResourceState, live_object: ResourceState) -> bool:
    expected, existing = (_metadata(properties, part) for properties in (interrupted.inputs, live_object.outputs))
    return all(existing.get(key) == value for key, value in expected.items())


def _metadata(properties: Properties, part: str) -> Properties:
    metadata = plaintext_properties(properties).get("metadata")
    member = metadata.get(part) if isinstance(metadata, dict) else None
    return member if isinstance(member, dict) else {}
