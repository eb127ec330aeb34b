"""The grants that enforcement of limits suspends."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.limits.limited_parts import MeasuredLimit, find_full_parts, read_measured_limits
from lakewright.spec import TenantSpec
from lakewright.spec.grant import GrantSpec
from lakewright.spec.limit_enforcement import list_limited_parts, list_unenforceable_parts
from lakewright.spec.limits import WarehouseLimitsSpec
from lakewright.spec.standard_roles import standard_grants
from pydantic import ValidationError

LIMITS = {
    "bytes": "1TiB",
    "enforce": True,
    "exempt": ["role:cleaners"],
    "namespaces": {"sales.daily": {"tables": 5, "enforce": True}, "free": {"tables": 5}},
}


def make_tenant(**changes: Any) -> TenantSpec:
    """Return a tenant with two warehouses, of which the first has enforced limits."""
    warehouses = [
        {"name": "main", "namespaces": ["sales", "sales.daily", "free"], "limits": LIMITS},
        {"name": "raw", "namespaces": ["landing"]},
    ]
    return TenantSpec.model_validate(
        {
            "version": 1,
            "name": "acme",
            "owner": "data@acme.example",
            "environment": "sandbox",
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": warehouses,
            **changes,
        }
    )


def list_parts(privilege: str, to: str = "role:analysts", **on: Any) -> list[str]:
    """Return the parts that suspend a grant."""
    return list_limited_parts(make_tenant(), GrantSpec.model_validate({"to": to, "privilege": privilege, "on": on}))


MAIN, DAILY = "warehouse main", "namespace main.sales.daily"


@pytest.mark.parametrize(
    ("on", "parts"),
    [
        ({"project": True}, [MAIN, DAILY]),
        ({"warehouse": "main"}, [MAIN, DAILY]),
        ({"warehouse": "raw"}, []),
        ({"warehouse": "main", "namespace": "sales"}, [MAIN, DAILY]),
        ({"warehouse": "main", "namespace": "SALES.daily"}, [MAIN, DAILY]),
        ({"warehouse": "main", "namespace": "sales.daily.more"}, [MAIN, DAILY]),
        ({"warehouse": "main", "namespace": "free"}, [MAIN]),
        ({"warehouse": "main", "table": "sales.orders"}, [MAIN]),
        ({"warehouse": "main", "table": "sales.daily.orders"}, [MAIN, DAILY]),
    ],
    ids=str,
)
def test_parts_that_suspend_a_grant(on: dict[str, Any], parts: list[str]) -> None:
    assert list_parts("modify", **on) == parts


def test_reading_owning_and_exempt_grants_remain() -> None:
    assert list_parts("select", warehouse="main") == []
    assert list_parts("ownership", warehouse="main") == []
    assert list_parts("data_admin", project=True) == []
    assert list_parts("modify", "role:cleaners", warehouse="main") == [DAILY], "exempt from the limit of the warehouse"


def test_writers_are_suspended_and_maintainers_are_not() -> None:
    tenant = make_tenant(limits={"files": 5, "enforce": True})
    suspended = [(grant.to, grant.privilege) for grant in standard_grants(tenant) if list_limited_parts(tenant, grant)]
    assert {*suspended} == {
        ("role:main-writer", "create"),
        ("role:main-writer", "modify"),
        ("role:raw-writer", "create"),
        ("role:raw-writer", "modify"),
    }


def test_part_without_grants_cannot_be_enforced() -> None:
    assert list_unenforceable_parts(make_tenant(), []) == [MAIN, DAILY]
    assert list_unenforceable_parts(make_tenant(), standard_grants(make_tenant())) == []


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"enforce": True}, "expected a limit of `bytes`, `files`"),
        ({"bytes": "1TiB", "exempt": ["role:a"]}, "expected `exempt` with `enforce: true` only"),
        ({"bytes": "1TiB", "enforce": True, "exempt": ["cleaners"]}, "expected `user:IDP~SUBJECT` or `role:NAME`"),
    ],
)
def test_mistakes_of_enforcement(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_tenant(limits=limits)


@pytest.mark.parametrize(
    ("used", "full_before", "is_complete", "full"),
    [
        (99, (), True, ()),
        (100, (), True, (MAIN,)),
        (95, (MAIN,), True, (MAIN,)),
        (94, (MAIN,), True, ()),
        (94, (MAIN,), False, (MAIN,)),
        (100, (), False, (MAIN,)),
        (None, (MAIN,), True, (MAIN,)),
    ],
)
def test_enforcement_ends_below_95_percent_of_the_limit(
    used: int | None, full_before: tuple[str, ...], is_complete: object, full: tuple[str, ...]
) -> None:
    """Without a measurement of the part, its enforcement continues."""
    limits = [] if used is None else [MeasuredLimit(MAIN, "tables", 100, used)]
    assert find_full_parts(limits, {MAIN}, full_before, is_complete=bool(is_complete)) == full


def test_part_that_is_no_longer_enforced_is_left() -> None:
    assert find_full_parts([MeasuredLimit(MAIN, "tables", 1, 5)], set(), [MAIN], is_complete=True) == ()


def test_limit_of_compute_alone_suspends_no_grant() -> None:
    tenant = make_tenant(warehouses=[{"name": "raw"}], limits={"compute": 100, "enforce": True})
    grant = GrantSpec.model_validate({"to": "role:analysts", "privilege": "modify", "on": {"warehouse": "raw"}})

    assert tenant.enforces_compute
    assert list_limited_parts(tenant, grant) == []
    assert list_unenforceable_parts(tenant, [grant]) == []


def test_enforcement_needs_a_limit() -> None:
    with pytest.raises(ValidationError, match="expected a limit of `bytes`, `files`, `tables` or `compute`"):
        make_tenant(warehouses=[{"name": "raw"}], limits={"enforce": True})


def test_limit_of_compute_of_a_warehouse_is_not_enforced() -> None:
    """The quota of the tenant's namespace would stop the units of all warehouses."""
    entry = {"warehouse": "main", "namespace": None, "quantity": "compute", "limit": 10, "used": 12}
    tenant = {"warehouse": None, "namespace": None, "quantity": "compute", "limit": 100, "used": 100}

    assert [limit.limit for limit in read_measured_limits({"limits": [entry, tenant]})] == [100]

    assert WarehouseLimitsSpec.model_validate({"compute": 10}).build_warehouse_limits().compute == 10


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        (
            {"compute": 10, "enforce": True},
            "expected a limit of `bytes`, `files` or `tables` (`compute` of a warehouse is reported, and not enforced)",
        ),
        ({"namespaces": {"sales": {"compute": 10}}}, "hours belong to no namespace"),
    ],
)
def test_limits_of_compute_that_cannot_hold(limits: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as refused:
        make_tenant(warehouses=[{"name": "main", "namespaces": ["sales"], "limits": limits}])
    assert problem in str(refused.value)
