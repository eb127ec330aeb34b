"""Paths of roles: new roles get the path of tenants, existing roles keep theirs."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from lakewright.lakekeeper.tenant.role_paths import with_role_paths
from lakewright.lakekeeper.tenant.tenant_history import KeptData, RecordedWarehouse

LAKE = "acme-lakehouse"
KEPT = [KeptData(name="w", origin="w", bucket=LAKE, key_prefix="acme/w")]


def warehouse(path: str | None = None, origin: str = "w", bucket: str = LAKE) -> RecordedWarehouse:
    return RecordedWarehouse(bucket=bucket, deletion="protect", origin=origin, role_path=path)


def find_role_path(
    recorded_warehouse: RecordedWarehouse,
    before: RecordedWarehouse | None = None,
    *,
    kept_data: list[KeptData] | None = None,
    made_before: Collection[str] = (LAKE,),
    in_iam: str | None = None,
    unrecorded: bool = False,
) -> str | None:
    """Return the path of warehouse `w` of tenant acme. IAM may have its role `lakewright.acme.ORIGIN`."""
    completed = with_role_paths(
        "acme",
        {"w": recorded_warehouse},
        {"w": before} if before else {},
        kept_data or [],
        made_now=[LAKE],
        made_before=made_before,
        find_path=lambda role: in_iam if role == f"lakewright.acme.{recorded_warehouse.origin}" else None,
        unrecorded=lambda _: unrecorded,
    )
    return completed["w"].role_path


def test_new_role_gets_the_path() -> None:
    assert find_role_path(warehouse()) == "/lakewright/"


@pytest.mark.parametrize("path", [None, "/lakewright/", "/lakewright/old/"])
def test_recorded_role_keeps_its_path(path: str | None) -> None:
    assert find_role_path(warehouse(), warehouse(path), in_iam="/other/") == path


def test_renamed_warehouse_keeps_the_path_of_its_origin() -> None:
    assert find_role_path(warehouse(origin="first"), warehouse(None, origin="first")) is None


@pytest.mark.parametrize(("in_iam", "path"), [("/", None), ("/lakewright/", "/lakewright/"), (None, "/lakewright/")])
def test_role_without_a_record_is_looked_up(in_iam: str | None, path: str | None) -> None:
    assert find_role_path(warehouse(), in_iam=in_iam, unrecorded=True) == path
    assert find_role_path(warehouse(), kept_data=KEPT, in_iam=in_iam) == path


def test_warehouse_that_moves_to_a_bucket_of_the_stack_is_new() -> None:
    assert find_role_path(warehouse(), warehouse(None, bucket="own"), made_before=[]) == "/lakewright/"


def test_warehouse_on_another_store_has_no_role() -> None:
    assert find_role_path(warehouse(bucket="store")) is None
