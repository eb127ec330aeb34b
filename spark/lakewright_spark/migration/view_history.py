"""The history of a view as a list of states, and the requests that give another view the same history.

Pure functions. Formats: Iceberg's view specification, version 1, and the REST catalog's `ViewUpdate`. A REST catalog
chooses the IDs of versions and the time of the first version, and has no request for versions that were never current.
"""

from __future__ import annotations

from typing import Any

from lakewright_spark.migration.copy import LOCATION_PROPERTIES

Json = dict[str, Any]

MAY_LOSE_DIALECTS = "replace.drop-dialect.allowed"
"""Property that lets a new version have fewer dialects than the version before."""
_LAST_ADDED = -1
"""ID in an update of the object that the same commit added."""


def describe_view(metadata: Json) -> Json:
    """Return what a migration keeps of a view: properties, and each version in the order in which it became current.

    >>> version = {"version-id": 7, "schema-id": 3, "timestamp-ms": 1, "representations": [], "default-namespace": []}
    >>> describe_view(
    ...     {
    ...         "versions": [version],
    ...         "schemas": [{"type": "struct", "schema-id": 3, "fields": []}],
    ...         "version-log": [{"version-id": 7, "timestamp-ms": 1}],
    ...         "current-version-id": 7,
    ...     }
    ... )["states"]
    [{'default-namespace': [], 'representations': [], 'schema': {'type': 'struct', 'fields': []}}]
    """
    schemas = {schema["schema-id"]: _drop_keys(schema, "schema-id") for schema in metadata["schemas"]}
    contents = {
        version["version-id"]: {
            **_drop_keys(version, "version-id", "schema-id", "timestamp-ms"),
            "schema": schemas[version["schema-id"]],
        }
        for version in metadata["versions"]
    }
    return {
        "properties": _list_properties(metadata),
        "states": [dict(sorted(contents[number].items())) for number in list_current_versions(metadata)],
    }


def list_current_versions(metadata: Json) -> list[int]:
    """Return the IDs of the existing versions in the order in which they became current, the current version last."""
    existing = {version["version-id"] for version in metadata["versions"]}
    numbers: list[int] = []
    for entry in [*metadata["version-log"], {"version-id": metadata["current-version-id"]}]:
        if entry["version-id"] in existing and numbers[-1:] != [entry["version-id"]]:
            numbers.append(entry["version-id"])
    return numbers


def build_creation(metadata: Json, name: str) -> Json:
    """Return the body of the request that creates a view with the first version of another view's history."""
    first = _find_version(metadata, list_current_versions(metadata)[0])
    return {
        "name": name,
        "schema": {**_find_schema(metadata, first), "schema-id": 0},
        "view-version": {**first, "version-id": 1, "schema-id": 0},
        "properties": {**_list_properties(metadata), MAY_LOSE_DIALECTS: "true"},
    }


def build_commits(metadata: Json, uuid: str) -> list[Json]:
    """Return the bodies of the commits that follow `build_creation`: one for each later state, and the last properties.

    Args:
        metadata: The view whose history is repeated.
        uuid: UUID of the created view.
    """
    first, *later = list_current_versions(metadata)
    ids = {first: 1}
    """By the ID of a version: its ID in the created view."""
    schemas = [_find_schema(metadata, _find_version(metadata, first))]
    commits: list[list[Json]] = []
    for number in later:
        if number in ids:
            commits.append([{"action": "set-current-view-version", "view-version-id": ids[number]}])
            continue
        version = _find_version(metadata, number)
        schema = _find_schema(metadata, version)
        ids[number] = len(ids) + 1
        updates: list[Json] = [] if schema in schemas else [{"action": "add-schema", "schema": schema}]
        schema_id = schemas.index(schema) if schema in schemas else _LAST_ADDED
        schemas += [schema] if schema_id == _LAST_ADDED else []
        added = {**version, "version-id": ids[number], "schema-id": schema_id}
        updates.append({"action": "add-view-version", "view-version": added})
        commits.append([*updates, {"action": "set-current-view-version", "view-version-id": _LAST_ADDED}])
    value = metadata.get("properties", {}).get(MAY_LOSE_DIALECTS)
    if value is None:
        commits.append([{"action": "remove-properties", "removals": [MAY_LOSE_DIALECTS]}])
    elif value != "true":
        commits.append([{"action": "set-properties", "updates": {MAY_LOSE_DIALECTS: value}}])
    requirement = {"type": "assert-view-uuid", "uuid": uuid}
    return [{"requirements": [requirement], "updates": updates} for updates in commits]


def _list_properties(metadata: Json) -> dict[str, str]:
    properties: dict[str, str] = metadata.get("properties") or {}
    return {name: value for name, value in properties.items() if name not in LOCATION_PROPERTIES}


def _find_version(metadata: Json, number: int) -> Json:
    return next(version for version in metadata["versions"] if version["version-id"] == number)


def _find_schema(metadata: Json, version: Json) -> Json:
    schema = next(schema for schema in metadata["schemas"] if schema["schema-id"] == version["schema-id"])
    return _drop_keys(schema, "schema-id")


def _drop_keys(document: Json, *keys: str) -> Json:
    return {key: value for key, value in document.items() if key not in keys}
