"""Fields of a spec for tenants that exist under other names and settings."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.spec import SpecError, parse_spec
from lakewright.spec.standard_roles import role_problems, roles_of_unit, standard_grants, standard_roles

PROJECT = "01983a4e-0000-7000-8000-000000000001"


def document(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "environment": "sandbox",
        "name": "acme",
        "owner": "tests",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "executions"}],
        "computing_units": [{"name": "notebook", "runtime": "spark", "warehouse": "executions"}],
    } | changes


def test_project_may_have_another_id_and_name() -> None:
    spec_with_project = parse_spec(document(project={"id": PROJECT, "name": "Acme Inc."}), "test")
    unnamed = parse_spec(document(), "test")

    assert (spec_with_project.project_id, spec_with_project.project_name) == (PROJECT, "Acme Inc.")
    assert (unnamed.project_id, unnamed.project_name) == ("acme", "acme")


def test_without_standard_roles_nothing_is_granted() -> None:
    spec = parse_spec(document(standard_roles=False, role_members={"executions-reader": {"users": ["oidc~a"]}}), "test")

    assert (standard_roles(spec), standard_grants(spec), roles_of_unit(spec, "notebook")) == ([], [], [])
    (problem,) = role_problems(spec)
    assert problem == (
        "role_members.executions-reader",
        "expected a role that `grants` names; nothing is granted to `executions-reader`",
    )


def test_queue_settings_are_in_one_place() -> None:
    warehouse = {"name": "executions", "task_queues": {"expire_snapshots": {"config": {}}}}
    maintenance = {"schedule": "0 3 * * *", "server": {"executions": {"expire_snapshots": True}}}

    with pytest.raises(SpecError, match=r"task_queues\.expire_snapshots.*maintenance\.server\.executions"):
        parse_spec(document(warehouses=[warehouse], maintenance=maintenance), "test")


def test_queue_has_one_name() -> None:
    """Servers before 0.14 call `soft_deletion` `tabular_expiration`."""
    warehouse = {"name": "executions", "task_queues": {"soft_deletion": {}, "tabular_expiration": {}}}

    with pytest.raises(SpecError, match=r"task_queues\.tabular_expiration.*`soft_deletion` is the same queue"):
        parse_spec(document(warehouses=[warehouse]), "test")


def test_remote_signing_is_an_addition_to_vending() -> None:
    warehouse = {"name": "executions", "delegation": "remote-signing", "remote_signing": True}

    with pytest.raises(SpecError, match=r"expected only with `delegation: vended`"):
        parse_spec(document(warehouses=[warehouse]), "test")
