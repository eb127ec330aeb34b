"""Schema evolution: in-place changes from a table's schema to the declared one, and refused ones. Pure functions."""

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
    made = Evolution(current, int(metadata["last-column-id"]))
    known = None if old is None else {path for path, _, _ in paths(old.columns)}
    work = _Work(metadata, made, new, ids, known, _docs_and_defaults(old))
    fields = work.struct(current["fields"], new.columns, "")
    made.schema = {"type": "struct", "fields": fields}
    _identify(current, made, new)
    return made


def _docs_and_defaults(old: TableArgs | None) -> dict[str, Column]:
    return {path: column for path, column, _ in paths(old.columns) if column} if old else {}


def _identify(current: Json, made: Evolution, new: TableArgs) -> None:
    by_path = ids_by_path(made.schema)
    wanted = sorted(by_path[path] for path in new.identifier if path in by_path)
    there = sorted(cast(list[int], current.get("identifier-field-ids") or []))
    if wanted:
        made.schema["identifier-field-ids"] = wanted
    if wanted == there:
        return
    if there and wanted and not set(there) <= set(wanted):
        names = {number: path for path, number in ids_by_path(current).items()}
        made.problems.append(
            f"identifier: {quote_names([names[number] for number in there])} identify a row;"
            f" {quote_names(new.identifier)} alone may not be unique. Add columns to the identifier, or remove it"
            " first."
        )
    made.changes.append(f"identifier: {', '.join(new.identifier) or 'none'}")


