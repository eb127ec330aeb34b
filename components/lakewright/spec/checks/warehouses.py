"""Checks of warehouses: names, queues, and settings that their storage cannot have; on the document as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright.lakekeeper.api.connection.versions import find_current_queue
from lakewright.names.table_name import PRESETS
from lakewright.spec.checks.aws import PlacedWarehouses
from lakewright.storage.registry import find_backend
from lakewright.validation.documents import as_list, as_mapping, list_items
from lakewright.validation.problems import Path, SpecMistake


def list_namespaces(warehouse: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the namespaces of a warehouse, each with its place in the warehouse's document."""
    written = warehouse.get("namespaces")
    preset = as_mapping(written)
    for namespace in PRESETS.get(str(preset.get("preset")), ()):
        yield ("namespaces", "preset"), namespace
    path: Path = ("namespaces", "also") if preset else ("namespaces",)
    for position, namespace in enumerate(as_list(preset.get("also") if preset else written)):
        if isinstance(namespace, str):
            yield (*path, position), namespace


def list_levels(namespace: str) -> list[str]:
    """Return the namespaces from the outermost parent of a namespace to the namespace itself."""
    levels = namespace.split(".")
    return [".".join(levels[:depth]) for depth in range(1, len(levels) + 1)]


def namespace_checks(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield namespaces of a warehouse whose names, or whose parents' names, differ only in case.

    Lakekeeper ignores case in names.
    """
    for index, warehouse in list_items(document, "warehouses"):
        first_at: dict[str, tuple[str, Path]] = {}
        for steps, namespace in list_namespaces(warehouse):
            path: Path = ("warehouses", index, *steps)
            for level in list_levels(namespace):
                earlier_level, earlier_path = first_at.setdefault(level.casefold(), (level, path))
                if earlier_level != level:
                    yield (
                        path,
                        f"expected one spelling of namespace `{level}`; {'.'.join(map(str, earlier_path))} has"
                        f" `{earlier_level}`, and Lakekeeper ignores case",
                    )
                    break


def queue_checks(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield each task queue that a warehouse configures twice: under two names, or in `maintenance.server`, too."""
    servers = as_mapping(as_mapping(document.get("maintenance")).get("server"))
    for index, warehouse in list_items(document, "warehouses"):
        name = str(warehouse.get("name"))
        first_names: dict[str, str] = {}
        for queue in as_mapping(warehouse.get("task_queues")):
            path: Path = ("warehouses", index, "task_queues", queue)
            first_name = first_names.setdefault(find_current_queue(str(queue)), str(queue))
            if first_name != str(queue):
                yield path, f"expected one name of the queue; `{first_name}` is the same queue. Remove one of them"
            if as_mapping(servers.get(name)).get(queue) is not None:
                yield path, f"expected settings in one place; `maintenance.server.{name}.{queue}` has some, too"


def service_checks(warehouses: PlacedWarehouses) -> Iterator[SpecMistake]:
    """Yield settings of warehouses that their storage service cannot have."""
    for index, warehouse, storage in warehouses:
        backend = find_backend(storage)
        if backend is None:
            continue
        storage_text = f"the storage has `backend: {storage.get('backend')}`"
        for key, reason in backend.unsupported_settings.items():
            if warehouse.get(key):
                yield ("warehouses", index, key), f"expected no such field: {storage_text}, and {reason}"
        if backend.service != "s3" and warehouse.get("delegation") == "remote-signing":
            reason = backend.unsupported_settings["remote_signing"]
            yield ("warehouses", index, "delegation"), f"expected `vended`: {storage_text}, and {reason}"


def archive_checks(document: Mapping[str, Any], warehouses: PlacedWarehouses) -> Iterator[SpecMistake]:
    """Yield each `deletion: archive` of a warehouse that cannot become read-only, or that others still need."""
    is_shared = as_mapping(document.get("project")).get("shared") is True
    for index, warehouse, storage in warehouses:
        path = ("warehouses", index)
        if warehouse.get("deletion") != "archive":
            if warehouse.get("purge_after") is not None:
                yield (*path, "purge_after"), "expected only with `deletion: archive`"
            continue
        backend = find_backend(storage)
        if backend is not None and backend.archive_refusal:
            yield (
                (*path, "deletion"),
                "expected `protect`, `retain` or `purge`: `archive` takes the right to write from the storage's"
                f" identity, and with `backend: {storage.get('backend')}`, {backend.archive_refusal}. Use `retain`, and"
                " remove the grants of writers before",
            )
        if is_shared:
            yield (*path, "deletion"), "expected `protect`, `retain` or `purge`: the project is shared"
        if warehouse.get("shares"):
            yield (*path, "shares"), "expected none with `deletion: archive`: the purge would delete their data"
        if warehouse.get("protected") is True and warehouse.get("purge_after") is not None:
            yield (*path, "purge_after"), "expected no purge of a warehouse with `protected: true`"


def remote_signing_checks(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield each `remote_signing: true` of a warehouse whose `delegation` is remote signing already."""
    for index, warehouse in list_items(document, "warehouses"):
        if warehouse.get("remote_signing") is True and warehouse.get("delegation") == "remote-signing":
            path: Path = ("warehouses", index, "remote_signing")
            yield path, "expected only with `delegation: vended`; `remote-signing` alone signs all requests"


def warehouse_checks(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield each `renamed_from` and `dropped_warehouses` that contradicts the declared names."""
    warehouses = [warehouse for _, warehouse in list_items(document, "warehouses")]
    names = [str(warehouse.get("name")) for warehouse in warehouses]
    first_at: dict[str, str] = {}
    for index, warehouse in enumerate(as_list(document.get("warehouses"))):
        earlier = as_mapping(warehouse).get("renamed_from")
        if not isinstance(earlier, str):
            continue
        path: Path = ("warehouses", index, "renamed_from")
        if earlier in names:
            yield path, f"expected a name that is no longer declared; `{earlier}` is"
        elif earlier in first_at:
            yield path, f"expected one new name for `{earlier}`; `{first_at[earlier]}` is renamed from it, too"
        first_at.setdefault(earlier, str(as_mapping(warehouse).get("name")))
    for index, name in enumerate(as_list(document.get("dropped_warehouses"))):
        if name in names:
            yield ("dropped_warehouses", index), f"expected a removed warehouse; `{name}` is still declared"
        elif name in first_at:
            yield ("dropped_warehouses", index), f"expected a removed warehouse; it is `{first_at[name]}` now"
