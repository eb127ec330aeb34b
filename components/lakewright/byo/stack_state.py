"""Read external IDs and key prefixes of tenant-provided buckets from a stack's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.validation.documents import as_mapping

if TYPE_CHECKING:
    from lakewright_engine.model.resources import StackSnapshot

_EXTERNAL_ID = "pulumi-python:dynamic/lakekeeper:ExternalId"
_RECORD = "pulumi-python:dynamic/lakekeeper:TenantRecord"


def read_external_ids(snapshot: StackSnapshot | None) -> dict[str, str]:
    """Return the external IDs that an `up` made, by name of the resource: TENANT-WAREHOUSE[.PURPOSE]."""
    from lakewright_engine.model.resources import SecretValue  # noqa: PLC0415 - `--help` needs no engine

    ids: dict[str, str] = {}
    for resource in snapshot.resources if snapshot else []:
        if resource.type == _EXTERNAL_ID and not resource.delete:
            value = resource.outputs["value"]
            ids[resource.urn.rpartition("::")[2]] = str(value.value if isinstance(value, SecretValue) else value)
    return ids


def read_key_prefixes(snapshot: StackSnapshot | None) -> dict[str, str]:
    """Return the key prefixes of the tenant's warehouses, by name. A renamed warehouse keeps its prefix."""
    record = next((resource for resource in (snapshot.resources if snapshot else []) if resource.type == _RECORD), None)
    warehouses = as_mapping(record.outputs.get("warehouses") if record else None)
    prefixes = {str(name): as_mapping(entry).get("key_prefix") for name, entry in warehouses.items()}
    return {name: prefix for name, prefix in prefixes.items() if isinstance(prefix, str)}
