"""Table evolution: the commits that change a table in place, and the changes that are refused, with reasons."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.observed import observe
from lakewright.lakekeeper.table.requests import Commit, commit, create_request
from lakewright.lakekeeper.table.schema.columns import ids_by_path
from pydantic import ValidationError

Props = dict[str, Any]

ORDERS: list[Props] = [
    {"name": "id", "type": "long", "required": True},
    {"name": "day", "type": "date"},
    {"name": "amount", "type": "decimal(12, 2)", "doc": "in euros"},
    {"name": "lines", "type": "list<struct<sku: string, count: int>>"},
    {"name": "tags", "type": "map<string, int>"},
]


def table_args(columns: list[Props] = ORDERS, **props: Any) -> TableArgs:
    """Return a declared table."""
    server = {"endpoint": "http://lakekeeper"}
    return TableArgs.parse(
        {"server": server, "warehouse_id": "w", "namespace": "sales", "name": "orders", "columns": columns, **props}
    )


def create_metadata(table: TableArgs, version: int = 2) -> Props:
    """Return the metadata of the table as a server makes it."""
    body = create_request(table)
    schema = {**body["schema"], "schema-id": 0}
    fields = body.get("partition-spec", {}).get("fields", [])
    spec = [{**field, "field-id": 1000 + at} for at, field in enumerate(fields)]
    order = body.get("write-order", {"order-id": 0, "fields": []})
    return {
        "table-uuid": "u",
        "location": "s3://b/t",
        "format-version": table.format_version or version,
        "current-schema-id": 0,
        "schemas": [schema],
        "last-column-id": max(ids_by_path(schema).values()),
        "partition-specs": [{"spec-id": 0, "fields": spec}],
        "default-spec-id": 0,
        "last-partition-id": 999 + len(spec),
        "sort-orders": [order],
        "default-sort-order-id": order["order-id"],
        "properties": {key: value for key, value in body["properties"].items() if key != "format-version"},
    }


def evolve(old: TableArgs, new: TableArgs, metadata: Props | None = None) -> Commit:
    metadata = metadata or create_metadata(old)
    return commit(metadata, old, new, ids_by_path(metadata["schemas"][-1]))


def with_changed_column(position: int, **changes: Any) -> list[Props]:
    """Return the columns, one of them changed."""
    columns = [dict(item) for item in ORDERS]
    columns[position] |= changes
    return columns


def find_added_schema(done: Commit) -> Props:
    return next(update["schema"] for update in done.updates if update["action"] == "add-schema")


def find_added_fields(done: Commit) -> list[Props]:
    return next(update["spec"]["fields"] for update in done.updates if update["action"] == "add-spec")


def test_unchanged_table_needs_no_commit() -> None:
    table = table_args(
        identifier=["id"],
        partition_by=["days(day)", "bucket(16, id) as shard"],
        sort_by=["day desc", "id asc nulls last"],
        properties={"write.format.default": "parquet"},
        format_version=2,
    )

    assert evolve(table, table).updates == []
    assert observe(create_metadata(table), table) == table


@pytest.mark.parametrize(
    ("columns", "change"),
    [
        ([*ORDERS, {"name": "note", "type": "string"}], "note: added"),
        (with_changed_column(0, required=False), "id: optional"),
        (with_changed_column(2, type="decimal(20,2)"), "amount: decimal(12,2) -> decimal(20,2)"),
        (with_changed_column(2, doc="in cents"), "amount: its description"),
        (with_changed_column(2, doc=None), "amount: its description"),
        (with_changed_column(1, name="date", renamed_from="day"), "day: renamed to date"),
        ([ORDERS[1], ORDERS[0], *ORDERS[2:]], "columns: in another order"),
        (with_changed_column(3, type="list<struct<sku: string, count: long>>"), "lines.element.count: int -> long"),
        (
            with_changed_column(3, type="list<struct<sku: string, count: int, gift: boolean>>"),
            "lines.element.gift: added",
        ),
        (with_changed_column(4, type="map<string, long>"), "tags.value: int -> long"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_safe_changes_are_one_commit(columns: list[Props], change: str) -> None:
    old, new = table_args(), table_args(columns)

    done = evolve(old, new)

    assert (done.changes, done.problems) == ([change], [])
    assert [update["action"] for update in done.updates] == ["add-schema", "set-current-schema"]
    kinds = [requirement["type"] for requirement in done.body["requirements"]]
    assert kinds == ["assert-table-uuid", "assert-current-schema-id", "assert-last-assigned-field-id"]
    after = create_metadata(old) | {"schemas": [{**find_added_schema(done), "schema-id": 0}]}
    assert evolve(old, new, after).updates == []
    assert observe(after, new).columns == new.columns


def test_column_ids_are_stable_and_new_ones_unused() -> None:
    old = table_args()
    before = ids_by_path(create_metadata(old)["schemas"][0])
    columns = [
        {"name": "note", "type": "struct<a: int, b: list<int>>"},
        *with_changed_column(1, name="date", renamed_from="day"),
    ]

    after = ids_by_path(find_added_schema(evolve(old, table_args(columns))))

    assert after["date"] == before["day"]
    assert after["lines.element.sku"] == before["lines.element.sku"]
    fresh = [number for path, number in after.items() if path.startswith("note")]
    assert sorted(fresh) == list(range(max(before.values()) + 1, max(before.values()) + 1 + len(fresh)))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (with_changed_column(0, type="int"), "`id`: long -> int would narrow it"),
        (with_changed_column(2, type="decimal(10,2)"), "would narrow it"),
        (with_changed_column(2, type="decimal(14,4)"), "is another type"),
        (with_changed_column(1, type="string"), "`day`: date -> string is another type: data stored as date"),
        (with_changed_column(3, type="list<string>"), "is another type"),
        (with_changed_column(4, type="map<int, int>"), "map `tags`: the key type of a map cannot change"),
        (with_changed_column(1, required=True), "`day` would become required, but existing rows may have no value"),
        ([*ORDERS, {"name": "n", "type": "int", "required": True}], "`n` would be added as required"),
        (ORDERS[:-1], "`tags` is in the table and not declared, so it would be dropped"),
        (with_changed_column(1, name="date"), "or set `renamed_from: day` on `date` if it is the same column"),
        (
            with_changed_column(3, type="list<struct<sku: string>>"),
            "`lines.element.count` is in the table and not declared",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unsafe_changes_are_refused_with_the_reason(columns: list[Props], reason: str) -> None:
    problems = evolve(table_args(), table_args(columns)).problems

    assert reason in " ".join(problems)


def test_all_reasons_are_reported_at_once() -> None:
    assert len(evolve(table_args(), table_args(with_changed_column(0, type="int")[:3])).problems) == 3


def test_column_is_dropped_when_it_is_named() -> None:
    done = evolve(table_args(), table_args(ORDERS[:-1], dropped_columns=["tags"]))

    assert (done.changes, done.problems) == (["tags: dropped"], [])
    assert "tags" not in ids_by_path(find_added_schema(done))


def test_partition_column_is_not_dropped() -> None:
    old = table_args(partition_by=["days(day)"])

    done = evolve(old, table_args([ORDERS[0], *ORDERS[2:]], dropped_columns=["day"]))

    assert "partition spec 0 of the table uses it to find files" in done.problems[0]


def test_column_added_by_a_job_meanwhile_is_kept() -> None:
    old = table_args()
    metadata = create_metadata(old)
    extra = {"id": 90, "name": "extra", "required": False, "type": "string"}
    metadata["schemas"][0]["fields"].insert(1, extra)

    done = evolve(old, table_args([*ORDERS, {"name": "note", "type": "string"}]), metadata)

    assert done.problems == []
    assert [field["name"] for field in find_added_schema(done)["fields"]][:3] == ["id", "extra", "day"]


def test_column_added_by_a_job_is_drift_once_seen() -> None:
    """It is kept if the declaration says so."""
    table = table_args()
    metadata = create_metadata(table)
    metadata["schemas"][0]["fields"].append({"id": 90, "name": "extra", "required": False, "type": "string"})

    observed = observe(metadata, table)
    keeping = table_args(undeclared_columns="keep")

    assert [column.name for column in observed.columns][-1] == "extra"
    assert "`extra` is in the table and not declared" in commit(metadata, observed, table, {}).problems[0]
    assert observe(metadata, keeping) == keeping
    assert commit(metadata, observed, keeping, {}).updates == []


def test_column_renamed_by_a_job_is_renamed_back_by_id() -> None:
    table = table_args()
    metadata = create_metadata(table)
    ids = ids_by_path(metadata["schemas"][0])
    metadata["schemas"][0]["fields"][1]["name"] = "when"

    done = commit(metadata, observe(metadata, table), table, ids)

    assert (done.changes, done.problems) == (["when: renamed to day"], [])
    assert ids_by_path(find_added_schema(done))["day"] == ids["day"]


def test_column_dropped_by_a_job_is_restored_with_its_data() -> None:
    table = table_args()
    metadata = create_metadata(table)
    ids = ids_by_path(metadata["schemas"][0])
    without = {**metadata["schemas"][0], "schema-id": 1, "fields": metadata["schemas"][0]["fields"][1:]}
    without["fields"] = [field for field in metadata["schemas"][0]["fields"] if field["name"] != "day"]
    metadata |= {"schemas": [*metadata["schemas"], without], "current-schema-id": 1}

    done = commit(metadata, observe(metadata, table), table, ids)

    assert done.changes == ["day: restored, with its data"]
    assert ids_by_path(find_added_schema(done))["day"] == ids["day"]


def test_identifiers_may_grow_or_go_but_not_shrink() -> None:
    columns = with_changed_column(1, required=True)
    before, after = table_args(columns, identifier=["id"]), table_args(columns, identifier=["id", "day"])

    assert evolve(before, after).problems == []
    assert evolve(after, table_args(columns)).problems == []
    assert "`id` alone may not be unique" in evolve(after, before).problems[0]


@pytest.mark.parametrize("version", [1, 2])
def test_partitions_evolve_and_keep_their_ids(version: int) -> None:
    old = table_args(partition_by=["days(day)", "bucket(8, id)"], format_version=version)
    new = table_args(partition_by=["bucket(8, id)", "truncate(10, amount)"], format_version=version)

    done = evolve(old, new)

    assert done.changes == ["partition_by: bucket(8, id), truncate(10, amount)"]
    fields = next(update["spec"]["fields"] for update in done.updates if update["action"] == "add-spec")
    sent = [(field["transform"], field.get("field-id"), field["name"]) for field in fields]
    added_fields = [("bucket[8]", 1001, "id_bucket"), ("truncate[10]", 1002 if version == 1 else None, "amount_trunc")]
    assert sent == ([("void", 1000, "day_day_1000"), *added_fields] if version == 1 else added_fields)
    assert [requirement["type"] for requirement in done.requirements] == [
        "assert-default-spec-id",
        "assert-last-assigned-partition-id",
    ]


def void_metadata(*sources: int, version: int = 1) -> Props:
    """Return a table from which partition fields of these columns were removed under format version 1."""
    metadata = create_metadata(table_args(format_version=version))
    fields = [
        {"source-id": source, "transform": "void", "name": f"gone_{number}", "field-id": number}
        for number, source in enumerate(sources, 1000)
    ]
    metadata["partition-specs"][0]["fields"] = fields
    return metadata | {"last-partition-id": 999 + len(fields)}


def test_partition_field_returns_under_version_1() -> None:
    """The server would give the new field the id of the removed field of the same column and transform."""
    metadata = void_metadata(1)
    done = evolve(table_args(), table_args(partition_by=["id"]), metadata)
    (spec,) = (update["spec"]["fields"] for update in done.updates if update["action"] == "add-spec")
    assert [(field["transform"], field["field-id"]) for field in spec] == [("void", 1000), ("identity", 1001)]


def test_second_removed_field_of_a_column_needs_version_2() -> None:
    metadata = void_metadata(1)
    metadata["partition-specs"][0]["fields"].append(
        {"source-id": 1, "transform": "identity", "name": "id", "field-id": 1001}
    )
    (problem,) = evolve(table_args(partition_by=["id"]), table_args(), metadata).problems
    assert problem.startswith("partition_by: expected one removed partition field of column `id`, found `gone_1000`")
    assert "Declare `format_version: 2`" in problem

    done = evolve(table_args(partition_by=["id"]), table_args(format_version=2), metadata)
    assert done.problems == []
    assert [update["action"] for update in done.updates] == ["upgrade-format-version", "add-spec", "set-default-spec"]
    assert done.updates[1]["spec"]["fields"] == []


@pytest.mark.parametrize("version", [1, 2])
def test_column_of_a_removed_partition_field_is_dropped(version: int) -> None:
    """The server binds all fields of the partition spec, so format version 2 gets a spec without that field."""
    metadata = void_metadata(3, version=version)
    name = ORDERS[2]["name"]
    remaining = [column for column in ORDERS if column["name"] != name]
    done = evolve(table_args(), table_args(remaining, dropped_columns=[name]), metadata)
    if version == 1:
        assert done.problems[0].startswith(
            f"column `{name}` cannot be dropped: the removed partition field `gone_1000`"
        )
    else:
        assert done.problems == []
        assert [update["spec"]["fields"] for update in done.updates if update["action"] == "add-spec"] == [[]]


def test_removed_field_with_the_name_of_a_column_is_renamed() -> None:
    """Spark keeps the name of a removed identity field. The server then refuses every commit."""
    metadata = void_metadata(1)
    metadata["partition-specs"][0]["fields"][0]["name"] = "id"
    renamed = {"source-id": 1, "transform": "void", "name": "id_1000", "field-id": 1000}
    done = evolve(table_args(), table_args(), metadata)
    assert (done.problems, find_added_fields(done)) == ([], [renamed])

    done = evolve(table_args(), table_args(partition_by=["id"]), metadata)
    identity = {"source-id": 1, "transform": "identity", "name": "id", "field-id": 1001}
    assert (done.problems, find_added_fields(done)) == ([], [renamed, identity])

    done = evolve(table_args(), table_args([*ORDERS, {"name": "id_1000", "type": "int"}]), metadata)
    assert done.problems[0].startswith("partition_by: the removed partition field `id_1000` has the name of a column")
    done = evolve(table_args(), table_args(format_version=2), metadata)
    assert (done.problems, find_added_fields(done)) == ([], [])


def test_partition_ids_of_version_1_have_no_gaps() -> None:
    """Other writers do not always record the last id of a table."""
    metadata = create_metadata(table_args(format_version=1)) | {"last-partition-id": 0}
    done = evolve(table_args(), table_args(partition_by=["id"]), metadata)
    assert [field["field-id"] for field in find_added_fields(done)] == [1000]


def test_new_column_is_not_named_like_a_former_partition_field() -> None:
    metadata = create_metadata(table_args(partition_by=["bucket(8, id)"]))
    columns = [*ORDERS, {"name": "id_bucket", "type": "int"}]
    (problem,) = evolve(table_args(partition_by=["bucket(8, id)"]), table_args(columns), metadata).problems
    assert problem.startswith("column `id_bucket` cannot have this name: partition spec 0 of the table has a field")


def test_sort_order_properties_and_version_in_one_commit() -> None:
    old = table_args(sort_by=["day"], properties={"a": "1", "gone": "x"})
    new = table_args(properties={"a": "2"}, format_version=3)
    metadata = create_metadata(old)
    metadata["properties"]["written-by-an-engine"] = "y"

    done = evolve(old, new, metadata)

    assert done.updates == [
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-properties", "updates": {"a": "2"}},
        {"action": "remove-properties", "removals": ["gone"]},
    ]
    assert "cannot go back to 2" in evolve(new, table_args(format_version=2)).problems[0]


@pytest.mark.parametrize("now", ["key-2", None])
def test_encryption_key_of_a_table_is_fixed(now: str | None) -> None:
    old = table_args(properties={"encryption.key-id": "key-1"})
    new = table_args(properties={"encryption.key-id": now} if now else {})

    (problem,) = evolve(old, new).problems

    assert problem == "properties.encryption.key-id: cannot change from its current value 'key-1'. Declare that value."


def test_encryption_key_may_be_added_to_a_table() -> None:
    done = evolve(table_args(), table_args(properties={"encryption.key-id": "key-1"}))

    assert (done.problems, done.changes) == ([], ["properties.encryption.key-id"])


def test_moved_table_is_never_moved_back() -> None:
    """Every version of the server answers `set-location` of a table with 400 `SetLocationNotAllowed`."""
    table = table_args(location="s3://bucket/orders")
    metadata = create_metadata(table) | {"location": "s3://bucket/moved"}

    done = evolve(table, table, metadata)

    assert done.updates == []
    assert "the table is at s3://bucket/moved, not at the declared s3://bucket/orders" in done.problems[0]


def test_default_values_of_old_and_new_rows() -> None:
    """A default fills existing rows, and changes for new rows only."""
    columns = [*ORDERS, {"name": "rate", "type": "double", "required": True, "default": 1}]
    old, new = table_args(format_version=3), table_args(columns, format_version=3)

    added = find_added_schema(evolve(old, new))["fields"][-1]
    columns[-1] = columns[-1] | {"default": 2.5}
    later = find_added_schema(evolve(new, table_args(columns, format_version=3)))["fields"][-1]

    assert (added["initial-default"], added["write-default"]) == (1.0, 1.0)
    assert (later["initial-default"], later["write-default"]) == (1.0, 2.5)


@pytest.mark.parametrize(
    ("props", "reason"),
    [
        ({"columns": [{"name": "a", "type": "text"}]}, "expected an Iceberg type"),
        ({"columns": [{"name": "a", "type": "decimal(40,2)"}]}, "precision from 1 to 38"),
        ({"columns": [{"name": "a.b", "type": "int"}]}, "must not contain `.`"),
        ({"columns": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}]}, "upper and lower case"),
        ({"columns": [{"name": "a", "type": "timestamp_ns"}]}, "`a` can only be in a table with `format_version: 3`"),
        ({"columns": [{"name": "a", "type": "int", "default": "x"}]}, "must be a value of the column's type"),
        ({"identifier": ["day"]}, "identifier `day` must be required"),
        ({"identifier": ["lines"]}, "neither nested itself nor inside"),
        ({"partition_by": ["hours(day)"]}, "hour does not apply to `day`, which is date"),
        ({"partition_by": ["days(noon)"]}, "there is no column `noon`"),
        ({"partition_by": ["weeks(day)"]}, "expected a column or one of years(c)"),
        (
            {"partition_by": ["days(day)", "months(day) as m"]},
            "use only the finest of years, months, days and hours of",
        ),
        ({"partition_by": ["days(day) as id"]}, "is named like the column `id`"),
        ({"partition_by": ["bucket(4, id)", "bucket(4, id) as b"]}, "`bucket(4, id)` is declared more than once"),
        ({"sort_by": ["day upwards"]}, "expected a column or one of years(c)"),
        ({"properties": {"format-version": "2"}}, "use `format_version`"),
        ({"properties": {"write.data.path": "s3://x/y"}}, "`write.data.path` is refused by Lakekeeper"),
        ({"properties": {"write.metadata.location": "x"}}, "`write.metadata.location` is refused by Lakekeeper"),
        ({"properties": {"write.metadata.compression-codec": "GZIP"}}, "expected none or gzip, found 'GZIP'"),
        ({"name": "a+b"}, "must not contain `+`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_found_before_any_call(props: Props, reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        table_args(**{"columns": ORDERS} | props)

    assert reason in str(caught.value)


def test_existing_tables_may_break_the_declarations_rules() -> None:
    """Columns of another engine never make a state unreadable."""
    table = table_args()
    metadata = create_metadata(table)
    odd = {"id": 90, "name": "odd.Name", "required": False, "type": "interval"}
    metadata["schemas"][0]["fields"] += [odd, {**odd, "id": 91, "name": "DAY"}]

    observed = observe(metadata, table)

    assert TableArgs.from_state(observed.props()) == observed
