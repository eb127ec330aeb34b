"""Requests that create a view or change it to its declaration, and the declaration that metadata shows.

Pure functions. Formats: Iceberg view specification, version 1, and the REST catalog's `ViewUpdate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from lakewright.lakekeeper.api.catalog.namespaces import is_same
from lakewright.lakekeeper.api.catalog.views import ViewMetadata
from lakewright.lakekeeper.table.observed import observe_columns
from lakewright.lakekeeper.table.schema.columns import Column, Json
from lakewright.lakekeeper.table.schema.iceberg_json import field_json
from lakewright.lakekeeper.view.args import ViewArgs

MAY_LOSE_DIALECTS = "replace.drop-dialect.allowed"
"""Property that lets a new version have fewer dialects than the version before."""

_LAST_ADDED = -1
"""Id in an update of the object that the same commit added."""
_SUMMARY = {"engine-name": "lakewright"}


def create_request(new: ViewArgs, now_ms: int) -> Json:
    """Return the request body that creates a view.

    Args:
        new: The declaration.
        now_ms: Milliseconds since 1970, the time of the version.
    """
    return {
        "name": new.name,
        "schema": _build_schema(new.columns),
        "view-version": _build_version(new, 1, 0, now_ms),
        "properties": dict(new.properties),
    }


def commit_requests(metadata: ViewMetadata, old: ViewArgs | None, new: ViewArgs, now_ms: int) -> list[Json]:
    """Return the bodies of the commits that change a view to a declaration; empty if nothing changes.

    A second commit follows where the first needs a property for losing a dialect.

    Args:
        metadata: The view.
        old: The declaration before, whose properties the stack may remove; None for a view that is adopted.
        new: The declaration.
        now_ms: Milliseconds since 1970, the time of a new version.
    """
    live = observe_view(metadata, new)
    version_updates = _list_version_updates(metadata, live, new, now_ms)
    live_properties: dict[str, str] = metadata.get("properties") or {}
    changed = {key: value for key, value in new.properties.items() if live_properties.get(key) != value}
    removed = [key for key in (old.properties if old else {}) if key not in new.properties and key in live_properties]
    loses_dialects = bool(version_updates) and bool(live.sql.keys() - new.sql.keys())
    if not loses_dialects or live_properties.get(MAY_LOSE_DIALECTS) == "true":
        return _bodies(metadata, [*_list_property_updates(changed, removed), *version_updates])
    updates = [*_list_property_updates(changed | {MAY_LOSE_DIALECTS: "true"}, removed), *version_updates]
    declared_value = new.properties.get(MAY_LOSE_DIALECTS, live_properties.get(MAY_LOSE_DIALECTS))
    restored = {} if declared_value is None else {MAY_LOSE_DIALECTS: declared_value}
    last = _list_property_updates(restored, [] if restored else [MAY_LOSE_DIALECTS])
    return [*_bodies(metadata, updates), *_bodies(metadata, last)]


def observe_view(metadata: Mapping[str, Any], args: ViewArgs) -> ViewArgs:
    """Return the declared properties as found on the server. A view without a default namespace has an empty name.

    The server ignores case in names of namespaces, so a default namespace keeps its declared spelling.
    """
    version = current_version(metadata)
    live_properties: dict[str, str] = metadata.get("properties") or {}
    columns = observe_columns(current_schema(metadata), args.columns, keep=False)
    default_namespace = ".".join(version["default-namespace"])
    declared_name = args.namespace if args.default_namespace is None else args.default_namespace
    is_as_declared = default_namespace.casefold() == declared_name.casefold()
    properties = {
        "columns": [column.model_dump(exclude_none=True) for column in columns],
        "sql": read_sql(version),
        "default_catalog": version.get("default-catalog"),
        "default_namespace": args.default_namespace if is_as_declared else default_namespace,
        "properties": {key: value for key, value in live_properties.items() if key in args.properties},
    }
    return ViewArgs.from_state({**args.props(), **properties})


def current_version(metadata: Mapping[str, Any]) -> Json:
    """Return the current version of a view."""
    versions: list[Json] = metadata["versions"]
    return next(version for version in versions if version["version-id"] == metadata["current-version-id"])


def current_schema(metadata: Mapping[str, Any]) -> Json:
    """Return the schema of the current version of a view."""
    schema_id = current_version(metadata)["schema-id"]
    return next(schema for schema in metadata["schemas"] if schema["schema-id"] == schema_id)


def read_sql(version: Json) -> dict[str, str]:
    """Return the queries of a version by dialect."""
    representations: list[Json] = version["representations"]
    return {entry["dialect"]: entry["sql"].strip() for entry in representations if entry["type"] == "sql"}


def _list_version_updates(metadata: ViewMetadata, live: ViewArgs, new: ViewArgs, now_ms: int) -> list[Json]:
    """Return the updates that make a version as declared current; empty if the current version is as declared.

    An earlier version that is as declared becomes current again. Lakekeeper 0.13.3 responds 503 if it is added again.
    """
    version = current_version(metadata)
    if _is_as_declared(metadata, version, new):
        return []
    for earlier_version in metadata["versions"]:
        if _is_as_declared(metadata, earlier_version, new):
            return [{"action": "set-current-view-version", "view-version-id": earlier_version["version-id"]}]
    number = max(int(entry["version-id"]) for entry in metadata["versions"]) + 1
    has_columns = live.columns == new.columns
    schema_id = version["schema-id"] if has_columns else _LAST_ADDED
    schema_updates = [] if has_columns else [{"action": "add-schema", "schema": _build_schema(new.columns)}]
    return [
        *schema_updates,
        {"action": "add-view-version", "view-version": _build_version(new, number, schema_id, now_ms)},
        {"action": "set-current-view-version", "view-version-id": _LAST_ADDED},
    ]


def _is_as_declared(metadata: ViewMetadata, version: Json, new: ViewArgs) -> bool:
    """Return whether a version of a view has the declared columns, queries and defaults."""
    live = observe_view({**metadata, "current-version-id": version["version-id"]}, new)
    has_defaults = live.default_catalog == new.default_catalog and (
        is_same(tuple(version["default-namespace"]), new.default_path)
    )
    return has_defaults and live.columns == new.columns and live.sql == new.sql


def _list_property_updates(changed: dict[str, str], removed: list[str]) -> list[Json]:
    updates: list[Json] = [{"action": "set-properties", "updates": changed}] if changed else []
    return [*updates, {"action": "remove-properties", "removals": removed}] if removed else updates


def _bodies(metadata: ViewMetadata, updates: list[Json]) -> list[Json]:
    requirement = {"type": "assert-view-uuid", "uuid": metadata["view-uuid"]}
    return [{"requirements": [requirement], "updates": updates}] if updates else []


def _build_version(new: ViewArgs, number: int, schema_id: int, now_ms: int) -> Json:
    version: Json = {
        "version-id": number,
        "schema-id": schema_id,
        "timestamp-ms": now_ms,
        "summary": _SUMMARY,
        "representations": [{"type": "sql", "dialect": dialect, "sql": text} for dialect, text in new.sql.items()],
        "default-namespace": list(new.default_path),
    }
    return version | ({"default-catalog": new.default_catalog} if new.default_catalog else {})


def _build_schema(columns: Iterable[Column]) -> Json:
    numbers = count(1)
    fields = [field_json(column, lambda: next(numbers)) for column in columns]
    return {"type": "struct", "schema-id": 0, "fields": fields}
