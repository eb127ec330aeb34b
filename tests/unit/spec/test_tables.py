"""Tables in a spec: short notation, and every contradiction found before any call."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.names.table_name import parse_table_name
from lakewright.spec import SpecError, TenantSpec, parse_spec

COLUMNS = [{"name": "id", "type": "long", "required": True}, {"name": "day", "type": "date"}]


def document(*tables: dict[str, Any], **warehouse: Any) -> dict[str, Any]:
    """Return the spec of a tenant with a warehouse `curated` and these tables in it, as written."""
    return {
        "version": 1,
        "environment": "sandbox",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "curated", "namespaces": ["sales.daily"]} | warehouse],
        "tables": [{"columns": COLUMNS} | table for table in tables],
    }


def spec(*tables: dict[str, Any], **warehouse: Any) -> TenantSpec:
    return parse_spec(document(*tables, **warehouse), "the test's spec")


def mistakes(*tables: dict[str, Any], **warehouse: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        spec(*tables, **warehouse)
    return {problem.path: problem.expected for problem in caught.value.problems}


def test_table_has_a_namespace_and_a_deletion() -> None:
    table = {"name": "curated.sales.daily.orders", "partition_by": ["days( day )"], "identifier": ["id"]}

    tenant = spec(table, {"name": 'curated.sales."orders.v2"', "deletion": "purge"})

    assert tenant.tables[0].path == ("curated", ("sales", "daily"), "orders")
    assert tenant.tables[0].partition_by == ["days(day)"]
    assert tenant.tables[1].path.name == "orders.v2"
    assert [tenant.find_deletion(item) for item in tenant.tables] == ["protect", "purge"]


@pytest.mark.parametrize(
    ("table", "path", "reason"),
    [
        ({"name": "curated.orders"}, "name", "expected WAREHOUSE.NAMESPACE.TABLE"),
        ({"name": "raw.sales.orders"}, "name", "there is no `raw`"),
        ({"name": "curated.ops.orders"}, "name", "expected one of the namespaces of warehouse curated"),
        ({"name": "curated.sales.a+b"}, "name", "must not contain `+`"),
        ({"columns": [{"name": "a", "type": "text"}]}, "columns.0.type", "expected an Iceberg type"),
        ({"columns": [{"name": "a", "type": "int", "nullable": True}]}, "columns.0.nullable", "unknown key"),
        ({"columns": []}, "columns", "at least 1 item"),
        ({"partition_by": ["days(noon)"]}, "", "there is no column `noon`"),
        ({"partition_by": ["weeks(day)"]}, "partition_by.0", "expected a column or one of"),
        ({"format_version": 3}, "format_version", "expected a version that warehouse curated allows: 1, 2"),
        ({"renamed_from": "raw.sales.orders"}, "", "must be in the same warehouse"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_mistake_is_reported_with_its_path(table: dict[str, Any], path: str, reason: str) -> None:
    problems = mistakes({"name": "curated.sales.orders"} | table, format_versions=[1, 2])

    assert reason in problems[f"tables.0.{path}".rstrip(".")]


@pytest.mark.parametrize(
    ("warehouse", "table", "fits"),
    [
        ("protect", "protect", True),
        ("protect", "purge", True),
        ("retain", "protect", False),
        ("retain", "purge", True),
        ("purge", "retain", False),
        ("purge", "protect", False),
    ],
)
def test_table_is_kept_no_longer_than_its_warehouse(warehouse: str, table: str, *, fits: bool) -> None:
    one = {"name": "curated.sales.orders", "deletion": table}

    if fits:
        spec(one, deletion=warehouse)
    else:
        assert "tables.0.deletion" in mistakes(one, deletion=warehouse)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.b.c", ("a", ("b",), "c")),
        ("a.b.c.d", ("a", ("b", "c"), "d")),
        ('"a.b".c."d""e"', ("a.b", ("c",), 'd"e')),
        ("a.b.`c.``d`", ("a", ("b",), "c.`d")),
    ],
)
def test_names_are_read_and_written_with_quotes_where_needed(text: str, parts: Any) -> None:
    name = parse_table_name(text)

    assert name == parts
    assert parse_table_name(str(name)) == name


@pytest.mark.parametrize("text", ["", "a", "a.b", "a..c", "a.b.", ".a.b", 'a.b."c', 'a.b.c"d"'])
def test_invalid_names_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected WAREHOUSE\.NAMESPACE\.TABLE"):
        parse_table_name(text)


@pytest.mark.parametrize("name", ["curated.sales.daily.`orders`", "curated.sales.daily.Orders"])
def test_tables_that_differ_only_in_case_or_quotes(name: str) -> None:
    problems = mistakes({"name": "curated.sales.daily.orders"}, {"name": name})

    reason = "Names that differ only in case or quotes are the same name"
    assert problems == {
        "tables.1.name": f"expected a unique name; tables.0 is `curated.sales.daily.orders`, too. {reason}"
    }


@pytest.mark.parametrize("name", ["curated.sales.daily.orders", "curated.sales.daily.`Orders`"])
def test_view_cannot_have_the_name_of_a_table(name: str) -> None:
    """Tables and views of a namespace share their names on the server, which ignores case."""
    view = {"name": name, "columns": COLUMNS, "sql": {"spark": "SELECT 1"}}

    with pytest.raises(SpecError) as caught:
        parse_spec(document({"name": "curated.sales.daily.orders"}) | {"views": [view]}, "the test's spec")

    expected = "expected another name than that of the table `curated.sales.daily.orders` of tables.0"
    assert [(problem.path, problem.expected) for problem in caught.value.problems] == [("views.0.name", expected)]


REFUSED_BY_SERVERS = {
    "write.data.path": "s3://elsewhere/data",
    "write.metadata.compression-codec": "zstd",
    "write.metadata.path": "s3://elsewhere/metadata",
}


def test_properties_that_servers_refuse_are_reported() -> None:
    """Lakekeeper 0.11 to 0.14 respond with 409 `FailedToSetProperties`, or 400 `UnsupportedCompressionCodec`."""
    found_mistakes = mistakes(
        {"name": "curated.sales.daily.orders", "properties": REFUSED_BY_SERVERS},
        {"name": "curated.sales.daily.lines", "properties": {"write.data.path.x": "y"}},
    )

    assert list(found_mistakes) == ["tables.0.properties", "tables.1.properties"]
    for key in REFUSED_BY_SERVERS:
        assert f"`{key}`" in found_mistakes["tables.0.properties"]
    assert "expected none or gzip, found 'zstd'" in found_mistakes["tables.0.properties"]


def test_properties_that_servers_know_are_accepted() -> None:
    properties = {
        "encryption.key-id": "key-1",
        "write.data.format": "parquet",
        "write.metadata.compression-codec": "none",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.metrics.column.id": "full",
        "write.metadata.metrics.default": "counts",
        "write.metadata.previous-versions-max": "10",
    }

    assert spec({"name": "curated.sales.daily.orders", "properties": properties}).tables[0].properties == properties


@pytest.mark.parametrize(
    ("view", "path", "reason"),
    [
        ({"default_namespace": "Sales.daily"}, "default_namespace", "in the same case: sales, sales.daily"),
        ({"default_namespace": "raw"}, "default_namespace", "declare `raw` there"),
        ({"properties": {"write.data.path": "s3://b/x"}}, "properties", "is refused by Lakekeeper"),
    ],
    ids=["case", "undeclared", "property"],
)
def test_mistakes_of_a_view_are_reported(view: dict[str, Any], path: str, reason: str) -> None:
    written = {"name": "curated.sales.daily.large", "columns": COLUMNS, "sql": {"spark": "SELECT 1"}} | view
    with pytest.raises(SpecError) as caught:
        parse_spec(document() | {"views": [written]}, "the test's spec")

    (problem,) = caught.value.problems
    assert problem.path == f"views.0.{path}"
    assert reason in problem.expected