@dataclass
class _Work:
    metadata: Json
    made: Evolution
    new: TableArgs
    ids: dict[str, int]
    known: set[str] | None
    before: dict[str, Column]

    def struct(self, live: list[Json], declared: list[Column], path: str) -> list[Json]:
        """Return the fields of a struct in the declared order. Undeclared fields keep their position."""
        matched = self._matched(live, declared, path)
        fields: list[Json] = []
        for column in declared:
            inner = _below(path, column.name)
            there = matched.get(column.name)
            fields.append(self._evolved(there, column, inner) if there else self._added(column, inner))
        claimed = {int(field["id"]) for field in matched.values()}
        for index, undeclared in enumerate(live):
            name = str(undeclared["name"])
            if int(undeclared["id"]) not in claimed and self._stays(undeclared, _below(path, name), declared):
                before = int(live[index - 1]["id"]) if index else None
                place = next(
                    (at + 1 for at, made in enumerate(fields) if made["id"] == before), 0 if not index else None
                )
                fields.insert(len(fields) if place is None else place, undeclared)
        kept = [int(field["id"]) for field in live if any(made["id"] == field["id"] for made in fields)]
        if [int(field["id"]) for field in fields if field["id"] in kept] != kept:
            self.made.changes.append(f"{path or 'columns'}: in another order")
        return fields

    def _matched(self, live: list[Json], declared: list[Column], path: str) -> dict[str, Json]:
        """Return the field of each declared column, matched by name, former name or id."""
        by_name = {str(field["name"]): field for field in live}
        names = {column.name for column in declared}
        matched = {column.name: by_name[column.name] for column in declared if column.name in by_name}
        for column in declared:
            if column.name in matched:
                continue
            former = column.renamed_from
            found = by_name.get(former) if former and former not in names else None
            number = self.ids.get(_below(path, column.name))
            found = found or next(
                (field for field in live if field["id"] == number and field["name"] not in names), None
            )
            if found and all(field["id"] != found["id"] for field in matched.values()):
                matched[column.name] = found
                self.made.changes.append(f"{_below(path, str(found['name']))}: renamed to {column.name}")
            elif number is not None and not found and (earlier := self._earlier(number, column)):
                matched[column.name] = earlier
                self.made.changes.append(f"{_below(path, column.name)}: restored, with its data")
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

    def _stays(self, live: Json, path: str, declared: list[Column]) -> bool:
        """Return whether an undeclared field stays."""
        if path in self.new.dropped_columns:
            self.made.changes.append(f"{path}: dropped")
            gone = ids_by_path({"fields": [live]}).values()
            self.made.dropped |= dict.fromkeys(gone, path)
            return False
        if self.new.undeclared_columns == "refuse" and (self.known is None or path in self.known):
            self.made.problems.append(self._undeclared(live, path, declared))
        return True

    def _undeclared(self, live: Json, path: str, declared: list[Column]) -> str:
        there = ids_by_path(current_schema(self.metadata))
        above = path.rpartition(".")[0]
        fresh = [c.name for c in declared if _below(above, c.name) not in there and same_type(live["type"], c.type)]
        hint = f", or set `renamed_from: {live['name']}` on `{fresh[0]}` if it is the same column" if fresh else ""
        return (
            f"column `{path}` is in the table and not declared, so it would be dropped. Declare it, name it in"
            f" `dropped_columns` to drop it, or set `undeclared_columns` to `keep`{hint}."
        )

    def _evolved(self, live: Json, column: Column, path: str) -> Json:
        made = {**live, "name": column.name}
        made["type"] = self.type(live["type"], column.type, path)
        made["required"] = self._required(
            f"column `{path}`", path, live=bool(live.get("required")), declared=column.required
        )
        before = self.before.get(path)
        _set_declared(made, "doc", column.doc, before and before.doc)
        default = None if column.default is None else single_value(column.default, column.type)
        _set_declared(made, "write-default", default, before and before.default)
        for key, what in (("doc", "its description"), ("write-default", "its default for new rows")):
            if made.get(key) != live.get(key):
                self.made.changes.append(f"{path}: {what}")
        return made

    def _required(self, what: str, path: str, *, live: bool, declared: bool) -> bool:
        if declared and not live:
            self.made.problems.append(
                f"{what} would become required, but existing rows may have no value. Keep it optional."
            )
        if live and not declared:
            self.made.changes.append(f"{path}: optional")
        return declared

    def type(self, live: Any, declared: Any, path: str) -> Any:
        """Return the evolved type. Add a problem if existing data would become unreadable."""
        there: Json = cast(Json, live) if isinstance(live, dict) else {"type": None}
        kind = there["type"]
        match declared:
            case StructType() if kind == "struct":
                return {**there, "fields": self.struct(there["fields"], declared.fields, path)}
            case ListType() if kind == "list":
                element = self.type(there["element"], declared.element, f"{path}.element")
                needed = self._required(
                    f"element of `{path}`",
                    path,
                    live=bool(there.get("element-required")),
                    declared=declared.element_required,
                )
                return {**there, "element": element, "element-required": needed}
            case MapType() if kind == "map":
                if not same_type(there["key"], declared.key):
                    self.made.problems.append(f"map `{path}`: the key type of a map cannot change. Add a new column.")
                value = self.type(there["value"], declared.value, f"{path}.value")
                needed = self._required(
                    f"value of `{path}`", path, live=bool(there.get("value-required")), declared=declared.value_required
                )
                return {**there, "value": value, "value-required": needed}
            case _:
                return self._primitive(live, declared, path)

    def _primitive(self, live: Any, declared: Any, path: str) -> Any:
        if same_type(live, declared):
            return live
        was, now = type_text(live), type_text(declared)
        if _widens(was, now):
            self.made.changes.append(f"{path}: {was} -> {now}")
            return declared
        if _widens(now, was):
            why = f"would narrow it: existing values may not fit. Keep `{was}`"
        else:
            why = f"is another type: data stored as {was} cannot be read as {now}. Add a new column and move the data"
        self.made.problems.append(f"column `{path}`: {was} -> {now} {why}.")
        return live

    def _added(self, column: Column, path: str) -> Json:
        if column.required and column.default is None:
            self.made.problems.append(
                f"column `{path}` would be added as required, but existing rows have no value for it. Make it"
                " optional, or (with format version 3) give it a `default`."
            )
        self.made.changes.append(f"{path}: added")
        return field_json(column, self._next)

    def _next(self) -> int:
        self.made.last_id += 1
        return self.made.last_id


def _set_declared(made: Json, key: str, now: Any, before: Any) -> None:
    """Set a declared value. Remove a value that is no longer declared. Keep any other value."""
    if now is not None:
        made[key] = now
    elif before is not None:
        made.pop(key, None)


def _widens(was: str, now: str) -> bool:
    old, new = _DECIMAL.fullmatch(was), _DECIMAL.fullmatch(now)
    if old and new:
        return old[2] == new[2] and int(new[1]) > int(old[1])
    return (was, now) in _WIDENS


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
