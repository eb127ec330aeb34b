"""Generated tables: what a server keeps of a declared table is read back as the same declaration."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from lakewright.discovery.declaration.table_declaration import declare_table, find_differences
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.requests import create_request
from lakewright.spec.table import TableSpec

PRIMITIVES = ["boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid"]
TRANSFORMS = {"timestamptz": ["years", "months", "days", "hours"], "date": ["years", "months", "days"]}
NAMES = st.sampled_from(["id", "at", "Name", "a b", "x-1", "größe", "order"])


def types(depth: int = 2) -> st.SearchStrategy[Any]:
    plain = st.one_of(
        st.sampled_from([*PRIMITIVES, "binary", "fixed[16]"]),
        st.builds(lambda scale: f"decimal({scale + 5},{scale})", st.integers(0, 9)),
    )
    if not depth:
        return plain
    inner = types(depth - 1)
    flag = st.booleans()
    return st.one_of(
        plain,
        st.builds(lambda kind, required: {"type": "list", "element": kind, "element_required": required}, inner, flag),
        st.builds(
            lambda kind, required: {"type": "map", "key": "string", "value": kind, "value_required": required},
            inner,
            flag,
        ),
        st.builds(lambda fields: {"type": "struct", "fields": fields}, columns(depth - 1)),
    )


def columns(depth: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    column = st.fixed_dictionaries(
        {"name": NAMES, "type": types(depth), "required": st.booleans()}, optional={"doc": st.just("a doc")}
    )
    return st.lists(column, min_size=1, max_size=5, unique_by=lambda entry: entry["name"].casefold())


@st.composite
def tables(draw: st.DrawFn) -> TableSpec:
    entries = draw(columns(2))
    plain = [entry for entry in entries if isinstance(entry["type"], str) and " " not in entry["name"]]
    partitions: list[str] = []
    sorting: list[str] = []
    for entry in plain:
        if names := TRANSFORMS.get(entry["type"]):
            partitions += draw(
                st.lists(st.sampled_from(names), max_size=1).map(lambda some, c=entry: _format_transforms(some, c))
            )
        elif entry["type"] in {"int", "long", "string"} and draw(st.booleans()):
            partitions.append(f"bucket({draw(st.integers(1, 64))}, {entry['name']})")
        if draw(st.booleans()):
            sorting.append(entry["name"] + draw(st.sampled_from(["", " desc", " nulls last", " desc nulls first"])))
    keys = [entry["name"] for entry in plain if entry["required"] and entry["type"] in {"int", "long", "string"}]
    properties = draw(st.dictionaries(st.sampled_from(["comment", "write.format.default", "a.b"]), st.just("x")))
    return TableSpec.model_validate(
        {
            "name": "main.sales.orders",
            "columns": entries,
            "identifier": keys,
            "partition_by": partitions,
            "sort_by": sorting,
            "properties": properties,
            "format_version": draw(st.sampled_from([None, 1, 3])),
            "protected": draw(st.sampled_from([None, True])),
        }
    )


def _format_transforms(transforms: list[str], column: dict[str, Any]) -> list[str]:
    return [f"{transform}({column['name']})" for transform in transforms]


def create_metadata(spec: TableSpec) -> dict[str, Any]:
    """Return the metadata that a server keeps of a table that is created as declared."""
    args = TableArgs(
        server=ServerRef(endpoint="http://lakekeeper"),
        warehouse_id="w",
        namespace="sales",
        name="orders",
        columns=spec.columns,
        identifier=spec.identifier,
        partition_by=spec.partition_by,
        sort_by=spec.sort_by,
        properties=spec.properties,
        format_version=spec.format_version,
    )
    body = create_request(args)
    order = body.get("write-order") or {"order-id": 0, "fields": []}
    return {
        "table-uuid": "t",
        "location": "s3://lake/t",
        "format-version": spec.format_version or 2,
        "last-column-id": 100,
        "schemas": [{**body["schema"], "schema-id": 0}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": (body.get("partition-spec") or {"fields": []})["fields"]}],
        "default-spec-id": 0,
        "last-partition-id": 1100,
        "sort-orders": [order],
        "default-sort-order-id": order["order-id"],
        "properties": {key: value for key, value in body["properties"].items() if key != "format-version"}
        if "properties" in body
        else {},
    }


@settings(max_examples=40)
@given(spec=tables())
def test_table_is_read_back_as_declared(spec: TableSpec) -> None:
    metadata = create_metadata(spec)
    tabular = Tabular(("sales",), "orders", "table", "t", protected=bool(spec.protected))

    declaration = TableSpec.model_validate(declare_table("main", tabular, metadata))

    assert find_differences(declaration, metadata) == []
    assert declaration == spec
