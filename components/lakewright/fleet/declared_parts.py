"""The parts that a spec declares, as JSON: buckets, warehouses with namespaces and shares, computing units.

The spec is read as it is written, without its models: a spec with errors gives the parts that can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.names.object_names import role_name
from lakewright.names.table_name import PRESETS
from lakewright.validation.documents import as_list, as_mapping, as_text, list_items


def describe_parts(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared parts of a tenant: `buckets`, `warehouses` and `units`.

    Args:
        spec: The spec in a stack file, unchecked.
    """
    storages = as_mapping(spec.get("storage"))
    tenant = as_text(spec.get("name")) or ""
    warehouses = [_describe_warehouse(warehouse, tenant, storages) for _, warehouse in list_items(spec, "warehouses")]
    names = [warehouse["name"] for warehouse in warehouses]
    return {
        "buckets": [_describe_bucket(name, as_mapping(storage)) for name, storage in storages.items()],
        "warehouses": warehouses,
        "units": [_describe_unit(unit, names) for _, unit in list_items(spec, "computing_units")],
    }


def _describe_bucket(storage: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"storage": str(storage), **{key: str(settings.get(key) or "") for key in ("backend", "bucket", "region")}}


def _describe_warehouse(warehouse: Mapping[str, Any], tenant: str, storages: Mapping[str, Any]) -> dict[str, Any]:
    name = as_text(warehouse.get("name")) or ""
    storage = as_text(warehouse.get("storage")) or (str(next(iter(storages))) if len(storages) == 1 else "")
    return {
        "name": name,
        "storage": storage,
        "role": _find_role(as_mapping(storages.get(storage)), tenant, name),
        "key_prefix": as_text(warehouse.get("key_prefix")) or f"{tenant}/{name}",
        "namespaces": _list_namespaces(warehouse.get("namespaces")),
        "shares": [
            {
                "name": str(share),
                "principal": as_text(as_mapping(settings).get("principal_arn")) or "",
                "until": str(as_mapping(settings).get("until") or ""),
            }
            for share, settings in as_mapping(warehouse.get("shares")).items()
        ],
    }


def _find_role(storage: Mapping[str, Any], tenant: str, warehouse: str) -> str:
    """Return the role with which the catalog reaches the storage; empty for stores without roles."""
    if role_arn := as_text(storage.get("role_arn")):
        return role_arn
    return role_name(tenant, warehouse) if storage.get("backend") == "aws" else ""


def _list_namespaces(namespaces: object) -> list[str]:
    preset = as_mapping(namespaces)
    listed_names = [*PRESETS.get(str(preset.get("preset")), ()), *as_list(preset.get("also"))]
    return [str(name) for name in (listed_names if preset else as_list(namespaces))]


def _describe_unit(unit: Mapping[str, Any], warehouses: list[str]) -> dict[str, Any]:
    bound = as_text(unit.get("warehouse"))
    choice = unit.get("warehouses")
    return {
        "name": as_text(unit.get("name")) or "",
        "runtime": as_text(unit.get("runtime")) or "",
        "warehouses": [bound] if bound else warehouses if choice == "all" else [str(name) for name in as_list(choice)],
    }
