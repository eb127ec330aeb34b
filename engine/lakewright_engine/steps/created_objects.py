"""Finds again what a killed run had just created: by the natural id that the creation's inputs imply.

The run may also have died before it made anything, and the object of that name be somebody else's. So what was found
must be what the creation would have made, as far as it sets that at once with making the object: tags and trust policy
of a role, labels and annotations of a Kubernetes object. A bucket's tags may follow in a second call: a bucket without
any can be ours. What a creation overwrites where it exists (a role's policy, a bucket's settings) is not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakewright_engine.model.errors import ProviderError
from lakewright_engine.model.paths import parse_path
from lakewright_engine.model.properties import plaintext_properties
from lakewright_engine.model.resources import Properties, ResourceState
from lakewright_engine.model.urns import package_of
from lakewright_engine.providers.provider import Provider
from lakewright_engine.steps.resource_diff import resource_diff

NaturalId = Callable[[Properties], str]
"""The id that an object has, or would have, in its server; empty where the inputs do not fix it."""


def _from_inputs(*names: str) -> NaturalId:
    def of(inputs: Properties) -> str:
        found = [inputs.get(name) for name in names]
        return ":".join(str(part) for part in found) if all(isinstance(part, str) and part for part in found) else ""

    return of


def _kubernetes_name(inputs: Properties) -> str:
    metadata = inputs.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return ""
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if isinstance(namespace, str) and namespace else str(metadata["name"])


_BY_TYPE: dict[str, NaturalId] = {
    "aws:iam/role:Role": _from_inputs("name"),
    "aws:kms/alias:Alias": _from_inputs("name"),
    "aws:iam/rolePolicy:RolePolicy": _from_inputs("role", "name"),
    "aws:s3/bucket:Bucket": _from_inputs("bucket"),
}
_BY_PACKAGE: dict[str, NaturalId] = {
    "aws": _from_inputs("bucket"),  # what configures a bucket is known by the bucket's name
    "kubernetes": _kubernetes_name,
}

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
"""What tells an object of the type from a stranger's: properties that are set with its creation."""
_SET_AFTER_CREATE = {"aws:s3/bucket:Bucket": {"tags"}}
"""Those of them that a killed creation may have left unset."""
_FORCE_OPTIONS = ("forceDestroy", "forceDetachPolicies")
"""Options that let a deletion destroy more than was created."""


def natural_id(type_: str, inputs: Properties) -> str:
    find = _BY_TYPE.get(type_) or _BY_PACKAGE.get(package_of(type_))
    return find(plaintext_properties(inputs)) if find is not None else ""


def adopt(
    provider: Provider, new: ResourceState, left: ResourceState, replaced_id: str
) -> tuple[str, Properties] | None:
    """The id and outputs of what an interrupted creation left, brought to the wanted inputs; None if it left nothing.

    Types without a natural id are left to their provider: dynamic ones adopt on create. The object that a
    replacement is to replace is never taken for the new one.
    """
    object_id = natural_id(new.type, new.inputs)
    if not object_id or object_id == replaced_id or object_id != natural_id(left.type, left.inputs):
        return None
    try:
        there = _read_object(provider, replace(left, urn=new.urn), new.inputs)
    except ProviderError as error:
        raise ProviderError(
            f"a run was killed while creating {new.urn}; looking for what it left, {object_id}, failed: {error}"
        ) from error
    if there is None:
        return None
    strange = mismatched_properties(provider, left, there)
    if strange:
        raise ProviderError(
            f"a run was killed while creating {new.urn}, and {object_id} exists, but it is not what that run would "
            f"have made: other {', '.join(strange)}. Give the resource another name, or remove the object; if it is to "
            f"be this stack's, import it (import_={object_id!r} in the resource's options)"
        )
    if provider.diff(new.urn, there, new.inputs, new.ignore_changes).changes == "none":
        return there.id, there.outputs
    return there.id, provider.update(there, new, False)


def find_created_object(provider: Provider, left: ResourceState) -> ResourceState | None:
    """The object of an interrupted creation as a resource of its own; None if there is none of that name.

    For what looks at the state without a program. The creation's inputs must imply a natural id. Nothing has used the
    object yet, so that its deletion need not force anything.
    """
    found = _read_object(provider, left, left.inputs)
    if found is None:
        return None
    for properties in (found.inputs, found.outputs):
        properties.update({key: False for key in _FORCE_OPTIONS if properties.get(key)})
    return found


def mismatched_properties(provider: Provider, left: ResourceState, found: ResourceState) -> list[str]:
    """The properties in which `found` is not what the interrupted creation would have made; empty if it may be."""
    if package_of(left.type) == "kubernetes":
        return [f"metadata.{part}" for part in ("labels", "annotations") if not _is_contained(part, left, found)]
    telling = _SET_ON_CREATE.get(left.type)
    if telling is None:
        return []
    unset = {key for key in _SET_AFTER_CREATE.get(left.type, ()) if not found.outputs.get(key)}
    diff = resource_diff(provider, found.urn, found, left.inputs, [])
    changed = {str(parse_path(path)[0]) for path in (*diff.keys, *diff.replace_keys, *(diff.detailed or ()))}
    return sorted(changed & telling - unset)


def _read_object(provider: Provider, left: ResourceState, inputs: Properties) -> ResourceState | None:
    found = provider.read(left.urn, natural_id(left.type, left.inputs), inputs, {})
    if not found.id:
        return None
    there = found.inputs if found.inputs is not None else left.inputs
    return replace(left, id=found.id, inputs=dict(there), outputs=found.outputs)


def _is_contained(part: str, left: ResourceState, found: ResourceState) -> bool:
    wanted, there = (_metadata(properties, part) for properties in (left.inputs, found.outputs))
    return all(there.get(key) == value for key, value in wanted.items())


def _metadata(properties: Properties, part: str) -> Properties:
    metadata = plaintext_properties(properties).get("metadata")
    found = metadata.get(part) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
