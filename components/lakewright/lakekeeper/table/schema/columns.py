"""Columns of a table, as declared and in the JSON of Iceberg schemas. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

from lakewright_spark.documented_model import DocumentedModel
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

Json = dict[str, Any]

_PRIMITIVE = re.compile(
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns|string|uuid|binary"
    r"|unknown|variant|(geometry|geography)(\([^()<>]*\))?"
)
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]")
_NESTED = re.compile(r"(list|map|struct)\s*<(.*)>", re.DOTALL)
_SINCE_3 = re.compile(r"timestamp_ns|timestamptz_ns|unknown|variant|geometry.*|geography.*")
_EXPECTED = (
    "expected an Iceberg type, such as `long`, `decimal(12,2)`, `list<string>`, `map<string, long>` or"
    " `struct<street: string, zip: int>`"
)

OBSERVED = {"observed": True}
"""Validation context of values from a server or a state. Rules for declarations do not apply to other engines."""


def is_observed(info: ValidationInfo) -> bool:
    """Return whether the validated value was observed, not declared."""
    return info.context == OBSERVED


class _Part(DocumentedModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _column_name(name: str, info: ValidationInfo) -> str:
    if is_observed(info):
        return name
    if not name.strip():
        raise ValueError("a column's name must not be empty")
    if "." in name:
        raise ValueError("a column's name must not contain `.`, which separates the levels of nested columns")
    return name


def _column_type(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return _canonical(value)
    except ValueError:
        if is_observed(info):
            return value
        raise


def _canonical(value: str) -> Any:
    """Return the canonical form of a type: text for a primitive type, a mapping for a nested type."""
    text = value.strip()
    if nested := _NESTED.fullmatch(text):
        return _parse_nested(nested[1], [part.strip() for part in _split(nested[2])])
    if decimal := _DECIMAL.fullmatch(text):
        precision, scale = int(decimal[1]), int(decimal[2])
        if not 0 < precision <= 38 or scale > precision:
            raise ValueError("a decimal has a precision from 1 to 38, and a scale of at most the precision")
        return f"decimal({precision},{scale})"
    if fixed := _FIXED.fullmatch(text):
        return f"fixed[{int(fixed[1])}]"
    if not _PRIMITIVE.fullmatch(text):
        raise ValueError(_EXPECTED)
    return text


def _parse_nested(kind: str, parts: list[str]) -> Json:
    if kind == "list" and len(parts) == 1:
        return {"type": kind, "element": parts[0]}
    if kind == "map" and len(parts) == 2:
        return {"type": kind, "key": parts[0], "value": parts[1]}
    if kind == "struct" and all(":" in part for part in parts):
        pairs = [part.partition(":") for part in parts]
        return {"type": kind, "fields": [{"name": name.strip(), "type": of.strip()} for name, _, of in pairs]}
    raise ValueError(_EXPECTED)


def _split(text: str) -> Iterator[str]:
    """Yield the parts between the commas of the outermost level."""
    depth = start = 0
    for index, character in enumerate(text):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]


ColumnName = Annotated[str, AfterValidator(_column_name)]
ColumnType = Annotated["str | StructType | ListType | MapType", BeforeValidator(_column_type)]
"""`long`, `decimal(12,2)`, `struct<a: int>`, or a mapping with `type: struct`, `list` or `map` for more detail."""


class Column(_Part):
    """A column, or a field of a nested column."""

    name: ColumnName
    """Name of the column."""
    type: ColumnType
    """Iceberg type, as text, or as a mapping for nested types with more detail."""
    required: bool = False
    """Whether the column always has a value."""
    doc: str | None = None
    """Description. If left out, a description that an engine wrote is kept."""
    default: bool | int | float | str | None = None
    """Value of this column in existing and new rows that have none. Needs format version 3."""
    renamed_from: ColumnName | None = None
    """Former name of a column to rename. The column keeps its data."""

    @model_validator(mode="after")
    def _default_fits(self, info: ValidationInfo) -> Column:
        if is_observed(info):
            return self
        if self.default is not None and not _fits(self.default, self.type):
            raise ValueError("`default` must be a value of the column's type, which must not be nested")
        return self


def _unique(columns: list[Column], info: ValidationInfo) -> list[Column]:
    names = [column.name.casefold() for column in columns]
    if not is_observed(info) and len(names) != len(set(names)):
        raise ValueError("expected names that differ in more than upper and lower case, which engines ignore")
    return columns


Columns = Annotated[list[Column], Field(min_length=1), AfterValidator(_unique)]


class StructType(_Part):
    """A nested type that consists of columns."""

    type: Literal["struct"] = "struct"
    """`struct`."""
    fields: Columns
    """The columns within it."""


class ListType(_Part):
    """A list of elements of one type."""

    type: Literal["list"] = "list"
    """`list`."""
    element: ColumnType
    """Type of an element."""
    element_required: bool = False
    """Whether elements always have a value."""


class MapType(_Part):
    """A map from keys to values."""

    type: Literal["map"] = "map"
    """`map`."""
    key: ColumnType
    """Type of a key."""
    value: ColumnType
    """Type of a value."""
    value_required: bool = False
    """Whether a key always has a value."""


for _model in (Column, StructType, ListType, MapType):
    _model.model_rebuild()


def _fits(value: object, kind: object) -> bool:
    match kind:
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case str():
            return isinstance(value, str)
        case _:
            return False


def type_text(kind: Any) -> str:
    """Return a type, declared or in Iceberg's JSON, as text for messages: `list<decimal(12,2)>`."""
    if isinstance(kind, BaseModel):
        kind = kind.model_dump()
    if not isinstance(kind, dict):
        return "".join(str(kind).split())
    parts = cast(Json, kind)
    if parts["type"] == "struct":
        fields = [f"{field['name']}: {type_text(field['type'])}" for field in cast(list[Json], parts["fields"])]
        return f"struct<{', '.join(fields)}>"
    if parts["type"] == "list":
        return f"list<{type_text(parts['element'])}>"
    return f"map<{type_text(parts['key'])}, {type_text(parts['value'])}>"


