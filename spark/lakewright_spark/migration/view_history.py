"""The history of a view as a set of versions, and the requests that give another view the same history.

Pure functions. Formats: Iceberg's view specification, version 1, and the REST catalog's `ViewUpdate`. A REST catalog
chooses the IDs of versions and the time of the first version, and refuses later versions with an earlier time.
Lakekeeper returns versions and their log in any order: the IDs have the order, since each new version gets the highest
ID.
"""

from __future__ import annotations

import json
from typing import Any

from lakewright_spark.migration.copy import LOCATION_PROPERTIES
from lakewright_spark.migration.fence import FENCE, FINISHED

Json = dict[str, Any]

MAY_LOSE_DIALECTS = "replace.drop-dialect.allowed"
"""Property that lets a new version have fewer dialects than the version before."""
HISTORY_LIMIT = "version.history.num-entries"
"""Property with the number of versions that a catalog keeps of a view."""
_DEFAULT_LIMIT = 10
_NOT_COPIED = (*LOCATION_PROPERTIES, FENCE, FINISHED)
_LAST_ADDED = -1
"""ID in an update of the object that the same commit added."""


def describe_view(metadata: Json) -> Json:
    """Return what a migration keeps of a view: properties, the set of versions, and the current version.

    >>> version = {"version-id": 7, "schema-id": 3, "timestamp-ms": 1, "representations": [], "default-namespace": []}
    >>> view = {
    ...     "versions": [version],
    ...     "schemas": [{"type": "struct", "schema-id": 3, "fields": []}],
    ...     "current-version-id": 7,
    ... }
    >>> describe_view(view)["current version"]
    {'default-namespace': [], 'representations': [], 'schema': {'fields': [], 'type': 'struct'}}
    """
    contents = [_describe_version(metadata, version) for version in metadata["versions"]]
    return {
        "properties": _list_properties(metadata),
        "versions": sorted({json.dumps(content): content for content in contents}.values(), key=json.dumps),
        "current version": _describe_version(metadata, _find_current(metadata)),
    }


def limit_history(metadata: Json) -> Json:
    """Return a view without the earliest versions that another catalog would delete at once."""
    text = _list_properties(metadata).get(HISTORY_LIMIT, "")
    limit = max(1, int(text)) if text.isdigit() else _DEFAULT_LIMIT
    current = _find_current(metadata)
    other_versions = [version for version in _sort_versions(metadata) if version is not current]
    return {**metadata, "versions": [*other_versions[max(0, len(other_versions) - limit + 1) :], current]}


def list_missing_versions(metadata: Json, copy: Json) -> list[Json]:
    """Return the versions of a view that another view lacks, the earliest first."""
    existing = [_describe_version(copy, version) for version in copy["versions"]]
    return [version for version in _sort_versions(metadata) if _describe_version(metadata, version) not in existing]


def has_history(metadata: Json, other: Json) -> bool:
    """Return whether a view has the versions, the current version and the properties of another view."""
    updates = [*copy_current_version(other, metadata), *copy_properties(other, metadata)]
    return not (updates or list_missing_versions(other, metadata))


def build_creation(metadata: Json, name: str) -> Json:
    """Return the body of the request that creates a view with the first version of another view's history."""
    first = _sort_versions(metadata)[0]
    return {
        "name": name,
        "schema": {**_find_schema(metadata, first), "schema-id": 0},
        "view-version": {**first, "version-id": 1, "schema-id": 0},
        "properties": {**_list_properties(metadata), MAY_LOSE_DIALECTS: "true"},
    }


def build_commit(copy: Json, updates: list[Json]) -> Json:
    """Return the body of a commit to a view."""
    return {"requirements": [{"type": "assert-view-uuid", "uuid": copy["view-uuid"]}], "updates": updates}


def allow_lost_dialects(copy: Json) -> list[Json]:
    """Return the updates after which each version of another view's history can follow."""
    return _build_property_updates(copy, {**_list_properties(copy), MAY_LOSE_DIALECTS: "true"})


def add_version(metadata: Json, copy: Json, version: Json) -> list[Json]:
    """Return the updates that add a version of a view to another view, and make it current."""
    schema = _find_schema(metadata, version)
    ids = [entry["schema-id"] for entry in copy["schemas"] if _drop_keys(entry, "schema-id") == schema]
    updates: list[Json] = [] if ids else [{"action": "add-schema", "schema": schema}]
    number = max(entry["version-id"] for entry in copy["versions"]) + 1
    added_version = {
        **version,
        "version-id": number,
        "schema-id": ids[0] if ids else _LAST_ADDED,
        "timestamp-ms": max(version["timestamp-ms"], find_last_time(copy)),
    }
    return [
        *updates,
        {"action": "add-view-version", "view-version": added_version},
        {"action": "set-current-view-version", "view-version-id": _LAST_ADDED},
    ]


