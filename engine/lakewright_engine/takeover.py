"""Finds again what a killed run had just created: by the natural id that the creation's inputs imply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakewright_engine.errors import ProviderError
from lakewright_engine.model import Properties, ResourceState
from lakewright_engine.properties import plain
from lakewright_engine.providers import Provider
from lakewright_engine.urns import package_of

NaturalId = Callable[[Properties], str]
"""The id that an object has, or would have, in its server; empty where the inputs do not fix it."""


def _input(*names: str) -> NaturalId:
    def of(inputs: Properties) -> str:
        found = [inputs.get(name) for name in names]
        return ":".join(str(part) for part in found) if all(isinstance(part, str) and part for part in found) else ""

    return of


def _kubernetes(inputs: Properties) -> str:
    metadata = inputs.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return ""
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if isinstance(namespace, str) and namespace else str(metadata["name"])


_BY_TYPE: dict[str, NaturalId] = {
    "aws:iam/role:Role": _input("name"),
    "aws:kms/alias:Alias": _input("name"),
    "aws:iam/rolePolicy:RolePolicy": _input("role", "name"),
    "aws:s3/bucket:Bucket": _input("bucket"),
}
_BY_PACKAGE: dict[str, NaturalId] = {
    "aws": _input("bucket"),  # what configures a bucket is known by the bucket's name
    "kubernetes": _kubernetes,
}


def natural_id(type_: str, inputs: Properties) -> str:
    find = _BY_TYPE.get(type_) or _BY_PACKAGE.get(package_of(type_))
    return find(plain(inputs)) if find is not None else ""


def take_over(
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
        found = provider.read(new.urn, object_id, new.inputs, {})
    except ProviderError as error:
        raise ProviderError(
            f"a run was killed while creating {new.urn}; looking for what it left, {object_id}, failed: {error}"
        ) from error
    if not found.id:
        return None
    inputs = found.inputs if found.inputs is not None else left.inputs
    there = replace(left, urn=new.urn, id=found.id, inputs=inputs, outputs=found.outputs)
    if provider.diff(new.urn, there, new.inputs, new.ignore_changes).changes == "none":
        return found.id, found.outputs
    return found.id, provider.update(there, new, False)


def left_behind(provider: Provider, left: ResourceState) -> ResourceState | None:
    """The object of an interrupted creation as a resource of its own; None if it was never made.

    For what looks at the state without a program. The creation's inputs must imply a natural id.
    """
    found = provider.read(left.urn, natural_id(left.type, left.inputs), left.inputs, {})
    if not found.id:
        return None
    inputs = found.inputs if found.inputs is not None else left.inputs
    return replace(left, id=found.id, inputs=inputs, outputs=found.outputs)
