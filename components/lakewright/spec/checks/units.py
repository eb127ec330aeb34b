"""Checks of computing units: names, warehouses, sizes and runtimes. Never raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright_spark.suggestions import suggest_name

from lakewright.names.object_names import ACTIVATOR, EXECUTORS, STANDBY, catalog_name, list_reserved_names
from lakewright.validation.documents import as_list, as_mapping, as_text, join_names, list_items, list_names
from lakewright.validation.problems import Path, SpecMistake
from lakewright.validation.quantity import parse_bytes


def unit_checks(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield mistakes of the computing units of a spec."""
    yield from _names_of_units(document)
    yield from _warehouses_of_units(document)
    yield from _check_shared_memory(document)
    yield from _settings_of_runtimes(document)


def no_such_warehouse(name: str, warehouses: list[str]) -> str:
    """Return the mistake of naming a warehouse that is not in the spec."""
    suggestion = suggest_name(name, warehouses)
    return f"expected one of the warehouses {join_names(warehouses)}; there is no `{name}`{suggestion}"


def _names_of_extras(document: Mapping[str, Any]) -> set[str]:
    """Return the names of objects that only some tenants have."""
    idle = any(unit.get("idle_after") is not None for _, unit in list_items(document, "computing_units"))
    maintenance = as_mapping(document.get("maintenance"))
    names = {EXECUTORS: maintenance.get("executors") is not None, STANDBY: maintenance.get("standby"), ACTIVATOR: idle}
    return {name for name, is_used in names.items() if is_used}


def _names_of_units(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Find units whose Kubernetes objects would replace others of the tenant, such as its NetworkPolicy `deny-all`."""
    reserved = list_reserved_names(str(document.get("name"))) | _names_of_extras(document)
    config_maps = {catalog_name(name): name for name in list_names(document, "computing_units")}
    for index, unit in list_items(document, "computing_units"):
        name = as_text(unit.get("name"))
        path: Path = ("computing_units", index, "name")
        if name in reserved:
            yield path, f"expected another name; `{name}` is reserved for an object of the tenant"
        elif name in config_maps:
            yield path, f"expected another name; the ConfigMap of unit `{config_maps[name]}` is named `{name}`"


def _warehouses_of_units(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    warehouses = list_names(document, "warehouses")
    for index, unit in list_items(document, "computing_units"):
        if (unit.get("warehouse") is None) == (unit.get("warehouses") is None):
            yield (
                ("computing_units", index),
                "expected either `warehouse` (bound at creation) or `warehouses` (chosen per execution)",
            )
        warehouse = as_text(unit.get("warehouse"))
        if warehouse is not None and warehouse not in warehouses:
            yield ("computing_units", index, "warehouse"), no_such_warehouse(warehouse, warehouses)
        for position, name in enumerate(as_list(unit.get("warehouses"))):
            if isinstance(name, str) and name not in warehouses:
                yield ("computing_units", index, "warehouses", position), no_such_warehouse(name, warehouses)


def _check_shared_memory(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    for path, size, default in _sizes(document):
        shm, memory = as_text(size.get("shm")), as_text(size.get("memory", default))
        if shm and memory and _bytes(shm) > _bytes(memory) > 0:
            yield (*path, "shm"), f"expected at most the pod's memory, {memory}; found {shm}"


def _sizes(document: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any], str]]:
    """Yield path, amounts and default memory of each pod."""
    for index, unit in list_items(document, "computing_units"):
        yield ("computing_units", index, "size"), as_mapping(unit.get("size")), "2Gi"
    yield ("maintenance", "size"), as_mapping(as_mapping(document.get("maintenance")).get("size")), "4Gi"


def _settings_of_runtimes(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    for index, unit in list_items(document, "computing_units"):
        runtime = unit.get("runtime")
        if unit.get("texera") is not None and runtime != "texera":
            yield ("computing_units", index, "texera"), f"expected these settings with runtime texera; found {runtime}"


def _bytes(size: str) -> int:
    try:
        return parse_bytes(size)
    except ValueError:
        return 0
