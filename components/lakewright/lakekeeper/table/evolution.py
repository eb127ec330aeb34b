"""Schema evolution: in-place changes of a table's schema to the declared schema, and refused changes. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.schema.columns import (
    Column,
    Json,
    ListType,
    MapType,
    StructType,
    current_schema,
    ids_by_path,
    paths,
    same_type,
    type_text,
)
from lakewright.lakekeeper.table.schema.iceberg_json import field_json, single_value
from lakewright.lakekeeper.table.schema.layout import quote_names

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WIDENS = {("int", "long"), ("float", "double")}


@dataclass
class Evolution:
    """A new schema in Iceberg's JSON, with the changes that lead to it."""

    schema: Json
    last_id: int
    """Highest id that any field of the table has or had."""
    changes: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    """Reasons against the commit. Each names its column and the solution."""
    dropped: dict[int, str] = field(default_factory=dict[int, str])
    """Paths of the dropped fields, by id."""


def evolve(metadata: Json, old: TableArgs | None, new: TableArgs, ids: dict[str, int]) -> Evolution:
    """Compute the changes from the current schema of a table to a declaration.

    Args:
        metadata: Metadata of the table.
        old: Declaration in the state; None for a table that is taken over.
        new: The declaration.
        ids: Field ids by path, as recorded in the state. They identify columns that were renamed or dropped outside
            the stack.
    """
    current = current_schema(metadata)
    evolution = Evolution(current, int(metadata["last-column-id"]))
    old_paths = None if old is None else {path for path, _, _ in paths(old.columns)}
    work = _Work(metadata, evolution, new, ids, old_paths, _docs_and_defaults(old))
    fields = work.evolve_struct(current["fields"], new.columns, "")
    evolution.schema = {"type": "struct", "fields": fields}
    _identify(current, evolution, new)
    return evolution


def _docs_and_defaults(old: TableArgs | None) -> dict[str, Column]:
    return {path: column for path, column, _ in paths(old.columns) if column} if old else {}


def _identify(current: Json, evolution: Evolution, new: TableArgs) -> None:
    by_path = ids_by_path(evolution.schema)
    declared_ids = sorted(by_path[path] for path in new.identifier if path in by_path)
    live_ids = sorted(cast(list[int], current.get("identifier-field-ids") or []))
    if declared_ids:
        evolution.schema["identifier-field-ids"] = declared_ids
    if declared_ids == live_ids:
        return
    if live_ids and declared_ids and not set(live_ids) <= set(declared_ids):
        names = {number: path for path, number in ids_by_path(current).items()}
        evolution.problems.append(
            f"identifier: {quote_names([names[number] for number in live_ids])} identify a row;"
            f" {quote_names(new.identifier)} alone may not be unique. Add columns to the identifier, or remove it"
            " first."
        )
    evolution.changes.append(f"identifier: {', '.join(new.identifier) or 'none'}")


