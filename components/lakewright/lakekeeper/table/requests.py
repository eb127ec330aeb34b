"""Requests that create a table, or change it to its declaration in a single commit. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.evolution import Evolution, evolve
from lakewright.lakekeeper.table.partition_rules import find_name_problems, find_spec_problems
from lakewright.lakekeeper.table.schema.columns import Json, ids_by_path, partition_fields, sort_fields
from lakewright.lakekeeper.table.schema.iceberg_json import field_json
from lakewright.lakekeeper.table.schema.layout import Partition, parse_partition, parse_sorting
from lakewright.lakekeeper.table.schema.properties import FIXED

_LAST_ADDED = -1
"""Id in an update of the object that the same commit added."""
_FIRST_PARTITION_ID = 1000
"""Id of the first partition field. Format version 1 numbers the fields of each spec from it, without gaps."""


@dataclass
class Commit:
    """One commit with its requirements and updates, or the reasons against it."""

    uuid: str
    requirements: list[Json] = field(default_factory=list[Json])
    updates: list[Json] = field(default_factory=list[Json])
    changes: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])

    @property
    def body(self) -> Json:
        """Body of the request."""
        always = {"type": "assert-table-uuid", "uuid": self.uuid}
        return {"requirements": [always, *self.requirements], "updates": self.updates}

    def require(self, kind: str, name: str, value: Any) -> None:
        """Add a requirement: the commit applies only if the table still has this value."""
        self.requirements.append({"type": kind, name: value})


def create_request(new: TableArgs) -> Json:
    """Return the request body that creates a table. The server assigns its own field ids."""
    numbers = count(1)
    schema: Json = {
        "type": "struct",
        "schema-id": 0,
        "fields": [field_json(column, lambda: next(numbers)) for column in new.columns],
    }
    by_path = ids_by_path(schema)
    if new.identifier:
        schema["identifier-field-ids"] = [by_path[path] for path in new.identifier]
    properties = dict(new.properties)
    if new.format_version is not None:
        properties["format-version"] = str(new.format_version)
    body: Json = {"name": new.name, "schema": schema, "properties": properties, "stage-create": False}
    if new.partition_by:
        fields = [_partition_json(parse_partition(text), by_path) for text in new.partition_by]
        body["partition-spec"] = {"spec-id": 0, "fields": fields}
    if new.sort_by:
        body["write-order"] = {"order-id": 1, "fields": _sort_fields(new, by_path)}
    return body | ({"location": new.location} if new.location else {})


def commit(metadata: Json, old: TableArgs | None, new: TableArgs, ids: dict[str, int]) -> Commit:
    """Return the commit that changes a table to a declaration. Takes the arguments of `evolve`."""
    table_commit = Commit(str(metadata["table-uuid"]))
    _format_version(table_commit, metadata, new)
    schema = evolve(metadata, old, new, ids)
    _schema(table_commit, metadata, schema)
    _change_partitions(table_commit, metadata, new, schema)
    _sort_order(table_commit, metadata, new, schema)
    location = str(metadata["location"]).rstrip("/")
    if old is not None and new.location not in {
        None,
        location,
    }:  # drift; a change of the declared location is a replacement
        table_commit.problems.append(
            f"location: the table is at {location}, not at the declared {new.location}, and the server cannot move a"
            " table. Remove `location` to keep the current location."
        )
    _properties(table_commit, cast(dict[str, str], metadata.get("properties") or {}), old, new)
    return table_commit


def _format_version(table_commit: Commit, metadata: Json, new: TableArgs) -> None:
    live_version = int(metadata["format-version"])
    declared_version = new.format_version or live_version
    if declared_version > live_version:
        table_commit.updates.append({"action": "upgrade-format-version", "format-version": declared_version})
        table_commit.changes.append(f"format_version: {live_version} -> {declared_version}")
    if declared_version < live_version:
        table_commit.problems.append(
            f"format_version: a table of version {live_version} cannot go back to {declared_version}. Declare"
            f" {live_version}."
        )


def _schema(table_commit: Commit, metadata: Json, schema: Evolution) -> None:
    table_commit.problems += schema.problems
    table_commit.problems += _sources_dropped(metadata, schema)
    table_commit.problems += find_name_problems(metadata, schema.schema)
    if not schema.changes:
        return
    table_commit.changes += schema.changes
    table_commit.require("assert-current-schema-id", "current-schema-id", metadata["current-schema-id"])
    table_commit.require("assert-last-assigned-field-id", "last-assigned-field-id", metadata["last-column-id"])
    number = max(int(earlier["schema-id"]) for earlier in metadata["schemas"]) + 1
    added = {**schema.schema, "schema-id": number}
    table_commit.updates.append({"action": "add-schema", "schema": added, "last-column-id": schema.last_id})
    table_commit.updates.append({"action": "set-current-schema", "schema-id": _LAST_ADDED})


def _sources_dropped(metadata: Json, schema: Evolution) -> Iterator[str]:
    for spec in cast(list[Json], metadata["partition-specs"]):
        for partition in cast(list[Json], spec["fields"]):
            if partition["transform"] != "void" and (path := schema.dropped.get(partition.get("source-id", 0))):
                yield (
                    f"column `{path}` cannot be dropped: partition spec {spec['spec-id']} of the table uses it to find"
                    " files. Keep it declared."
                )


def _change_partitions(table_commit: Commit, metadata: Json, new: TableArgs, schema: Evolution) -> None:
    specs = {spec["spec-id"]: cast(list[Json], spec["fields"]) for spec in metadata["partition-specs"]}
    live_fields = partition_fields(metadata)
    keeps_fields = max(int(metadata["format-version"]), new.format_version or 0) == 1
    by_path = ids_by_path(schema.schema)
    declared_partitions = [parse_partition(text) for text in new.partition_by]
    sources = [by_path.get(partition.column) for partition in declared_partitions]
    if None in sources:
        return  # `_schema` reports this problem
    matches = [
        next((live for live in live_fields if _matches(live, partition, source)), None)
        for partition, source in zip(declared_partitions, sources, strict=True)
    ]
    # If the server refuses the current spec, its removed fields are left out, which version 1 does not allow.
    is_refused = any(find_spec_problems(live_fields, schema.schema, schema.dropped))
    live = [current for current in live_fields if current["transform"] != "void" or current in matches or is_refused]
    if matches == live or (keeps_fields and None not in matches and len(matches) == len(live)):
        return
    earlier = [former for fields in specs.values() for former in fields]
    if keeps_fields:  # readers identify its fields by position, so none is removed
        numbers = count(_FIRST_PARTITION_ID + len(live_fields))
        fields = [current if current in matches else _void(current, by_path) for current in live_fields] + [
            {**_partition_json(partition, by_path), "field-id": next(numbers)}
            for have, partition in zip(matches, declared_partitions, strict=True)
            if have is None
        ]
    else:
        fields = [
            have
            or next((former for former in earlier if _matches(former, partition, source)), None)
            or _partition_json(partition, by_path)
            for have, partition, source in zip(matches, declared_partitions, sources, strict=True)
        ]
    if problems := list(find_spec_problems(fields, schema.schema, schema.dropped)):
        table_commit.problems += problems
        return
    table_commit.changes.append(f"partition_by: {', '.join(new.partition_by) or 'none'}")
    table_commit.require("assert-default-spec-id", "default-spec-id", metadata["default-spec-id"])
    table_commit.require(
        "assert-last-assigned-partition-id", "last-assigned-partition-id", metadata["last-partition-id"]
    )
    table_commit.updates.append({"action": "add-spec", "spec": {"spec-id": max(specs) + 1, "fields": fields}})
    table_commit.updates.append({"action": "set-default-spec", "spec-id": _LAST_ADDED})


def _matches(live_field: Json, partition: Partition, source: int | None) -> bool:
    has_name = partition.name is None or live_field["name"] == partition.name
    return has_name and (live_field.get("source-id"), live_field["transform"]) == (source, partition.transform)


def _void(live_field: Json, columns: Collection[str]) -> Json:
    if live_field["transform"] == "void" and live_field["name"] not in columns:
        return live_field
    return {**live_field, "transform": "void", "name": f"{live_field['name']}_{live_field['field-id']}"}


def _partition_json(partition: Partition, by_path: dict[str, int]) -> Json:
    return {
        "source-id": by_path[partition.column],
        "transform": partition.transform,
        "name": partition.field_name,
    }


def _sort_order(table_commit: Commit, metadata: Json, new: TableArgs, schema: Evolution) -> None:
    default = metadata["default-sort-order-id"]
    live_fields = sort_fields(metadata)
    by_path = ids_by_path(schema.schema)
    if any(parse_sorting(text).column not in by_path for text in new.sort_by):
        return
    fields = _sort_fields(new, by_path)
    if fields == [
        {key: current.get(key) for key in ("transform", "source-id", "direction", "null-order")}
        for current in live_fields
    ]:
        return
    table_commit.changes.append(f"sort_by: {', '.join(new.sort_by) or 'none'}")
    table_commit.require("assert-default-sort-order-id", "default-sort-order-id", default)
    number = max((int(order["order-id"]) for order in metadata["sort-orders"]), default=0) + 1 if fields else 0
    table_commit.updates.append({"action": "add-sort-order", "sort-order": {"order-id": number, "fields": fields}})
    table_commit.updates.append({"action": "set-default-sort-order", "sort-order-id": _LAST_ADDED})


def _sort_fields(new: TableArgs, by_path: dict[str, int]) -> list[Json]:
    return [
        {
            "transform": sorting.transform,
            "source-id": by_path[sorting.column],
            "direction": sorting.direction,
            "null-order": f"nulls-{sorting.nulls}",
        }
        for sorting in map(parse_sorting, new.sort_by)
    ]


def _properties(table_commit: Commit, live_properties: dict[str, str], old: TableArgs | None, new: TableArgs) -> None:
    table_commit.problems += [
        f"properties.{key}: cannot change from its current value {live_properties[key]!r}. Declare that value."
        for key in sorted(FIXED & live_properties.keys())
        if (key in new.properties and new.properties[key] != live_properties[key])
        or (old is not None and key in old.properties and key not in new.properties)
    ]
    updates = {key: value for key, value in new.properties.items() if live_properties.get(key) != value}
    removals = sorted((old.properties.keys() if old else set[str]()) - new.properties.keys() & live_properties.keys())
    removals = [key for key in removals if key in live_properties]
    if updates:
        table_commit.updates.append({"action": "set-properties", "updates": updates})
    if removals:
        table_commit.updates.append({"action": "remove-properties", "removals": removals})
    table_commit.changes += [f"properties.{key}" for key in [*updates, *removals]]
