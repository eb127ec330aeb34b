"""Rules by which the server binds the partition spec for new files to the schema at every commit. Pure functions.

Source: `PartitionSpecBuilder` and `validate_schema_field_names` of iceberg-rust, which Lakekeeper uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from lakewright.lakekeeper.table.schema.columns import Json, ids_by_path

_ADVICE = "Format version 1 keeps removed partition fields. Declare `format_version: 2`, with which they are removed."


def find_spec_problems(fields: Sequence[Json], schema: Json, dropped: dict[int, str]) -> Iterator[str]:
    """Yield why the server would refuse a commit because of removed partition fields, whose transform is `void`.

    Args:
        fields: The fields of the partition spec for new files after the commit.
        schema: The schema after the commit.
        dropped: Paths of the columns that the commit drops, by id.
    """
    numbers = ids_by_path(schema)
    names = {number: path for path, number in numbers.items()}
    earlier: dict[int, str] = {}
    for partition in fields:
        source, name = partition.get("source-id"), str(partition["name"])
        if source is None or partition["transform"] != "void":
            continue
        if path := dropped.get(source):
            yield f"column `{path}` cannot be dropped: the removed partition field `{name}` refers to it. {_ADVICE}"
        elif name in numbers:
            yield (
                f"partition_by: the removed partition field `{name}` has the name of a column, which "
                f"the server refuses. {_ADVICE}"
            )
        elif source in earlier:
            yield (
                f"partition_by: expected one removed partition field of column `{names.get(source, source)}`, found "
                f"`{earlier[source]}` and `{name}`, which the server refuses. {_ADVICE}"
            )
        earlier[source] = name


def find_name_problems(metadata: Json, schema: Json) -> Iterator[str]:
    """Yield which new columns the server would refuse, because a partition field of the table has their name."""
    earlier = {path for existing in cast(list[Json], metadata["schemas"]) for path in ids_by_path(existing)}
    partitions = {
        str(partition["name"]): int(spec["spec-id"])
        for spec in cast(list[Json], metadata["partition-specs"])
        for partition in cast(list[Json], spec["fields"])
    }
    for path in ids_by_path(schema):
        if path not in earlier and path in partitions:
            yield (
                f"column `{path}` cannot have this name: partition spec {partitions[path]} of the table has a field "
                "of this name. Choose another name."
            )
