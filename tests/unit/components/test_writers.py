"""The principals whose runs write to a warehouse, by its owner and grants, as jobs read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from lakewright.spec import SpecError, TenantSpec, parse_spec
from lakewright.spec.warehouse_writers import find_writers


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
    assert find_writers(spec, spec.warehouses[0]) == dict.fromkeys(expected)


FIRST, LAST = "2040-06-30T12:00:00Z", "2040-07-31"
FIRST_END, LAST_END = datetime(2040, 6, 30, 12, tzinfo=UTC), datetime(2040, 8, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("grants", "end"),
    [
        ([("ownership", HERE, FIRST)], FIRST_END),
        ([("ownership", HERE, FIRST), ("data_admin", PROJECT, LAST)], LAST_END),
        ([("ownership", HERE, FIRST), ("data_admin", PROJECT, None)], None),
        # A run needs both privileges.
        ([("create", HERE, FIRST), ("modify", HERE, LAST)], FIRST_END),
        ([("ownership", HERE, FIRST), ("create", HERE, None), ("modify", PROJECT, LAST)], LAST_END),
    ],
)
def test_writer_ends_with_its_grants(
    grants: list[tuple[str, dict[str, Any], str | None]], end: datetime | None
) -> None:
    document = tenant(ANN).model_dump(mode="json", exclude_unset=True)
    document["grants"] = [
        {"to": BEN, "privilege": privilege, "on": on, **({"until": until} if until else {})}
        for privilege, on, until in grants
    ]
    spec = parse_spec(document, "spec")
    assert find_writers(spec, spec.warehouses[0]) == {BEN: end}


def test_warehouse_without_an_owner_needs_no_list() -> None:
    spec = tenant(None, (BEN, "ownership", HERE))
    assert find_writers(spec, spec.warehouses[0]) == {}


def test_owner_is_written_as_in_grants() -> None:
    with pytest.raises(SpecError, match=r"warehouses.0.owner: expected `user:IDP~SUBJECT` or `role:NAME`"):
        tenant("ann")
