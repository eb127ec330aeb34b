"""Requests that create a table, or change it to its declaration in a single commit. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.evolution import Evolution, evolve
from lakewright.lakekeeper.table.schema.columns import Json, ids_by_path, partition_fields, sort_fields
from lakewright.lakekeeper.table.schema.iceberg_json import field_json
from lakewright.lakekeeper.table.schema.layout import Partition, parse_partition, parse_sorting
from lakewright.lakekeeper.table.schema.properties import FIXED

_LAST_ADDED = -1
"""Id in an update of the object that the same commit added."""


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
    """Return the commit that changes a table to a declaration. The arguments are those of `evolve`."""
    made = Commit(str(metadata["table-uuid"]))
    _format_version(made, metadata, new)
    schema = evolve(metadata, old, new, ids)
    _schema(made, metadata, schema)
    _partitioning(made, metadata, new, schema)
    _sort_order(made, metadata, new, schema)
    location = str(metadata["location"]).rstrip("/")
    if old is not None and new.location not in {
        None,
        location,
    }:  # drift; a change of the declared location is a replacement
        made.problems.append(
            f"location: the table is at {location}, not at the declared {new.location}, and the server cannot move a"
            " table. Remove `location` to keep the current one."
        )
    _properties(made, cast(dict[str, str], metadata.get("properties") or {}), old, new)
    return made


def _format_version(made: Commit, metadata: Json, new: TableArgs) -> None:
    there = int(metadata["format-version"])
    wanted = new.format_version or there
    if wanted > there:
        made.updates.append({"action": "upgrade-format-version", "format-version": wanted})
        made.changes.append(f"format_version: {there} -> {wanted}")
    if wanted < there:
        made.problems.append(f"format_version: a table of version {there} cannot go back to {wanted}. Declare {there}.")


def _schema(made: Commit, metadata: Json, schema: Evolution) -> None:
    made.problems += schema.problems
    made.problems += _sources_dropped(metadata, schema)
    if not schema.changes:
        return
    made.changes += schema.changes
    made.require("assert-current-schema-id", "current-schema-id", metadata["current-schema-id"])
    made.require("assert-last-assigned-field-id", "last-assigned-field-id", metadata["last-column-id"])
    number = max(int(earlier["schema-id"]) for earlier in metadata["schemas"]) + 1
    added = {**schema.schema, "schema-id": number}
    made.updates.append({"action": "add-schema", "schema": added, "last-column-id": schema.last_id})
    made.updates.append({"action": "set-current-schema", "schema-id": _LAST_ADDED})


def _sources_dropped(metadata: Json, schema: Evolution) -> Iterator[str]:
    for spec in cast(list[Json], metadata["partition-specs"]):
        for partition in cast(list[Json], spec["fields"]):
            if partition["transform"] != "void" and (path := schema.dropped.get(partition.get("source-id", 0))):
                yield (
                    f"column `{path}` cannot be dropped: partition spec {spec['spec-id']} of the table uses it to find"
                    " files. Keep it declared."
                )


def _partitioning(made: Commit, metadata: Json, new: TableArgs, schema: Evolution) -> None:
    specs = {spec["spec-id"]: cast(list[Json], spec["fields"]) for spec in metadata["partition-specs"]}
    there = partition_fields(metadata)
    by_path = ids_by_path(schema.schema)
    wanted = [parse_partition(text) for text in new.partition_by]
    sources = [by_path.get(partition.column) for partition in wanted]
    if None in sources:
        return  # `_schema` reports this problem
    kept = [
        next((live for live in there if _matches(live, partition, source)), None)
        for partition, source in zip(wanted, sources, strict=True)
    ]
    live = [current for current in there if current["transform"] != "void" or current in kept]
    if kept == live or (metadata["format-version"] == 1 and None not in kept and len(kept) == len(live)):
        return
    earlier = [former for fields in specs.values() for former in fields]
    fields = [
        have
        or next((former for former in earlier if _matches(former, partition, source)), None)
        or _partition_json(partition, by_path)
        for have, partition, source in zip(kept, wanted, sources, strict=True)
    ]
    if metadata["format-version"] == 1:  # readers identify its fields by position, so none is removed
        fields = [current if current in kept else _voided(current) for current in there] + [
            added for added in fields if added not in there
        ]
    made.changes.append(f"partition_by: {', '.join(new.partition_by) or 'none'}")
    made.require("assert-default-spec-id", "default-spec-id", metadata["default-spec-id"])
    made.require("assert-last-assigned-partition-id", "last-assigned-partition-id", metadata["last-partition-id"])
    made.updates.append({"action": "add-spec", "spec": {"spec-id": max(specs) + 1, "fields": fields}})
    made.updates.append({"action": "set-default-spec", "spec-id": _LAST_ADDED})


def _matches(there: Json, wanted: Partition, source: int | None) -> bool:
    named = wanted.name is None or there["name"] == wanted.name
    return named and (there.get("source-id"), there["transform"]) == (source, wanted.transform)


def _voided(there: Json) -> Json:
    if there["transform"] == "void":
        return there
    return {**there, "transform": "void", "name": f"{there['name']}_{there['field-id']}"}


def _partition_json(partition: Partition, by_path: dict[str, int]) -> Json:
    return {
        "source-id": by_path[partition.column],
        "transform": partition.transform,
        "name": partition.field_name,
    }


def _sort_order(made: Commit, metadata: Json, new: TableArgs, schema: Evolution) -> None:
    default = metadata["default-sort-order-id"]
    there = sort_fields(metadata)
    by_path = ids_by_path(schema.schema)
    if any(parse_sorting(text).column not in by_path for text in new.sort_by):
        return
    fields = _sort_fields(new, by_path)
    if fields == [
        {key: current.get(key) for key in ("transform", "source-id", "direction", "null-order")} for current in there
    ]:
        return
    made.changes.append(f"sort_by: {', '.join(new.sort_by) or 'none'}")
    made.require("assert-default-sort-order-id", "default-sort-order-id", default)
    number = max((int(order["order-id"]) for order in metadata["sort-orders"]), default=0) + 1 if fields else 0
    made.updates.append({"action": "add-sort-order", "sort-order": {"order-id": number, "fields": fields}})
    made.updates.append({"action": "set-default-sort-order", "sort-order-id": _LAST_ADDED})


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


def _properties(made: Commit, there: dict[str, str], old: TableArgs | None, new: TableArgs) -> None:
    made.problems += [
        f"properties.{key}: cannot change from its current value {there[key]!r}. Declare that value."
        for key in sorted(FIXED & there.keys())
        if (key in new.properties and new.properties[key] != there[key])
        or (old is not None and key in old.properties and key not in new.properties)
    ]
    updates = {key: value for key, value in new.properties.items() if there.get(key) != value}
    removals = sorted((old.properties.keys() if old else set[str]()) - new.properties.keys() & there.keys())
    removals = [key for key in removals if key in there]
    if updates:
        made.updates.append({"action": "set-properties", "updates": updates})
    if removals:
        made.updates.append({"action": "remove-properties", "removals": removals})
    made.changes += [f"properties.{key}" for key in [*updates, *removals]]
