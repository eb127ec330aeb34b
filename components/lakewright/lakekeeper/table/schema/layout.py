"""Text form of a table's layout: partition transforms and sort orders. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationInfo

from lakewright.lakekeeper.table.schema.columns import (
    Column,
    StructType,
    current_schema,
    ids_by_path,
    is_observed,
    needs_version_3,
    partition_fields,
    sort_fields,
    type_text,
)

Json = dict[str, Any]

_COLUMN = r"[^\s(),]+"
_TIME = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_ENDINGS = {"truncate": "trunc", "void": "null"}
_WORDS = {short: word for word, short in _TIME.items()}
_TRANSFORM = re.compile(
    rf"(?:(?P<time>years|months|days|hours)\(\s*(?P<of>{_COLUMN})\s*\)"
    rf"|(?P<sized>bucket|truncate)\(\s*(?P<size>[1-9]\d*)\s*,\s*(?P<from>{_COLUMN})\s*\)"
    rf"|void\(\s*(?P<void>{_COLUMN})\s*\)|(?P<plain>{_COLUMN}))"
)
_ALIAS = re.compile(r"(?P<what>.+?)\s+as\s+(?P<name>\S+)", re.IGNORECASE)
_ORDER = re.compile(r"(?P<what>.+?)(?:\s+(?P<way>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?", re.IGNORECASE)

_DATES = r"date|timestamp(tz)?(_ns)?"
_APPLIES = {
    "year": _DATES,
    "month": _DATES,
    "day": _DATES,
    "hour": r"timestamp(tz)?(_ns)?",
    "truncate": r"int|long|decimal\(.*\)|string|binary",
    "bucket": r"int|long|decimal\(.*\)|date|time|timestamp(tz)?(_ns)?|string|uuid|fixed\[.*\]|binary",
    "identity": r"(?!variant|geometry|geography|unknown).*",
    "void": r".*",
}


@dataclass(frozen=True)
class Partition:
    """One field of a partition spec."""

    column: str
    """Path of the column."""
    transform: str
    """Transform in Iceberg's notation: `identity`, `day`, `bucket[16]`."""
    name: str | None = None
    """Explicit name. Without one, the name consists of column and transform."""

    @property
    def field_name(self) -> str:
        """Name in the partition spec, formed as in Iceberg's libraries."""
        if self.name:
            return self.name
        kind = self.transform.partition("[")[0]
        if kind == "identity":
            return self.column
        return f"{self.column}_{_ENDINGS.get(kind, kind)}"

    def __str__(self) -> str:
        """Return the text for messages."""
        return _transform_text(self.column, self.transform) + (f" as {self.name}" if self.name else "")


@dataclass(frozen=True)
class Sorting:
    """One field of a sort order."""

    column: str
    transform: str
    direction: str
    """`asc` or `desc`."""
    nulls: str
    """`first` or `last`."""

    def __str__(self) -> str:
        """Return the text for messages."""
        usual = "first" if self.direction == "asc" else "last"
        text = _transform_text(self.column, self.transform)
        text += " desc" if self.direction == "desc" else ""
        return text + (f" nulls {self.nulls}" if self.nulls != usual else "")


def _transform_text(column: str, transform: str) -> str:
    kind, _, size = transform.partition("[")
    if kind == "identity":
        return column
    if size:
        return f"{kind}({size.rstrip(']')}, {column})"
    return f"{_WORDS.get(kind, kind)}({column})"


def _transform(text: str) -> tuple[str, str]:
    """Parse a transform. Return column and transform."""
    match = _TRANSFORM.fullmatch(text.strip())
    if not match:
        raise ValueError(
            "expected a column or one of years(c), months(c), days(c), hours(c), bucket(n, c), truncate(n, c), void(c)"
        )
    if match["time"]:
        return match["of"], _TIME[match["time"]]
    if match["sized"]:
        return match["from"], f"{match['sized']}[{int(match['size'])}]"
    return (match["void"], "void") if match["void"] else (match["plain"], "identity")


def parse_partition(text: str) -> Partition:
    """Parse `days(ts)`, or with an explicit name `bucket(16, id) as shard`. Raises ValueError."""
    alias = _ALIAS.fullmatch(text.strip())
    column, transform = _transform(alias["what"] if alias else text)
    partition = Partition(column, transform)
    return Partition(column, transform, alias["name"]) if alias and alias["name"] != partition.field_name else partition


def parse_sorting(text: str) -> Sorting:
    """Parse `ts`, `ts desc` or `bucket(16, id) asc nulls last`. Raises ValueError."""
    match = _ORDER.fullmatch(text.strip())
    if not match:
        raise ValueError(
            "expected a column or transform, optionally with `asc` or `desc` and `nulls first` or `nulls last`"
        )
    column, transform = _transform(match["what"])
    direction = (match["way"] or "asc").lower()
    return Sorting(
        column, transform, direction, (match["nulls"] or ("first" if direction == "asc" else "last")).lower()
    )


