"""Derive a warehouse of a spec from a warehouse of a server, and compare them. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lakewright.discovery.declaration.omission import Omission
from lakewright.discovery.listing.project_objects import FoundNamespace, FoundWarehouse
from lakewright.errors import LakewrightError
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.storage.profiles import S3Profile, profile_observed
from lakewright.names.namespace_presets import PRESETS
from lakewright.names.types import NamespacePath
from lakewright.spec.warehouse import WarehouseSpec
from lakewright.storage.backend import AwsDefaults, StorageBackend, WarehouseAccess

_NAMESPACE = TypeAdapter[str](NamespacePath)
_SECONDS_PER_DAY = 86_400
_MOST_DAYS = 365
_TOKEN_SECONDS = 3600


class UndeclarableWarehouseError(LakewrightError):
    """A warehouse has no form in specs. The message is the reason."""


def declare_warehouse(tenant: str, warehouse: FoundWarehouse) -> dict[str, Any]:
    """Return a warehouse as a spec has it, without its storage; only what is not a default.

    Raises:
        UndeclarableWarehouseError: Specs have no such warehouse.
    """
    if warehouse.response.get("status") != "active":
        raise UndeclarableWarehouseError("it is inactive, and a stack would activate it. Activate it first")
    profile: Mapping[str, Any] = warehouse.response["storage-profile"]
    prefix = str(profile.get("key-prefix") or "").strip("/")
    if not prefix:
        raise UndeclarableWarehouseError(
            "it uses a whole bucket; a warehouse of a spec has a `key_prefix`, so that other warehouses fit beside it"
        )
    is_vended = bool(profile.get("sts-enabled"))
    is_signed = bool(profile.get("remote-signing-enabled", True))
    if not is_vended and not is_signed:
        raise UndeclarableWarehouseError(
            "it neither vends credentials nor signs requests; specs have `delegation: vended` or `remote-signing`"
        )
    document: dict[str, Any] = {
        "name": warehouse.name,
        "key_prefix": prefix if prefix != f"{tenant}/{warehouse.name}" else None,
        "namespaces": _declare_namespaces(
            [entry.name for entry in warehouse.namespaces if not find_namespace_problem(entry)]
        ),
        "soft_delete_days": _read_soft_delete_days(warehouse.response.get("delete-profile") or {"type": "hard"}),
        "protected": True if warehouse.response.get("protected") else None,
        "format_versions": _read_format_versions(warehouse.response),
        "delegation": None if is_vended else "remote-signing",
        "remote_signing": True if is_vended and is_signed else None,
        "token_seconds": _read_token_seconds(profile),
        "session_tags": profile.get("sts-session-tags") or None,
        "task_queues": {
            name: {
                "config": dict(queue.config) or None,
                "max_seconds_since_last_heartbeat": queue.max_seconds_since_last_heartbeat,
            }
            for name, queue in warehouse.queues.items()
        },
    }
    document["task_queues"] = {
        name: {key: value for key, value in queue.items() if value is not None}
        for name, queue in document["task_queues"].items()
    }
    return {key: value for key, value in document.items() if value not in (None, [], {})}


def find_differences(
    spec: WarehouseSpec, backend: StorageBackend, warehouse: FoundWarehouse, defaults: AwsDefaults, key_prefix: str
) -> list[str]:
    """Return what adopting a warehouse with this declaration would change; empty if nothing."""
    live: dict[str, Any] = warehouse.response["storage-profile"]
    access = WarehouseAccess(
        backend.bucket,
        key_prefix,
        vended=spec.delegation == "vended",
        also_signed=spec.remote_signing,
        role_arn=backend.role_arn_of_tenant or (live.get("assume-role-arn") if backend.makes_role else None),
        vending_role_arn=live.get("sts-role-arn") if spec.vending_role else None,
        token_seconds=spec.token_seconds,
        kms_key_arn=backend.existing_kms_key_arn or (live.get("aws-kms-key-arn") if backend.makes_role else None),
        session_tags=spec.session_tags,
    )
    try:
        declared_profile = S3Profile.model_validate(backend.storage_profile(access, backend.address(defaults)))
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
    if (default := warehouse.response.get("default-format-version")) is not None:
        yield Omission("warehouse", name, f"default format version {default}; {consequence}")
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


def match_preset(paths: list[str]) -> str | None:
    """Return the preset whose namespaces are all among the paths."""
    return next((name for name, preset in PRESETS.items() if set(preset) <= set(paths)), None)


def _declare_namespaces(paths: list[str]) -> Any:
    """Return the namespaces of a spec. A parent follows from its children."""
    leaves = [path for path in paths if not any(other.startswith(f"{path}.") for other in paths)]
    preset = match_preset(paths)
    if preset is None:
        return leaves
    also = [path for path in leaves if path not in PRESETS[preset]]
    return {"preset": preset} | ({"also": also} if also else {})


def _read_soft_delete_days(profile: Mapping[str, Any]) -> int | None:
    if profile.get("type") != "soft":
        return None
    seconds = int(profile["expiration-seconds"])
    days, remainder = divmod(seconds, _SECONDS_PER_DAY)
    if remainder or not 1 <= days <= _MOST_DAYS:
        raise UndeclarableWarehouseError(
            f"dropped tables expire after {seconds} seconds; `soft_delete_days` takes 1 to {_MOST_DAYS} whole days"
        )
    return days


def _read_token_seconds(profile: Mapping[str, Any]) -> int | None:
    seconds = profile.get("sts-token-validity-seconds")
    return seconds if seconds not in (None, _TOKEN_SECONDS) else None


def _read_format_versions(response: Mapping[str, Any]) -> list[int] | None:
    """Return the allowed versions if some are missing."""
    allowed = response.get("allowed-format-versions")
    return sorted(allowed) if allowed and len(set(allowed)) < len((1, 2, 3)) else None
