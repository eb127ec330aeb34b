"""Two stacks with one tenant or one place."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.spec import TenantSpec
from lakewright.spec.neighbours import shared_with

ROLE = "arn:aws:iam::123456789012:role/lake"
OWN = {"backend": "existing", "bucket": "lake", "region": "eu-west-1", "role_arn": ROLE}


def tenant(name: str, storage: dict[str, Any] | None = None, **changes: Any) -> TenantSpec:
    spec: dict[str, Any] = {
        "version": 1,
        "environment": "production",
        "name": name,
        "owner": "data@example.org",
        "storage": {"main": storage or {"backend": "aws", "bucket": f"{name}-lakehouse"}},
        "warehouses": [{"name": "executions"}],
    }
    return TenantSpec.model_validate(spec | changes)


def found(one: TenantSpec, other: TenantSpec) -> dict[str, str]:
    return dict(shared_with(one, {"other.yaml": other}))


def test_one_tenant_in_two_stacks() -> None:
    message = found(tenant("acme"), tenant("acme", {"backend": "aws", "bucket": "another"}))["name"]
    assert message == "expected a tenant that no other stack declares; other.yaml declares tenant `acme` too"


def test_one_tenant_in_two_environments_is_fine() -> None:
    assert not found(tenant("acme"), tenant("acme", environment="staging"))


def test_different_tenants_and_places_are_fine() -> None:
    assert not found(tenant("acme"), tenant("globex"))
    assert not found(tenant("acme", OWN), tenant("globex", OWN)), "each has a prefix of its own"


def test_one_bucket_that_two_stacks_make() -> None:
    shared = {"backend": "aws", "bucket": "lake"}
    assert (
        "other.yaml declares s3://lake too"
        in found(tenant("acme", shared), tenant("globex", shared))["storage.main.bucket"]
    )


@pytest.mark.parametrize("prefix", ["shared", "shared/inner"])
def test_overlapping_prefixes(prefix: str) -> None:
    one = tenant("acme", OWN, warehouses=[{"name": "executions", "key_prefix": "shared"}])
    other = tenant("globex", OWN, warehouses=[{"name": "executions", "key_prefix": prefix}])
    for left, right in ((one, other), (other, one)):
        assert "expected a place that no other stack uses" in found(left, right)["warehouses.0.key_prefix"]


def test_prefix_beside_another_is_no_overlap() -> None:
    one = tenant("acme", OWN, warehouses=[{"name": "executions", "key_prefix": "shared"}])
    other = tenant("globex", OWN, warehouses=[{"name": "executions", "key_prefix": "shared-2"}])
    assert not found(one, other)


def test_prefix_in_a_bucket_that_another_stack_makes() -> None:
    maker = tenant("globex", {"backend": "aws", "bucket": "lake"})
    assert "s3://lake too" in found(tenant("acme", OWN), maker)["warehouses.0.key_prefix"]