def sort_texts(metadata: Json) -> list[str]:
    """Return the sort order of a table as text."""
    names = column_names(metadata)
    return [
        str(
            Sorting(
                names.get(field.get("source-id", 0), str(field.get("source-id"))),
                str(field["transform"]),
                str(field["direction"]),
                str(field["null-order"]).removeprefix("nulls-"),
            )
        )
        for field in sort_fields(metadata)
    ]


def partitions(metadata: Json) -> list[Partition]:
    """Return the partition fields for new files, each with its name if it is not the default name."""
    names = column_names(metadata)
    parsed: list[Partition] = []
    for field in partition_fields(metadata):
        column = names.get(field.get("source-id", 0), str(field.get("source-ids", field.get("source-id"))))
        usual = Partition(column, str(field["transform"]))
        partition = Partition(column, usual.transform, str(field["name"]))
        parsed.append(usual if usual.field_name == field["name"] else partition)
    return parsed


def column_names(metadata: Json) -> dict[int, str]:
    """Return the paths of a table's fields, by id."""
    return {number: path for path, number in ids_by_path(current_schema(metadata)).items()}


def _partition_text(text: str, info: ValidationInfo) -> str:
    return text if is_observed(info) else str(parse_partition(text))


def _normalize_sorting(text: str, info: ValidationInfo) -> str:
    return text if is_observed(info) else str(parse_sorting(text))


PartitionText = Annotated[str, AfterValidator(_partition_text)]
"""`days(ts)`, `bucket(16, id)`, `region`, `truncate(4, zip) as area`."""
SortingText = Annotated[str, AfterValidator(_normalize_sorting)]
"""`ts desc`, `bucket(16, id)`, `name asc nulls last`."""


def layout_mistakes(
    columns: list[Column],
    *,
    identifier: list[str],
    partition_by: list[str],
    sort_by: list[str],
    format_version: int | None,
) -> Iterator[str]:
    """Yield an error message for each conflict between the properties of a declaration."""
    leaves = dict(_reachable(columns))
    for path in identifier:
        yield from _identifier_mistakes(leaves, path)
    partitions = [parse_partition(text) for text in partition_by]
    for partition in partitions:
        yield from _transform_mistakes("partition_by", partition.column, partition.transform, leaves)
    yield from _partition_mistakes(partitions, leaves)
    for text in sort_by:
        sorting = parse_sorting(text)
        yield from _transform_mistakes("sort_by", sorting.column, sorting.transform, leaves)
    if (format_version or 2) < 3 and (later := needs_version_3(columns)):
        yield f"{quote_names(later)} can only be in a table with `format_version: 3`, because of a type or default"


def _reachable(columns: list[Column], above: str = "") -> Iterator[tuple[str, Column]]:
    """Yield the columns that are not inside a list or map, with their paths."""
    for column in columns:
        path = f"{above}{column.name}"
        yield path, column
        if isinstance(column.type, StructType):
            yield from _reachable(column.type.fields, f"{path}.")


def _identifier_mistakes(leaves: dict[str, Column], path: str) -> Iterator[str]:
    column = leaves.get(path)
    if column is None or not isinstance(column.type, str):
        yield f"identifier `{path}` must be a column that is neither nested itself nor inside a list or map"
        return
    levels = path.split(".")
    above = [leaves[".".join(levels[:depth])] for depth in range(1, len(levels) + 1)]
    if not all(level.required for level in above):
        yield f"identifier `{path}` must be required, and so must the columns that it is nested in"
    if column.type in {"float", "double"}:
        yield f"identifier `{path}` must not be a floating-point number"


def _transform_mistakes(field_path: str, column: str, transform: str, leaves: dict[str, Column]) -> Iterator[str]:
    leaf = leaves.get(column)
    if leaf is None:
        yield f"{field_path}: there is no column `{column}` (outside of lists and maps)"
        return
    kind = transform.partition("[")[0]
    if not isinstance(leaf.type, str) or not re.fullmatch(_APPLIES[kind], leaf.type):
        yield f"{field_path}: {kind} does not apply to `{column}`, which is {type_text(leaf.type)}"


def _partition_mistakes(partitions: list[Partition], leaves: dict[str, Column]) -> Iterator[str]:
    names = [partition.field_name for partition in partitions]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"partition_by: there are several fields named `{name}`; give them different names with `as`"
    for partition in partitions:
        if partition.field_name in leaves and (partition.field_name, "identity") != (
            partition.column,
            partition.transform,
        ):
            yield f"partition_by: `{partition}` is named like the column `{partition.field_name}`; rename it with `as`"
    pairs = [(partition.column, partition.transform) for partition in partitions if partition.transform not in _WORDS]
    for column, transform in sorted({pair for pair in pairs if pairs.count(pair) > 1}):
        yield f"partition_by: `{_transform_text(column, transform)}` is declared more than once; remove one of them"
    timed = [partition.column for partition in partitions if partition.transform in _WORDS]
    for column in sorted({column for column in timed if timed.count(column) > 1}):
        yield f"partition_by: use only the finest of years, months, days and hours of `{column}`"


def quote_names(names: list[str]) -> str:
    """Return names in backquotes, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)
