"""Grants in a spec: principal, privilege and object."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.spec import SpecError, parse_spec

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "acme",
    "owner": "data@acme.example",
    "environment": "production",
    "storage": {"main": {"backend": "aws", "bucket": "acme-lake", "region": "us-west-2"}},
    "warehouses": [{"name": "curated", "namespaces": ["sales"]}],
}
SELECT = {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "curated"}}


def read(**changes: Any) -> Any:
    return parse_spec(SPEC | {"grants": [SELECT | changes]}, "the test's spec").grants[0]


def mistakes(*grants: Any) -> dict[str, str]:
    """Return the mistakes: path, and what was expected."""
    with pytest.raises(SpecError) as caught:
        parse_spec(SPEC | {"grants": list(grants)}, "the test's spec")
    return {problem.path: problem.expected for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("on", "kind"),
    [
        ({"project": True}, "project"),
        ({"warehouse": "curated"}, "warehouse"),
        ({"warehouse": "curated", "namespace": "sales.daily"}, "namespace"),
        ({"warehouse": "curated", "table": "sales.daily.orders"}, "table"),
    ],
)
def test_objects_of_grants(on: dict[str, Any], kind: str) -> None:
    assert read(on=on).on.kind == kind


def test_table_is_named_by_namespace_and_name() -> None:
    assert read(on={"warehouse": "curated", "table": "sales.daily.`orders.v2`"}).on.table_path == (
        "sales.daily",
        "orders.v2",
    )


def test_principals_of_grants() -> None:
    assert (read().role, read().user) == ("analysts", None)
    assert read(to="user:oidc~auth0|1f2e").user == "oidc~auth0|1f2e"


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        ({"to": "analysts"}, "grants.0.to", "expected `user:IDP~SUBJECT` or `role:NAME`"),
        ({"to": "user:alice"}, "grants.0.to", "a user's id is `IDP~SUBJECT`"),
        ({"privilege": "read"}, "grants.0.privilege", "'select'"),
        (
            {"privilege": "create", "on": {"warehouse": "curated", "table": "a.b"}},
            "grants.0",
            "on a table; expected one",
        ),
        (
            {"privilege": "ownership", "on": {"project": True}},
            "grants.0",
            "on a project; expected one of project_admin",
        ),
        ({"privilege": "project_admin"}, "grants.0", "`project_admin` cannot be granted on a warehouse"),
        ({"on": {}}, "grants.0.on", "expected `project: true` or a `warehouse`"),
        ({"on": {"project": True, "namespace": "a"}}, "grants.0.on", "expected a `warehouse` with a namespace"),
        ({"on": {"warehouse": "curated", "table": "orders"}}, "grants.0.on.table", "expected NAMESPACE.TABLE"),
        ({"on": {"warehouse": "curated", "namespace": "system"}}, "grants.0.on.namespace", "`system` is reserved"),
        ({"on": {"warehouse": "raw"}}, "grants.0.on.warehouse", "there is no `raw`"),
    ],
)
def test_each_mistake_is_reported_with_its_path(change: dict[str, Any], path: str, expected: str) -> None:
    assert expected in mistakes(SELECT | change)[path]


def test_repeated_grant_is_a_mistake() -> None:
    assert mistakes(SELECT, SELECT)["grants.1"] == "expected each grant once; grants.0 is the same"


def test_roles_that_differ_only_in_case_are_refused() -> None:
    problems = mistakes(SELECT, SELECT | {"to": "role:Analysts", "privilege": "modify"})

    assert problems == {
        "grants.1.to": "expected one spelling of a role; grants.0 has `analysts`, and Lakekeeper ignores case"
    }


@pytest.mark.parametrize("standard_roles", [True, False])
def test_grant_to_a_standard_role_in_another_case(*, standard_roles: bool) -> None:
    """The stack makes the standard roles for members, unless the spec turns them off."""
    document = SPEC | {
        "grants": [SELECT | {"to": "role:Curated-Reader"}],
        "standard_roles": standard_roles,
        "role_members": {"Curated-Reader": {"users": ["oidc~ann"]}},
    }

    if standard_roles:
        with pytest.raises(SpecError, match=r"grants\.0\.to: .*the list of standard roles has `curated-reader`"):
            parse_spec(document, "the test's spec")
    else:
        parse_spec(document, "the test's spec")


def test_grant_in_the_case_of_a_role_that_is_not_made() -> None:
    """Without units, jobs and members, the stack makes no standard roles."""
    parse_spec(SPEC | {"grants": [SELECT | {"to": "role:Curated-Reader"}]}, "the test's spec")
