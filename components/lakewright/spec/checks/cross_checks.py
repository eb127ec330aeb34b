"""Checks of values that must fit together, on the document as written: an invalid value hides no other mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, cast, get_args

from lakewright_spark.suggestions import suggest_name

from lakewright.names.grant_names import RoleKind
from lakewright.names.object_names import default_key_prefix, to_object_name
from lakewright.names.table_name import parse_parts
from lakewright.names.types import prefixes_overlap
from lakewright.spec.checks.aws import (
    access_checks,
    check_vending,
    key_checks,
    log_checks,
    prefix_checks,
    role_checks,
    tag_checks,
)
from lakewright.spec.checks.data_checks import data_check_mistakes
from lakewright.spec.checks.maintenance import maintenance_checks
from lakewright.spec.checks.tables import table_checks
from lakewright.spec.checks.units import no_such_warehouse, unit_checks
from lakewright.spec.checks.warehouses import (
    archive_checks,
    namespace_checks,
    queue_checks,
    remote_signing_checks,
    service_checks,
    warehouse_checks,
)
from lakewright.storage.backend import StorageBackend
from lakewright.storage.registry import find_backend
from lakewright.validation.documents import as_list, as_mapping, as_text, join_names, list_items, list_names
from lakewright.validation.problems import SpecMistake


def cross_checks(raw: Any) -> Iterator[SpecMistake]:
    """Yield each place where values contradict each other. Never raises, whatever the document is."""
    if not isinstance(raw, Mapping):
        return
    document = cast(Mapping[str, Any], raw)
    yield from _find_duplicate_names(document, "warehouses")
    yield from _find_duplicate_names(document, "computing_units")
    yield from _find_duplicate_names(document, "tables")
    yield from _find_duplicate_names(document, "views")
    yield from _lookalike_warehouses(document)
    yield from warehouse_checks(document)
    yield from namespace_checks(document)
    yield from queue_checks(document)
    yield from remote_signing_checks(document)
    yield from _find_shared_buckets(document)
    yield from _storages_of_warehouses(document)
    yield from role_checks(document.get("name"), place_warehouses(document))
    yield from check_vending(place_warehouses(document))
    yield from prefix_checks(place_warehouses(document))
    yield from key_checks(list_storages(document))
    yield from access_checks(place_warehouses(document))
    yield from service_checks(place_warehouses(document))
    yield from archive_checks(document, place_warehouses(document))
    yield from log_checks(list_storages(document))
    yield from tag_checks(document.get("owner"), place_warehouses(document))
    yield from _find_overlapping_prefixes(document)
    yield from unit_checks(document)
    yield from _find_texera_outside_s3(document)
    yield from _find_standby_outside_s3(document)
    yield from _warehouses_of_data(document)
    yield from _find_spellings_of_roles(document)
    yield from _find_repeated_grants(document)
    yield from _find_grants_on_shared_project(document)
    yield from table_checks(document)
    yield from maintenance_checks(document, list_names(document, "warehouses"))
    yield from data_check_mistakes(document, _standard_roles(document))


def _find_grants_on_shared_project(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield each grant on a project that the tenant shares, since it would reach the warehouses of other tenants."""
    if as_mapping(document.get("project")).get("shared") is not True:
        return
    for index, grant in list_items(document, "grants"):
        if as_mapping(grant.get("on")).get("project") is not None:
            yield (
                ("grants", index, "on", "project"),
                "expected a warehouse, namespace or table: the project is shared, and a stack does not change it",
            )