@dataclass
class _Work:
    metadata: Json
    evolution: Evolution
    new: TableArgs
    ids: dict[str, int]
    old_paths: set[str] | None
    before: dict[str, Column]

    def evolve_struct(self, live: list[Json], columns: list[Column], path: str) -> list[Json]:
        """Return the fields of a struct in the declared order. Undeclared fields keep their position."""
        matched = self._match_fields(live, columns, path)
        fields: list[Json] = []
        for column in columns:
            inner = _below(path, column.name)
            live_field = matched.get(column.name)
            fields.append(
                self._evolve_field(live_field, column, inner) if live_field else self._add_field(column, inner)
            )
        claimed = {int(field["id"]) for field in matched.values()}
        for index, undeclared in enumerate(live):
            name = str(undeclared["name"])
            if int(undeclared["id"]) not in claimed and self._is_kept(undeclared, _below(path, name), columns):
                before = int(live[index - 1]["id"]) if index else None
                position = next(
                    (at + 1 for at, added_field in enumerate(fields) if added_field["id"] == before),
                    0 if not index else None,
                )
                fields.insert(len(fields) if position is None else position, undeclared)
        kept_ids = [
            int(field["id"]) for field in live if any(added_field["id"] == field["id"] for added_field in fields)
        ]
        if [int(field["id"]) for field in fields if field["id"] in kept_ids] != kept_ids:
            self.evolution.changes.append(f"{path or 'columns'}: in another order")
        return fields

    def _match_fields(self, live: list[Json], columns: list[Column], path: str) -> dict[str, Json]:
        """Return the field of each declared column, matched by name, former name or id."""
        by_name = {str(field["name"]): field for field in live}
        names = {column.name for column in columns}
        matched = {column.name: by_name[column.name] for column in columns if column.name in by_name}
        for column in columns:
            if column.name in matched:
                continue
            former = column.renamed_from
            match = by_name.get(former) if former and former not in names else None
            number = self.ids.get(_below(path, column.name))
            match = match or next(
                (field for field in live if field["id"] == number and field["name"] not in names), None
            )
            if match and all(field["id"] != match["id"] for field in matched.values()):
                matched[column.name] = match
                self.evolution.changes.append(f"{_below(path, str(match['name']))}: renamed to {column.name}")
            elif number is not None and not match and (earlier := self._earlier(number, column)):
                matched[column.name] = earlier
                self.evolution.changes.append(f"{_below(path, column.name)}: restored, with its data")
        return matched

    def _earlier(self, number: int, column: Column) -> Json | None:
        """Return a field that a job dropped, from an earlier schema. With its old id, its data is readable again."""
        if number in ids_by_path(current_schema(self.metadata)).values():
            return None
        for schema in reversed(cast(list[Json], self.metadata["schemas"])):
            for earlier in cast(list[Json], schema["fields"]):
                if earlier["id"] == number and same_type(earlier["type"], column.type):
                    # Rows written since then have no value for it.
                    return {**earlier, "name": column.name, "required": False}
        return None

    def _is_kept(self, live: Json, path: str, columns: list[Column]) -> bool:
        """Return whether an undeclared field is kept."""
        if path in self.new.dropped_columns:
            self.evolution.changes.append(f"{path}: dropped")
            dropped_ids = ids_by_path({"fields": [live]}).values()
            self.evolution.dropped |= dict.fromkeys(dropped_ids, path)
            return False
        if self.new.undeclared_columns == "refuse" and (self.old_paths is None or path in self.old_paths):
            self.evolution.problems.append(self._describe_undeclared(live, path, columns))
        return True

    def _describe_undeclared(self, live: Json, path: str, columns: list[Column]) -> str:
        live_ids = ids_by_path(current_schema(self.metadata))
        above = path.rpartition(".")[0]
        fresh = [c.name for c in columns if _below(above, c.name) not in live_ids and same_type(live["type"], c.type)]
        hint = f", or set `renamed_from: {live['name']}` on `{fresh[0]}` if it is the same column" if fresh else ""
        return (
            f"column `{path}` is in the table and not declared, so it would be dropped. Declare it, name it in"
            f" `dropped_columns` to drop it, or set `undeclared_columns` to `keep`{hint}."
        )

    def _evolve_field(self, live: Json, column: Column, path: str) -> Json:
        field = {**live, "name": column.name}
        field["type"] = self.evolve_type(live["type"], column.type, path)
        field["required"] = self._evolve_required(
            f"column `{path}`", path, live=bool(live.get("required")), is_required=column.required
        )
        before = self.before.get(path)
        _set_declared_value(field, "doc", column.doc, before and before.doc)
        default = None if column.default is None else single_value(column.default, column.type)
        _set_declared_value(field, "write-default", default, before and before.default)
        for key, description in (("doc", "its description"), ("write-default", "its default for new rows")):
            if field.get(key) != live.get(key):
                self.evolution.changes.append(f"{path}: {description}")
        return field

    def _evolve_required(self, subject: str, path: str, *, live: bool, is_required: bool) -> bool:
        if is_required and not live:
            self.evolution.problems.append(
                f"{subject} would become required, but existing rows may have no value. Keep it optional."
            )
        if live and not is_required:
            self.evolution.changes.append(f"{path}: optional")
        return is_required

    def evolve_type(self, live: Any, declared_type: Any, path: str) -> Any:
        """Return the evolved type. Add a problem if existing data would become unreadable."""
        live_type: Json = cast(Json, live) if isinstance(live, dict) else {"type": None}
        kind = live_type["type"]
        match declared_type:
            case StructType() if kind == "struct":
                return {**live_type, "fields": self.evolve_struct(live_type["fields"], declared_type.fields, path)}
            case ListType() if kind == "list":
                element = self.evolve_type(live_type["element"], declared_type.element, f"{path}.element")
                needed = self._evolve_required(
                    f"element of `{path}`",
                    path,
                    live=bool(live_type.get("element-required")),
                    is_required=declared_type.element_required,
                )
                return {**live_type, "element": element, "element-required": needed}
            case MapType() if kind == "map":
                if not same_type(live_type["key"], declared_type.key):
                    self.evolution.problems.append(
                        f"map `{path}`: the key type of a map cannot change. Add a new column."
                    )
                value = self.evolve_type(live_type["value"], declared_type.value, f"{path}.value")
                needed = self._evolve_required(
                    f"value of `{path}`",
                    path,
                    live=bool(live_type.get("value-required")),
                    is_required=declared_type.value_required,
                )
                return {**live_type, "value": value, "value-required": needed}
            case _:
                return self._evolve_primitive(live, declared_type, path)

    def _evolve_primitive(self, live: Any, declared_type: Any, path: str) -> Any:
        if same_type(live, declared_type):
            return live
        was, now = type_text(live), type_text(declared_type)
        if _widens(was, now):
            self.evolution.changes.append(f"{path}: {was} -> {now}")
            return declared_type
        if _widens(now, was):
            why = f"would narrow it: existing values may not fit. Keep `{was}`"
        else:
            why = f"is another type: data stored as {was} cannot be read as {now}. Add a new column and move the data"
        self.evolution.problems.append(f"column `{path}`: {was} -> {now} {why}.")
        return live

    def _add_field(self, column: Column, path: str) -> Json:
        if column.required and column.default is None:
            self.evolution.problems.append(
                f"column `{path}` would be added as required, but existing rows have no value for it. Make it"
                " optional, or (with format version 3) give it a `default`."
            )
        self.evolution.changes.append(f"{path}: added")
        return field_json(column, self._next)

    def _next(self) -> int:
        self.evolution.last_id += 1
        return self.evolution.last_id


def _set_declared_value(field: Json, key: str, now: Any, before: Any) -> None:
    """Set a declared value. Remove a value that is no longer declared. Keep any other value."""
    if now is not None:
        field[key] = now
    elif before is not None:
        field.pop(key, None)


def _widens(was: str, now: str) -> bool:
    old, new = _DECIMAL.fullmatch(was), _DECIMAL.fullmatch(now)
    if old and new:
        return old[2] == new[2] and int(new[1]) > int(old[1])
    return (was, now) in _WIDENS


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
