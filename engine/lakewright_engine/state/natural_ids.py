"""Natural ids: ids of objects on their servers that the inputs of a resource imply, such as the name of a bucket."""

from __future__ import annotations

from collections.abc import Callable

from lakewright_engine.model.properties import plaintext_properties
from lakewright_engine.model.resources import Properties
from lakewright_engine.model.urns import find_package

NaturalId = Callable[[Properties], str]
"""Returns the id of an object on its server; empty if the inputs do not determine it."""


def _from_inputs(*names: str) -> NaturalId:
    def join_names(inputs: Properties) -> str:
        parts = [inputs.get(name) for name in names]
        return ":".join(str(part) for part in parts) if all(isinstance(part, str) and part for part in parts) else ""

    return join_names


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
    "aws": _from_inputs("bucket"),  # settings of a bucket have the bucket's name as id
    "kubernetes": _kubernetes_name,
}


def natural_id(type_: str, inputs: Properties) -> str:
    """Return the id that the inputs of a resource imply; empty if they imply none."""
    find = _BY_TYPE.get(type_) or _BY_PACKAGE.get(find_package(type_))
    return find(plaintext_properties(inputs)) if find is not None else ""