def place_warehouses(document: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
    """Return position, document and storage of each warehouse; an empty storage if it is unknown."""
    storages = list_storages(document)
    return [
        (index, warehouse, storages.get(_find_storage_name(document, warehouse) or "", {}))
        for index, warehouse in list_items(document, "warehouses")
    ]


def find_made_storages(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the storages whose buckets the stack makes, by name."""
    return {
        name: item
        for name, item in list_storages(document).items()
        if (backend := find_backend(item)) and backend.is_made(item)
    }


def is_on_aws(storage: Mapping[str, Any]) -> bool:
    """Return whether a storage is on AWS."""
    backend = find_backend(storage)
    return backend is not None and backend.is_on_aws


def makes_roles(document: Mapping[str, Any]) -> bool:
    """Return whether the stack makes a role for a warehouse."""
    backends = (find_backend(storage) for _, _, storage in place_warehouses(document))
    return any(backend.makes_role for backend in backends if backend)


def list_storages(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the storages by name."""
    storages = as_mapping(document.get("storage"))
    return {str(name): cast(Mapping[str, Any], item) for name, item in storages.items() if isinstance(item, Mapping)}


def _find_duplicate_names(document: Mapping[str, Any], section: str) -> Iterator[SpecMistake]:
    first_at: dict[tuple[str, ...], tuple[int, str]] = {}
    for index, item in list_items(document, section):
        name = as_text(item.get("name"))
        if name is None:
            continue
        # Lakekeeper ignores case in names, and gets the parts of a name without quotes.
        levels = tuple(part.casefold() for part in parse_parts(name) or [name])
        earlier, earlier_name = first_at.setdefault(levels, (index, name))
        if earlier != index:
            reason = "" if earlier_name == name else ". Names that differ only in case or quotes are the same name"
            expectation = f"expected a unique name; {section}.{earlier} is `{earlier_name}`, too{reason}"
            yield (section, index, "name"), expectation


def _lookalike_warehouses(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    names = [(index, as_text(item.get("name")) or "") for index, item in list_items(document, "warehouses")]
    standbys = as_mapping(as_mapping(document.get("maintenance")).get("standby"))
    # PyIceberg's environment variables have no `-`, so that two names would be one catalog.
    lookalikes = dict(_pair_lookalikes(names, lambda name: name.casefold().replace("_", "-")))
    # Names of standby objects do not end with `-`, either.
    lookalikes |= dict(_pair_lookalikes([entry for entry in names if entry[1] in standbys], to_object_name))
    for index, (earlier, other) in lookalikes.items():
        message = f"expected a name that differs from `{other}` of warehouses.{earlier} by more than `-` and `_`"
        yield ("warehouses", index, "name"), message


def _pair_lookalikes(
    names: Iterable[tuple[int, str]], normalize: Callable[[str], str]
) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield the index of each name that another name equals when normalized, and index and name of the other."""
    first_at: dict[str, tuple[int, str]] = {}
    for index, name in names:
        earlier = first_at.setdefault(normalize(name), (index, name))
        if name and earlier[1].casefold() != name.casefold():
            yield index, earlier


def _find_shared_buckets(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    buckets = {name: item.get("bucket") for name, item in find_made_storages(document).items()}
    for (first, bucket), (second, other) in combinations(buckets.items(), 2):
        if bucket is not None and bucket == other:
            yield (
                ("storage", second, "bucket"),
                f"expected another bucket; storage.{first} makes `{bucket}`",
            )


def _find_storage_name(document: Mapping[str, Any], warehouse: Mapping[str, Any]) -> str | None:
    storage_name = as_text(warehouse.get("storage"))
    storages = list(list_storages(document))
    return storage_name or (storages[0] if len(storages) == 1 else None)


def _storages_of_warehouses(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    storages = list_storages(document)
    names = [str(name) for name in as_mapping(document.get("storage"))]
    servers = as_mapping(as_mapping(document.get("maintenance")).get("server"))
    for index, warehouse in list_items(document, "warehouses"):
        storage_name = as_text(warehouse.get("storage"))
        if storage_name is None and len(names) > 1 and warehouse.get("storage") is None:
            yield ("warehouses", index, "storage"), f"required with several storages: {join_names(names)}"
        if storage_name is not None and storage_name not in names:
            yield (
                ("warehouses", index, "storage"),
                f"expected one of the storages {join_names(names)}; there is no `{storage_name}`"
                f"{suggest_name(storage_name, names)}",
            )
        storage = storages.get(_find_storage_name(document, warehouse) or "", {})
        delegation = warehouse.get("delegation", "vended")
        backend = find_backend(storage)
        name = str(warehouse.get("name"))
        if storage.get("may_delete") is False and any(as_mapping(servers.get(name)).values()):
            yield (
                ("maintenance", "server", name),
                f"expected no jobs of the server: the storage of `{name}` has `may_delete: false`",
            )
        if storage.get("may_delete") is False and warehouse.get("deletion") == "purge":
            yield (
                ("warehouses", index, "deletion"),
                "expected `protect` or `retain`: the storage has `may_delete: false`, so nothing can be purged",
            )
        if delegation == "vended" and backend and (reason := backend.why_not_vended(storage)):
            yield (
                ("warehouses", index, "delegation"),
                f"expected `remote-signing`: {reason}, so no credentials can be vended",
            )


def _find_overlapping_prefixes(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    storages = list_storages(document)
    prefixes: list[tuple[int, str, str]] = []
    with_default: set[int] = set()
    for index, warehouse in list_items(document, "warehouses"):
        storage = storages.get(_find_storage_name(document, warehouse) or "", {})
        prefix = as_text(warehouse.get("key_prefix"))
        if prefix is None and warehouse.get("key_prefix") is None and as_text(warehouse.get("name")):
            with_default.add(index)
            first_name = as_text(warehouse.get("renamed_from")) or str(warehouse["name"])
            prefix = default_key_prefix(str(document.get("name")), first_name)
        if storage.get("bucket") is not None and prefix is not None:
            backend = find_backend(storage) or StorageBackend
            prefixes.append((index, backend.describe_container(storage), prefix.strip(" /")))
    for (first, bucket, prefix), (second, other_bucket, other) in combinations(prefixes, 2):
        # Two default prefixes overlap only if the checks of names refuse the warehouses.
        if bucket == other_bucket and not {first, second} <= with_default and prefixes_overlap(prefix, other):
            yield (
                ("warehouses", second, "key_prefix"),
                f"expected a prefix without overlap; `{other}` overlaps `{prefix}` of warehouses.{first}"
                f" in bucket `{bucket}`",
            )


def _find_texera_outside_s3(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield units of Texera with a warehouse that is not on S3: Texera has Iceberg's `S3FileIO` only."""
    outside = _list_warehouses_outside_s3(document)
    for index, unit in list_items(document, "computing_units"):
        if unit.get("runtime") != "texera":
            continue
        key = "warehouse" if unit.get("warehouse") is not None else "warehouses"
        selection = unit.get(key)
        names = list_names(document, "warehouses") if selection == "all" else as_list(selection) or [selection]
        if refused := [name for name in names if name in outside]:
            yield (
                ("computing_units", index, key),
                f"expected warehouses on S3, which Texera reads only; `{refused[0]}` is not on S3",
            )


def _find_standby_outside_s3(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield standbys of warehouses that are not on S3: their copies are made through the API of S3."""
    standbys = as_mapping(as_mapping(document.get("maintenance")).get("standby"))
    for name in _list_warehouses_outside_s3(document):
        if name in standbys:
            yield (
                ("maintenance", "standby", name),
                f"expected a warehouse on S3, which can be copied only; `{name}` is not",
            )


def _list_warehouses_outside_s3(document: Mapping[str, Any]) -> list[str]:
    return [
        str(warehouse.get("name"))
        for _, warehouse, storage in place_warehouses(document)
        if (backend := find_backend(storage)) and backend.service != "s3"
    ]


def _warehouses_of_data(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    warehouses = list_names(document, "warehouses")
    for index, grant in list_items(document, "grants"):
        warehouse = as_text(as_mapping(grant.get("on")).get("warehouse"))
        if warehouse is not None and warehouse not in warehouses:
            yield ("grants", index, "on", "warehouse"), no_such_warehouse(warehouse, warehouses)
    for index, item in list_items(document, "policies"):
        path = as_text(item.get("match"))
        warehouse = path.split(".")[0] if path else None
        if warehouse and "*" not in warehouse and warehouse not in warehouses:
            yield ("policies", index, "match"), no_such_warehouse(warehouse, warehouses)


def _standard_roles(document: Mapping[str, Any]) -> list[str]:
    if document.get("standard_roles") is False:
        return []
    return [f"{name}-{kind}" for name in list_names(document, "warehouses") for kind in get_args(RoleKind)]


def _find_spellings_of_roles(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    """Yield grants to roles whose names differ only in case, which Lakekeeper ignores."""
    # The standard roles are made only for units and jobs, and for members.
    makes_standard_roles = any(document.get(key) for key in ("computing_units", "maintenance", "role_members"))
    standard_roles = _standard_roles(document) if makes_standard_roles else []
    first_at = {role.casefold(): (role, "the list of standard roles") for role in standard_roles}
    for index, grant in list_items(document, "grants"):
        kind, _, role = str(grant.get("to")).partition(":")
        if kind != "role":
            continue
        earlier_role, earlier_path = first_at.setdefault(role.casefold(), (role, f"grants.{index}"))
        if earlier_role != role:
            yield (
                ("grants", index, "to"),
                f"expected one spelling of a role; {earlier_path} has `{earlier_role}`, and Lakekeeper ignores case",
            )


def _find_repeated_grants(document: Mapping[str, Any]) -> Iterator[SpecMistake]:
    earlier_grants: list[tuple[int, Mapping[str, Any]]] = []
    for index, item in list_items(document, "grants"):
        grant = {key: value for key, value in item.items() if key != "until"}
        earlier = next((at for at, other in earlier_grants if other == grant), None)
        if earlier is not None:
            yield ("grants", index), f"expected each grant once; grants.{earlier} is the same"
        earlier_grants.append((index, grant))
