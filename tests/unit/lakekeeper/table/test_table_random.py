"""Random pairs of declarations: the change is refused with a reason, or one commit makes the table as declared."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.observed import observe
from lakewright.lakekeeper.table.requests import commit, create_request
from lakewright.lakekeeper.table.schema.columns import current_schema, ids_by_path, paths
from lakewright_sandbox.lakekeeper.catalog.metadata.table_builder import TableBuilder
from lakewright_sandbox.lakekeeper.catalog.metadata.table_metadata import new_metadata
from lakewright_sandbox.lakekeeper.catalog.metadata.table_updates import apply_updates

Props = dict[str, Any]
EXAMPLES = 5000 if os.environ.get("LAKEWRIGHT_FULL") else 150

_primitive = st.sampled_from(["int", "long", "float", "double", "decimal(9,2)", "decimal(12,2)", "string", "date"])


def _column(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[Props]:
    return st.fixed_dictionaries(
        {"name": st.sampled_from("abcd"), "type": kind, "required": st.booleans()},
        optional={"doc": st.sampled_from(["x", "y"])},
    )


def _columns(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Props]]:
    return st.lists(_column(kind), min_size=1, max_size=3, unique_by=lambda one: one["name"])


_type = st.recursive(
    _primitive,
    lambda inner: (
        _columns(inner).map(lambda fields: {"type": "struct", "fields": fields})
        | st.tuples(inner, st.booleans()).map(
            lambda pair: {"type": "list", "element": pair[0], "element_required": pair[1]}
        )
        | inner.map(lambda value: {"type": "map", "key": "string", "value": value})
    ),
    max_leaves=4,
)


@st.composite
def _declarations(draw: st.DrawFn) -> TableArgs:
    columns = draw(_columns(_type))
    flat = [one["name"] for one in columns if isinstance(one["type"], str)]
    some = st.lists(st.sampled_from(flat), max_size=2, unique=True) if flat else st.just([])
    required = [one["name"] for one in columns if one["required"] and one["type"] in ("int", "long", "string")]
    return _table_args(
        columns,
        identifier=draw(st.sampled_from([[], required])),
        partition_by=draw(some),
        sort_by=draw(some),
        properties=draw(st.dictionaries(st.sampled_from("pq"), st.sampled_from("12"), max_size=2)),
    )


def _table_args(columns: list[Props], **props: Any) -> TableArgs:
    identity = {"server": {"endpoint": "http://l"}, "warehouse_id": "w", "namespace": "n", "name": "t"}
    return TableArgs.parse({**identity, "columns": columns, "format_version": 2, **props})


def _create_metadata(table: TableArgs) -> Props:
    """Return the table as the sandbox's catalog makes it."""
    body = create_request(table)
    body["properties"].pop("format-version")
    return new_metadata(
        "uuid",
        "s3://b/t",
        2,
        0,
        schema=body["schema"],
        partition_spec=body.get("partition-spec"),
        write_order=body.get("write-order"),
        properties=body["properties"],
    )


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[TableArgs, TableArgs]:
    """Return a table, and an unrelated one or a later version of it."""
    old = draw(_declarations())
    if draw(st.booleans()):
        return old, draw(_declarations())
    columns = draw(st.permutations([_loosen(draw, one) for one in old.model_dump(exclude_none=True)["columns"]]))
    added = draw(_columns(_type))
    fresh = [one | {"name": f"new {one['name']}", "required": False} for one in added]
    return old, _table_args([*fresh, *columns], sort_by=old.sort_by, partition_by=old.partition_by)


def _loosen(draw: st.DrawFn, column: Props) -> Props:
    wider = {"int": "long", "float": "double", "decimal(9,2)": "decimal(12,2)"}
    kind = column["type"]
    if isinstance(kind, str) and draw(st.booleans()):
        kind = wider.get(kind, kind)
    return column | {"type": kind, "required": column["required"] and draw(st.booleans())}


@settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES < 1000, database=None)
@given(pair=_pairs(), drops=st.booleans())
def test_random_evolution(pair: tuple[TableArgs, TableArgs], *, drops: bool) -> None:
    old, new = pair
    before = _create_metadata(old)
    assert observe(before, old) == old
    assert commit(before, old, old, {}).updates == []
    ids = ids_by_path(current_schema(before))
    column_paths = [path for path, _, _ in paths(old.columns)]
    allowed = {"dropped_columns": column_paths} if drops else {"undeclared_columns": "keep"}
    new = new.model_copy(update=allowed)

    needed = commit(before, old, new, ids)

    if needed.problems:
        assert all(
            one.startswith(("column `", "map `", "element of `", "value of `", "identifier")) for one in needed.problems
        )
        return
    after = apply_updates(TableBuilder(before, [1, 2, 3], 1), needed.updates)
    assert commit(after, old, new, ids).updates == []
    assert commit(after, new, new, ids).updates == []
    observed = observe(after, new)
    assert observed.model_copy(update={"columns": new.columns}) == new
    now = ids_by_path(current_schema(after))
    assert len(set(now.values())) == len(now)
    assert {path: now[path] for path in ids.keys() & now.keys()} == {
        path: ids[path] for path in ids.keys() & now.keys()
    }
    assert all(number > before["last-column-id"] for path, number in now.items() if path not in ids)
    _same_where_declared(observed, new)


def _same_where_declared(observed: TableArgs, new: TableArgs) -> None:
    """Undeclared descriptions stay, and so do columns that may stay."""
    declared_columns = {path: (kind if isinstance(kind, str) else None, one) for path, one, kind in paths(new.columns)}
    observed_columns = {
        path: (kind if isinstance(kind, str) else None, one) for path, one, kind in paths(observed.columns)
    }
    for path, (kind, column) in declared_columns.items():
        observed_kind, also = observed_columns[path]
        assert observed_kind == kind
        if column:
            assert also
            assert (also.required, also.doc) == (column.required, column.doc)
    if not new.dropped_columns:
        assert observed_columns.keys() == declared_columns.keys()
