"""From a section of a spec to the arguments of its resource."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

from lakewright.field_map.marks import Sets, list_marked_fields


def build_args(section: BaseModel) -> dict[str, Any]:
    """Return the arguments that the fields of a section set, nested as the properties are; only what is set.

    Fields that set the same property set its entries: a later field overrides an earlier field.

    >>> from lakewright.spec.warehouse import WarehouseSpec
    >>> build_args(WarehouseSpec(name="main", soft_delete_days=1))["delete_profile"]
    {'type': 'soft', 'expiration_seconds': 86400}
    """
    args: dict[str, Any] = {}
    for name, mark in list_marked_fields(type(section), Sets):
        value = mark.to_args(getattr(section, name))
        if value is None:
            continue
        *parents, key = mark.path.split(".")
        target = args
        for parent in parents:
            target = target.setdefault(parent, {})
        before = target.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            value = {**cast(dict[str, Any], before), **cast(dict[str, Any], value)}
        target[key] = value
    return args
