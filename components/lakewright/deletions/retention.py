"""Objects that remain although their resources leave a stack. Pure functions.

An engine calls each of these steps `delete`. A resource with `retain_on_delete` keeps its object, with one exception:
buckets and keys always have that option, and `BucketRemoval` and `KeyRemoval` delete them unless data is retained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.validation.documents import as_list, as_mapping, as_text

_DYNAMIC = "pulumi-python:dynamic/"
BUCKET_REMOVAL = f"{_DYNAMIC}lakekeeper:BucketRemoval"
KEY_REMOVAL = f"{_DYNAMIC}lakekeeper:KeyRemoval"
_RECORD = f"{_DYNAMIC}lakekeeper:TenantRecord"

RETAINED_OPS: Mapping[str, str] = {"delete": "retain", "delete-replaced": "retain-replaced"}
"""Operations that delete an object -> the operation to report if the object remains."""


@dataclass(frozen=True)
class StateEntry:
    """A resource of a state."""

    urn: str
    type: str
    parent: str = ""
    is_custom: bool = True
    """Whether it is not a component."""
    has_retain_option: bool = False
    """Whether it has `retain_on_delete`."""
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Outputs and inputs. Inputs have precedence."""


def read_entry(resource: Mapping[str, Any]) -> StateEntry:
    """Return a resource of an exported state."""
    return StateEntry(
        str(resource.get("urn")),
        str(resource.get("type")),
        as_text(resource.get("parent")) or "",
        bool(resource.get("custom")),
        bool(resource.get("retainOnDelete")),
        {**as_mapping(resource.get("outputs")), **as_mapping(resource.get("inputs"))},
    )


def is_retained(entry: StateEntry, entries: Iterable[StateEntry]) -> bool:
    """Return whether the object of a resource remains when a run deletes the resource.

    A component has no object. It is retained if all its children are.

    Args:
        entry: The resource that leaves the stack.
        entries: The resources of the stack before the run.
    """
    all_entries = [*entries]
    if not entry.is_custom:
        children = [child for child in all_entries if child.parent == entry.urn]
        return bool(children) and all(is_retained(child, all_entries) for child in children)
    properties = entry.properties
    match entry.type:
        case "pulumi-python:dynamic/lakekeeper:BucketRemoval" | "pulumi-python:dynamic/lakekeeper:StoreBucket":
            return bool(as_list(properties.get("kept")))
        case "pulumi-python:dynamic/lakekeeper:KeyRemoval":
            return _keeps_bucket(str(properties.get("bucket")), all_entries) is True
        case _:
            is_kept = properties.get("deletion") == "retain" or bool(as_list(properties.get("kept_warehouses")))
            if entry.type.startswith(_DYNAMIC) and is_kept:
                return True
            return entry.has_retain_option and _is_kept_by_removal(entry, all_entries)


def _is_kept_by_removal(entry: StateEntry, all_entries: list[StateEntry]) -> bool:
    """Return whether the resource that deletes a bucket or key of AWS keeps it. Other objects are kept."""
    if entry.type.startswith("aws:s3/"):
        return _keeps_bucket(str(entry.properties.get("bucket")), all_entries) is not False
    if not entry.type.startswith("aws:kms/"):
        return True
    name = entry.urn.rpartition("::")[2]
    # The name of a key's resources ends with the bucket's name.
    buckets = [bucket for bucket in _find_buckets(all_entries) if name.endswith(f"-{bucket}")]
    if buckets:
        return _keeps_bucket(max(buckets, key=len), all_entries) is not False
    key_id = find_key_id(entry.properties)
    return not any(
        other.type == KEY_REMOVAL and (key_id is None or other.properties.get("key_id") == key_id)
        for other in all_entries
    )


def find_key_id(properties: Mapping[str, Any]) -> str | None:
    """Return the id of the key of a `KeyRemoval`, a key or an alias; None if it is not known."""
    names = ("key_id", "target_key_id", "targetKeyId", "keyId")
    return next((str(properties[name]) for name in names if properties.get(name)), None)


def _find_buckets(entries: Iterable[StateEntry]) -> set[str]:
    """Return the names of the buckets that a stack deletes unless they have retained data."""
    names: set[str] = set()
    for entry in entries:
        if entry.type == BUCKET_REMOVAL:
            names.add(str(entry.properties.get("bucket")))
        elif entry.type == _RECORD:
            buckets = map(as_mapping, as_mapping(entry.properties.get("buckets")).values())
            names |= {str(bucket.get("bucket")) for bucket in buckets}
    return names


def _keeps_bucket(bucket: str, entries: Iterable[StateEntry]) -> bool | None:
    """Return whether retained data keeps a bucket; None if nothing of the stack deletes the bucket.

    The tenant's record knows the data of a bucket whose `BucketRemoval` an interrupted run has deleted already.
    """
    record: bool | None = None
    for entry in entries:
        if entry.type == BUCKET_REMOVAL and entry.properties.get("bucket") == bucket:
            return bool(as_list(entry.properties.get("kept")))
        if entry.type == _RECORD and bucket in _find_buckets([entry]):
            warehouses = as_mapping(entry.properties.get("warehouses")).values()
            data = [as_mapping(item) for item in [*warehouses, *as_list(entry.properties.get("kept"))]]
            record = any(item.get("bucket") == bucket and item.get("deletion") == "retain" for item in data)
    return record
