"""What is sent to make a table, or to lead one to its declaration in a single commit. Pure functions."""

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
"""In an update, an id that stands for what the same commit added."""


@dataclass
class Commit:
    """One commit: what it assumes and what it changes; or why it must not be."""

    uuid: str
    requirements: list[Json] = field(default_factory=list[Json])
    updates: list[Json] = field(default_factory=list[Json])
    changes: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])

    @property
    def body(self) -> Json:
        """As it is sent."""
        always = {"type": "assert-table-uuid", "uuid": self.uuid}
        return {"requirements": [always, *self.requirements], "updates": self.updates}

    def require(self, kind: str, name: str, value: Any) -> None:
        """The commit holds only while the table still has this value."""
        self.requirements.append({"type": kind, name: value})


def create_request(new: TableArgs) -> Json:
    """A declaration as it is sent to create. The server gives the fields ids of its own."""
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
    """What leads a table, as its metadata has it, to a declaration; arguments as those of `evolve`."""
    made = Commit(str(metadata["table-uuid"]))
    _format_version(made, metadata, new)
    schema = evolve(metadata, old, new, ids)
    _schema(made, metadata, schema)
    _partitioning(made, metadata, new, schema)
    _sort_order(made, metadata, new, schema)
    location = str(metadata["location"]).rstrip("/")
    if old is not None and new.location not in {None, location}:  # drift; another declared location is a replacement
        made.problems.append(
            f"location: the table lies at {location}, declared is {new.location}, and the server never moves a table."
            " Leave `location` out to keep it where it is."
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
        made.problems.append(
            f"format_version: a table of version {there} never goes back to {wanted}. Declare {there}."
        )


def _schema(made: Commit, metadata: Json, schema: Evolution) -> None:
    made.problems += schema.problems
    made.problems += _sources_dropped(metadata, schema)
    if not schema.changes:
        return
    made.changes += schema.changes
    made.require("assert-current-schema-id", "current-schema-id", metadata["current-schema-id"])
    made.require("assert-last-assigned-field-id", "last-assigned-field-id", metadata["last-column-id"])
    number = max(int(one["schema-id"]) for one in metadata["schemas"]) + 1
    added = {**schema.schema, "schema-id": number}
    made.updates.append({"action": "add-schema", "schema": added, "last-column-id": schema.last_id})
    made.updates.append({"action": "set-current-schema", "schema-id": _LAST_ADDED})


def _sources_dropped(metadata: Json, schema: Evolution) -> Iterator[str]:
    for spec in cast(list[Json], metadata["partition-specs"]):
        for one in cast(list[Json], spec["fields"]):
            if one["transform"] != "void" and (path := schema.dropped.get(one.get("source-id", 0))):
                yield (
                    f"column `{path}` cannot be dropped: partition spec {spec['spec-id']} of the table divides files by"
                    " it, and those files are found by it. Keep it declared."
                )


def _partitioning(made: Commit, metadata: Json, new: TableArgs, schema: Evolution) -> None:
    specs = {one["spec-id"]: cast(list[Json], one["fields"]) for one in metadata["partition-specs"]}
    there = partition_fields(metadata)
    by_path = ids_by_path(schema.schema)
    wanted = [parse_partition(text) for text in new.partition_by]
    sources = [by_path.get(one.column) for one in wanted]
    if None in sources:
        return  # a problem of the schema, told there
    kept = [
        next((one for one in there if _is(one, partition, source)), None)
        for partition, source in zip(wanted, sources, strict=True)
    ]
    live = [one for one in there if one["transform"] != "void" or one in kept]
    if kept == live or (metadata["format-version"] == 1 and None not in kept and len(kept) == len(live)):
        return
    earlier = [one for fields in specs.values() for one in fields]
    fields = [
        have
        or next((one for one in earlier if _is(one, partition, source)), None)
        or _partition_json(partition, by_path)
        for have, partition, source in zip(kept, wanted, sources, strict=True)
    ]
    if metadata["format-version"] == 1:  # its fields are known by their places, so none is ever taken out
        fields = [one if one in kept else _voided(one) for one in there] + [one for one in fields if one not in there]
    made.changes.append(f"partition_by: {', '.join(new.partition_by) or 'none'}")
    made.require("assert-default-spec-id", "default-spec-id", metadata["default-spec-id"])
    made.require("assert-last-assigned-partition-id", "last-assigned-partition-id", metadata["last-partition-id"])
    made.updates.append({"action": "add-spec", "spec": {"spec-id": max(specs) + 1, "fields": fields}})
    made.updates.append({"action": "set-default-spec", "spec-id": _LAST_ADDED})


def _is(there: Json, wanted: Partition, source: int | None) -> bool:
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
        {key: one.get(key) for key in ("transform", "source-id", "direction", "null-order")} for one in there
    ]:
        return
    made.changes.append(f"sort_by: {', '.join(new.sort_by) or 'none'}")
    made.require("assert-default-sort-order-id", "default-sort-order-id", default)
    number = max((int(one["order-id"]) for one in metadata["sort-orders"]), default=0) + 1 if fields else 0
    made.updates.append({"action": "add-sort-order", "sort-order": {"order-id": number, "fields": fields}})
    made.updates.append({"action": "set-default-sort-order", "sort-order-id": _LAST_ADDED})


def _sort_fields(new: TableArgs, by_path: dict[str, int]) -> list[Json]:
    return [
        {
            "transform": one.transform,
            "source-id": by_path[one.column],
            "direction": one.direction,
            "null-order": f"nulls-{one.nulls}",
        }
        for one in map(parse_sorting, new.sort_by)
    ]


def _properties(made: Commit, there: dict[str, str], old: TableArgs | None, new: TableArgs) -> None:
    made.problems += [
        f"properties.{key}: never changes once a table has it, here {there[key]!r}. Declare that."
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