def list_children(kind: Any, path: str) -> Iterator[tuple[str, Column | None, Any]]:
    """Yield the parts of a declared type: path, column (None for elements, keys and values) and type."""
    match kind:
        case StructType():
            for column in kind.fields:
                yield f"{path}.{column.name}" if path else column.name, column, column.type
        case ListType():
            yield f"{path}.element", None, kind.element
        case MapType():
            yield f"{path}.key", None, kind.key
            yield f"{path}.value", None, kind.value
        case _:
            return


def paths(columns: list[Column]) -> Iterator[tuple[str, Column | None, Any]]:
    """Yield all columns of all levels, outer columns first, each as `children` does."""
    pending: list[tuple[Any, str]] = [(StructType.model_construct(fields=columns), "")]
    while pending:
        kind, above = pending.pop(0)
        for path, column, inner in list_children(kind, above):
            yield path, column, inner
            pending.append((inner, path))


def needs_version_3(columns: list[Column]) -> list[str]:
    """Return the paths of the columns that need format version 3."""
    return [
        path
        for path, column, kind in paths(columns)
        if (isinstance(kind, str) and _SINCE_3.fullmatch(kind)) or (column and column.default is not None)
    ]


def same_type(live: Any, declared_type: Any) -> bool:
    """Return whether a type in Iceberg's JSON equals the declared one, regardless of what is required."""
    return type_text(live) == type_text(declared_type)


def ids_by_path(schema: Json) -> dict[str, int]:
    """Return the ids of all fields of a schema in Iceberg's JSON, by path."""
    ids: dict[str, int] = {}

    def walk(kind: Any, path: str) -> None:
        if not isinstance(kind, dict):
            return
        parts = cast(Json, kind)
        for field in cast(list[Json], parts.get("fields", [])):
            inner = f"{path}.{field['name']}" if path else str(field["name"])
            ids[inner] = int(field["id"])
            walk(field["type"], inner)
        for part in ("element", "key", "value"):
            if part in parts:
                ids[f"{path}.{part}"] = int(parts[f"{part}-id"])
                walk(parts[part], f"{path}.{part}")

    walk(schema, "")
    return ids


def current_schema(metadata: Json) -> Json:
    """Return the current schema of a table."""
    return _current(metadata, "schemas", "schema-id", metadata["current-schema-id"])


def partition_fields(metadata: Json) -> list[Json]:
    """Return the fields of the partition spec for new files."""
    return _current(metadata, "partition-specs", "spec-id", metadata["default-spec-id"])["fields"]


def sort_fields(metadata: Json) -> list[Json]:
    """Return the fields of the sort order for new files."""
    default = metadata["default-sort-order-id"]
    # Order 0 means unsorted, and may be absent from the list.
    return _current(metadata, "sort-orders", "order-id", default)["fields"] if default else []


def _current(metadata: Json, collection: str, key: str, number: int) -> Json:
    return next(entry for entry in cast(list[Json], metadata[collection]) if entry[key] == number)
