"""Roles of warehouses: what each is granted, and which a unit has."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.lakekeeper.api.connection.privileges import RELATIONS
from lakewright.names.object_names import MAINTENANCE
from lakewright.spec import TenantSpec
from lakewright.spec.standard_roles import ON_NAMESPACES, ON_WAREHOUSE, role_problems, roles_of_unit, standard_grants
from lakewright_sandbox.lakekeeper.authz.actions import NAMESPACE, WAREHOUSE
from lakewright_sandbox.lakekeeper.authz.model import RULES


def tenant(**changes: Any) -> TenantSpec:
    spec: dict[str, Any] = {
        "version": 1,
        "environment": "here",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse", "region": "us-east-1"}},
        "warehouses": [{"name": "a", "namespaces": ["sales.daily", "sales", "raw"]}, {"name": "b"}],
        "computing_units": [
            {"name": "bound", "runtime": "texera", "warehouse": "a"},
            {"name": "any", "runtime": "texera", "warehouses": "all"},
        ],
        "maintenance": {"schedule": "0 2 * * *"},
    }
    return TenantSpec.model_validate(spec | changes)


def list_grants(role: str) -> list[tuple[str, str]]:
    return [(grant.privilege, str(grant.on)) for grant in standard_grants(tenant()) if grant.role == role]


def test_each_role_has_exactly_its_warehouse() -> None:
    assert list_grants("a-owner") == [("ownership", "warehouse a")]
    assert list_grants("a-reader") == [("select", "warehouse a")]
    assert list_grants("a-maintainer") == [("modify", "warehouse a")]
    assert list_grants("a-writer") == [
        ("select", "warehouse a"),
        ("create", "warehouse a"),
        ("modify", "namespace a.sales"),
        ("modify", "namespace a.raw"),
    ]
    assert list_grants("b-writer") == [("select", "warehouse b"), ("create", "warehouse b")]


@pytest.mark.parametrize(
    ("grant", "paths"),
    [
        ({"to": "role:a-reader", "privilege": "select", "on": {"warehouse": "a"}}, ["grants.0.until"]),
        (
            {"to": "role:a-writer", "privilege": "modify", "on": {"warehouse": "a", "namespace": "Sales"}},
            ["grants.0.until"],
        ),
        ({"to": "role:a-reader", "privilege": "select", "on": {"warehouse": "b"}}, []),
        ({"to": "role:partners", "privilege": "select", "on": {"warehouse": "a"}}, []),
    ],
)
def test_grant_of_a_standard_role_cannot_end(grant: dict[str, Any], paths: list[str]) -> None:
    """The role would keep the standard grant after the end, so its members end instead."""
    problems = [*role_problems(tenant(grants=[grant | {"until": "2040-06-30"}]))]

    assert [path for path, _ in problems] == paths
    assert all("expected no end" in reason and "role_members.a-" in reason for _, reason in problems)
    assert [*role_problems(tenant(grants=[grant]))] == []


def test_units_and_jobs_have_the_roles_of_what_they_see() -> None:
    spec = tenant()

    assert roles_of_unit(spec, "bound") == ["a-writer"]
    assert roles_of_unit(spec, "any") == ["a-writer", "b-writer"]
    assert roles_of_unit(spec, MAINTENANCE) == ["a-maintainer", "b-maintainer"]


def derive_actions(kind: str, relations: set[str], relation_by_action: dict[str, str]) -> set[str]:
    """Return the actions that relations on an object allow, by Lakekeeper's model."""
    effective = set(relations)
    while more := {
        name
        for name, terms in RULES[kind].items()
        if name not in effective and any(isinstance(term, str) and term in effective for term in terms)
    }:
        effective |= more
    return {action for action, relation in relation_by_action.items() if relation in effective}


def test_writer_changes_no_warehouse() -> None:
    allowed = derive_actions("warehouse", set(ON_WAREHOUSE["writer"]), WAREHOUSE)

    assert {"create_namespace", "get_config", "list_everything"} <= allowed
    assert not allowed & {"delete", "update_storage", "rename", "set_protection", "deactivate", "modify_soft_deletion"}
    inside = derive_actions("namespace", {*ON_WAREHOUSE["writer"], *ON_NAMESPACES["writer"]}, NAMESPACE)
    assert {"create_table", "create_namespace", "update_properties"} <= inside


def test_reader_changes_nothing() -> None:
    reading = {"get_metadata", "get_config", "list_namespaces", "list_everything", "use", "include_in_list"}
    reading |= {"list_deleted_tabulars", "get_task_queue_config", "get_all_tasks", "get_endpoint_statistics"}

    assert derive_actions("warehouse", set(ON_WAREHOUSE["reader"]), WAREHOUSE) == reading


def test_only_owners_may_grant() -> None:
    for kind in ("writer", "reader", "maintainer"):
        assert "read_grants" not in derive_actions("warehouse", set(ON_WAREHOUSE[kind]), WAREHOUSE)
    assert set(ON_WAREHOUSE["owner"]) <= set(RELATIONS["warehouse"])
