"""Tables that must not be shared: the spec's own grants keep that promise. Tags need existing columns."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.spec import SpecError, parse_spec

TABLE = {"name": "anns.hr.salaries", "columns": [{"name": "email", "type": "string"}]}


def mistakes(*grants: tuple[str, str, Any], tables: Any = (), policies: Any = ()) -> dict[str, str]:
    """Return the mistakes of a tenant with ann's warehouse and grants (to, privilege, on)."""
    spec = {
        "version": 1,
        "environment": "sandbox",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "anns", "owner": "user:oidc~ann", "namespaces": ["hr", "hr.old", "sales"]}],
        "grants": [{"to": to, "privilege": privilege, "on": target} for to, privilege, target in grants],
        "tables": list(tables),
        "policies": list(policies),
    }
    try:
        parse_spec(spec, "spec")
    except SpecError as error:
        return {problem.path: problem.expected for problem in error.problems}
    return {}


def warehouse_object(**inside: str) -> dict[str, str]:
    return {"warehouse": "anns", **inside}


CLOSED = TABLE | {"policies": {"sharing": False}}
NO_HR = {"match": "anns.hr.*", "sharing": False}
BEN = "user:oidc~ben"


@pytest.mark.parametrize(
    ("grant", "tables", "policies", "by"),
    [
        ((BEN, "select", warehouse_object(table="hr.salaries")), [CLOSED], [], "tables.0.policies.sharing"),
        ((BEN, "select", warehouse_object(table="hr.salaries")), [], [NO_HR], "policies.0.sharing"),
        (
            (BEN, "select", warehouse_object(table="hr.salaries")),
            [TABLE],
            [{"match": "*.*.*", "sharing": True}, NO_HR],
            "policies.1",
        ),
        # A grant on what contains the table gives access to it as well.
        ((BEN, "describe", warehouse_object(namespace="hr")), [CLOSED], [], "tables.0.policies.sharing"),
        # The server ignores case.
        ((BEN, "select", warehouse_object(namespace="HR")), [CLOSED], [], "tables.0.policies.sharing"),
        ((BEN, "select", warehouse_object(table="Hr.Salaries")), [CLOSED], [], "tables.0.policies.sharing"),
        (("role:analysts", "select", warehouse_object()), [TABLE], [NO_HR], "policies.0.sharing"),
        ((BEN, "select", {"project": True}), [CLOSED], [], "tables.0.policies.sharing"),
    ],
)
def test_grant_that_would_share_the_table_is_refused(grant: Any, tables: Any, policies: Any, by: str) -> None:
    problems = mistakes(grant, tables=tables, policies=policies)
    expected = "expected no grant that reaches anns.hr.salaries, which is not shared, by " + by
    assert expected.casefold() in problems["grants.0"].casefold()


@pytest.mark.parametrize(
    ("grant", "tables", "policies"),
    [
        (("user:oidc~ann", "select", warehouse_object(table="hr.salaries")), [CLOSED], []),  # The owner's own grant.
        ((BEN, "select", warehouse_object(namespace="sales")), [CLOSED], [NO_HR]),
        ((BEN, "select", warehouse_object(table="hr.salaries")), [TABLE | {"policies": {"sharing": True}}], [NO_HR]),
        (
            (BEN, "select", warehouse_object(table="hr.salaries")),
            [TABLE],
            [NO_HR, {"match": "anns.hr.*", "sharing": True}],
        ),
        ((BEN, "select", warehouse_object(table="hr.salaries")), [TABLE], []),
    ],
)
def test_grant_that_keeps_the_promise(grant: Any, tables: Any, policies: Any) -> None:
    assert mistakes(grant, tables=tables, policies=policies) == {}


def test_tags_need_columns_of_the_table() -> None:
    struct = {"name": "who", "type": "struct<phone: string>"}
    columns = [*TABLE["columns"], struct]
    tagged = TABLE | {"columns": columns, "policies": {"column_tags": {"email": ["PII"], "who.phone": ["PII", "HC"]}}}
    assert mistakes(tables=[tagged]) == {}

    wrong = TABLE | {
        "policies": {"column_tags": {"e-mail": ["PII"]}, "compaction": {"strategy": "sort", "columns": ["n"]}}
    }
    message = mistakes(tables=[wrong])["tables.0"]
    assert "column_tags: expected columns of the table, email; there is no e-mail" in message
    assert "compaction: expected columns of the table, email; there is no n" in message
