"""The principals whose runs write to a warehouse, by its owner and grants, as jobs read them."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.spec import SpecError, TenantSpec, parse_spec
from lakewright.spec.warehouse_writers import writers


def tenant(owner: str | None, *grants: tuple[str, str, dict[str, Any]]) -> TenantSpec:
    """Return a tenant whose warehouse `anns` has this owner, with grants (to, privilege, on)."""
    return parse_spec(
        {
            "version": 1,
            "environment": "sandbox",
            "name": "acme",
            "owner": "data@acme.example",
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": [{"name": "anns", **({"owner": owner} if owner else {})}, {"name": "bens"}],
            "grants": [{"to": to, "privilege": privilege, "on": on} for to, privilege, on in grants],
        },
        "spec",
    )


ANN, BEN = "user:oidc~ann", "user:oidc~ben"
HERE, ELSEWHERE, PROJECT = {"warehouse": "anns"}, {"warehouse": "bens"}, {"project": True}
RESULTS = {"warehouse": "anns", "namespace": "results"}


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ([], ()),
        ([(BEN, "ownership", HERE)], (BEN,)),
        ([(BEN, "create", HERE), (BEN, "modify", HERE)], (BEN,)),
        ([(BEN, "create", PROJECT), (BEN, "modify", HERE)], (BEN,)),
        ([("role:ops", "data_admin", PROJECT), (BEN, "project_admin", PROJECT)], ("role:ops", BEN)),
        ([(ANN, "ownership", HERE)], ()),
        # Not enough to make the tables that a run writes, or elsewhere.
        ([(BEN, "modify", HERE)], ()),
        ([(BEN, "create", HERE), (BEN, "select", HERE)], ()),
        ([(BEN, "ownership", ELSEWHERE), (BEN, "ownership", RESULTS), (BEN, "security_admin", PROJECT)], ()),
    ],
)
def test_writers_beside_the_owner(grants: list[tuple[str, str, dict[str, Any]]], expected: tuple[str, ...]) -> None:
    spec = tenant(ANN, *grants)
    assert writers(spec, spec.warehouses[0]) == expected


def test_warehouse_without_an_owner_needs_no_list() -> None:
    spec = tenant(None, (BEN, "ownership", HERE))
    assert writers(spec, spec.warehouses[0]) == ()


def test_owner_is_written_as_in_grants() -> None:
    with pytest.raises(SpecError, match=r"warehouses.0.owner: expected `user:IDP~SUBJECT` or `role:NAME`"):
        tenant("ann")
