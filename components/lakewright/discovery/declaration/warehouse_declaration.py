"""Derive a warehouse of a spec from a warehouse of a server, and compare them. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lakewright.discovery.declaration.omission import Omission
from lakewright.discovery.listing.project_objects import FoundNamespace, FoundWarehouse
from lakewright.field_map.arguments import build_args
from lakewright.field_map.marks import NotExpressibleError, Sets, list_marked_fields
from lakewright.field_map.read_back import read_fields
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.storage.profiles import PROFILES, profile_observed
from lakewright.lakekeeper.warehouse.model import list_changed_values, read_properties
from lakewright.names.types import NamespacePath
from lakewright.spec.warehouse import WarehouseSpec
from lakewright.storage.backend import AwsDefaults, StorageBackend, WarehouseAccess
from lakewright.storage.live_storage import name_as_on_s3

_NAMESPACE = TypeAdapter[str](NamespacePath)


def declare_warehouse(tenant: str, warehouse: FoundWarehouse) -> dict[str, Any]:
    """Return a warehouse as a spec has it, without its storage; only what is not a default.

    Raises:
        NotExpressibleError: Specs have no such warehouse.
    """
    properties = read_properties(warehouse.response)
    if not properties["active"]:
        raise NotExpressibleError("it is inactive, and a stack would activate it. Activate it first")
    inside = {
        "Namespace": [entry.name for entry in warehouse.namespaces if not find_namespace_problem(entry)],
        "TaskQueueConfig": {
            name: {
                "config": dict(queue.config),
                "max_seconds_since_last_heartbeat": queue.max_seconds_since_last_heartbeat,
            }
            for name, queue in warehouse.queues.items()
        },
    }
    storage = name_as_on_s3(properties["storage"])
    document = read_fields(WarehouseSpec, properties | {"storage": storage} | inside)
    if document["key_prefix"] == f"{tenant}/{warehouse.name}":
        del document["key_prefix"]
    return document


def find_differences(
    spec: WarehouseSpec, backend: StorageBackend, warehouse: FoundWarehouse, defaults: AwsDefaults, key_prefix: str
) -> list[str]:
    """Return what adopting a warehouse with this declaration would change; empty if nothing."""
    live: dict[str, Any] = warehouse.response["storage-profile"]
    access = WarehouseAccess(
        backend.bucket,
        key_prefix,
        build_args(spec)["storage"],
        role_arn=backend.role_arn_of_tenant or (live.get("assume-role-arn") if backend.makes_role else None),
        vending_role_arn=live.get("sts-role-arn") if spec.vending_role else None,
        kms_key_arn=backend.existing_kms_key_arn or (live.get("aws-kms-key-arn") if backend.makes_role else None),
    )
    try:
        profile = backend.storage_profile(access, backend.address(defaults))
        declared_profile = PROFILES[backend.service].model_validate(profile)
    except ValidationError as error:
        return [str(details["msg"]).removeprefix("Value error, ") for details in error.errors()]
    return [
        str(change) for change in difference.list_changes(profile_observed(live, declared_profile), declared_profile)
    ]


def list_undeclarable_settings(warehouse: FoundWarehouse) -> Iterator[Omission]:
    """Yield the settings of a warehouse that specs have no field for. A stack leaves them as they are."""
    name = warehouse.name
    consequence = "specs have no field for it, and a stack leaves it as it is"
    if warehouse.managed_access:
        yield Omission("warehouse", name, f"managed access is on; {consequence}")
    layout: Mapping[str, Any] = warehouse.response["storage-profile"].get("storage-layout") or {}
    if layout.get("type", "default") != "default":
        yield Omission("warehouse", name, f"storage layout `{layout['type']}`; {consequence}")
    declarable = {mark.path for _, mark in list_marked_fields(WarehouseSpec, Sets)}
    for property_name, value in list_changed_values(warehouse.response, declarable):
        yield Omission("warehouse", name, f"{property_name.replace('_', ' ')} {value}; {consequence}")
    for entry in warehouse.namespaces:
        namespace_name = f"{name}.{entry.name}"
        if reason := find_namespace_problem(entry):
            yield Omission("namespace", namespace_name, reason)
            continue
        if entry.properties:
            yield Omission(
                "namespace", namespace_name, f"properties {', '.join(sorted(entry.properties))}; {consequence}"
            )
        if entry.listed.protected:
            yield Omission("namespace", namespace_name, f"protection is on; {consequence}")
        if entry.managed_access:
            yield Omission("namespace", namespace_name, f"managed access is on; {consequence}")


def find_namespace_problem(entry: FoundNamespace) -> str:
    """Return why a namespace has no form in specs; empty if it has a form."""
    if any("." in level for level in entry.path):
        return "a level of its name contains a dot, which separates levels in specs"
    try:
        _NAMESPACE.validate_python(entry.name)
    except ValidationError as error:
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    return ""