def find_last_time(metadata: Json) -> int:
    """Return the time of the newest version (ms since 1970). Catalogs refuse a version that is a minute older."""
    log: list[Json] = metadata.get("version-log") or []
    return max(entry["timestamp-ms"] for entry in [*metadata["versions"], *log])


def copy_current_version(metadata: Json, copy: Json) -> list[Json]:
    """Return the updates after which another view has the current version of a view."""
    version = _find_current(metadata)
    content = _describe_version(metadata, version)
    if content == _describe_version(copy, _find_current(copy)):
        return []
    for existing in copy["versions"]:
        if _describe_version(copy, existing) == content:
            return [{"action": "set-current-view-version", "view-version-id": existing["version-id"]}]
    return add_version(metadata, copy, version)


def copy_properties(metadata: Json, copy: Json) -> list[Json]:
    """Return the updates after which another view has the properties of a view."""
    return _build_property_updates(copy, _list_properties(metadata))


def build_update(metadata: Json, copy: Json) -> list[Json] | None:
    """Return the updates of a single commit after which a view equals another view; None if a commit cannot do that."""
    updates: list[Json] = []
    result = copy
    for version in list_missing_versions(metadata, copy):
        *additions, _ = add_version(metadata, result, version)  # the last version becomes current, once
        updates += additions
        result = _add_objects(result, additions)
    current = _describe_version(metadata, _find_current(metadata))
    for version in result["versions"]:
        if _describe_version(result, version) == current:
            result = {**result, "current-version-id": version["version-id"]}
            break
    if result["current-version-id"] != copy["current-version-id"]:
        updates.append({"action": "set-current-view-version", "view-version-id": result["current-version-id"]})
    result = {**result, "properties": _list_properties(metadata)}
    if describe_view(limit_history(result)) != describe_view(limit_history(metadata)):
        return None
    is_loss_allowed = result["properties"].get(MAY_LOSE_DIALECTS, "").lower() == "true"
    if not is_loss_allowed and not _list_dialects(copy) <= _list_dialects(result):
        return None
    return [*updates, *copy_properties(metadata, copy)]


def _add_objects(view: Json, additions: list[Json]) -> Json:
    """Return a view after the updates of `add_version`."""
    schemas = list(view["schemas"])
    number = max(schema["schema-id"] for schema in schemas)
    for update in additions:
        if update["action"] == "add-schema":
            number += 1
            schemas.append({**update["schema"], "schema-id": number})
    version = additions[-1]["view-version"]
    schema_id = number if version["schema-id"] == _LAST_ADDED else version["schema-id"]
    return {**view, "schemas": schemas, "versions": [*view["versions"], {**version, "schema-id": schema_id}]}


def _list_dialects(metadata: Json) -> set[str]:
    return {entry["dialect"].lower() for entry in _find_current(metadata)["representations"] if "dialect" in entry}


def _build_property_updates(copy: Json, properties: dict[str, str]) -> list[Json]:
    current = _list_properties(copy)
    changes = {name: value for name, value in properties.items() if current.get(name) != value}
    removals = sorted(current.keys() - properties.keys())
    updates: list[Json] = [{"action": "set-properties", "updates": changes}] if changes else []
    return [*updates, {"action": "remove-properties", "removals": removals}] if removals else updates


def _list_properties(metadata: Json) -> dict[str, str]:
    properties: dict[str, str] = metadata.get("properties") or {}
    return {name: value for name, value in properties.items() if name not in _NOT_COPIED}


def _sort_versions(metadata: Json) -> list[Json]:
    return sorted(metadata["versions"], key=lambda version: version["version-id"])


def _find_current(metadata: Json) -> Json:
    return next(version for version in metadata["versions"] if version["version-id"] == metadata["current-version-id"])


def _describe_version(metadata: Json, version: Json) -> Json:
    content = _drop_keys(version, "version-id", "schema-id", "timestamp-ms")
    text = json.dumps({**content, "schema": _find_schema(metadata, version)}, sort_keys=True)
    return json.loads(text)


def _find_schema(metadata: Json, version: Json) -> Json:
    schema = next(schema for schema in metadata["schemas"] if schema["schema-id"] == version["schema-id"])
    return _drop_keys(schema, "schema-id")


def _drop_keys(document: Json, *keys: str) -> Json:
    return {key: value for key, value in document.items() if key not in keys}
