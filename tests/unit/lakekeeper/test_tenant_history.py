"""A warehouse's identity after renames, and what `retain` has left, worked out from the record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakewright.lakekeeper.provider.errors import RemovalRefusedError
from lakewright.lakekeeper.tenant.tenant_history import (
    RecordedWarehouse,
    find_threatened,
    list_added,
    list_removed,
    share_place,
)
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordArgs, TenantRecordProvider
from lakewright.names.types import prefixes_overlap

SERVER = {"endpoint": "http://127.0.0.1:1"}


def warehouse(deletion: str = "protect", **fields: Any) -> dict[str, Any]:
    return {"bucket": "lake", "deletion": deletion, **fields}


def record(before: dict[str, Any] | None = None, /, **warehouses: Any) -> dict[str, Any]:
    """Return the checked inputs of a record that follows a previous one."""
    lists = {key: warehouses.pop(key, []) for key in ("dropped_warehouses", "adopting")}
    props = {"server": SERVER, "tenant": "acme", "warehouses": warehouses, **lists}
    checked = TenantRecordProvider().check(before or {}, props)
    assert not checked.failures
    return checked.inputs


def origins(checked: dict[str, Any]) -> dict[str, str]:
    return {name: one["origin"] for name, one in checked["warehouses"].items()}


def prefixes(checked: dict[str, Any]) -> dict[str, str]:
    return {name: one["key_prefix"] for name, one in checked["warehouses"].items()}


def test_first_record_names_each_warehouse_by_itself() -> None:
    checked = record(a=warehouse(), b=warehouse(key_prefix="elsewhere/b"))

    assert origins(checked) == {"a": "a", "b": "b"}
    assert prefixes(checked) == {"a": "acme/a", "b": "elsewhere/b"}
    assert checked["kept"] == []


def test_origin_and_prefix_outlive_two_renames() -> None:
    first = record(a=warehouse())
    second = record(first, b=warehouse(renamed_from="a"))
    third = record(second, c=warehouse(renamed_from="b"))

    assert record(third, c=warehouse()) == third
    assert (origins(third), prefixes(third)) == ({"c": "a"}, {"c": "acme/a"})


def test_stack_without_a_record_knows_a_rename() -> None:
    assert prefixes(record(b=warehouse(renamed_from="a"))) == {"b": "acme/a"}


def test_new_warehouse_of_an_old_name_gets_its_own_prefix() -> None:
    renamed = record(record(a=warehouse()), b=warehouse(renamed_from="a"))

    checked = record(renamed, b=warehouse(), a=warehouse())

    assert prefixes(checked) == {"b": "acme/a", "a": "acme/a-2"}


KEPT = {"name": "a", "origin": "a", "bucket": "lake", "key_prefix": "acme/a", "deletion": "retain"}


def record_with_retained_data() -> dict[str, Any]:
    """A record of a tenant whose warehouse `a` left the spec with `retain`."""
    both = record(a=warehouse("retain"), b=warehouse("purge"))
    return record(both, b=warehouse("purge"))


def test_retained_data_is_remembered() -> None:
    first = record_with_retained_data()
    later = record(record(first, b=warehouse("purge")), c=warehouse("purge"))

    assert first["kept"] == later["kept"] == [KEPT]
    assert record(later, other=warehouse("purge", key_prefix="acme/a"))["kept"] == [KEPT]


def test_retained_data_outlives_a_failed_adoption() -> None:
    """Only a refresh removes it: the record does not learn whether the warehouse was adopted."""
    without = record(record_with_retained_data(), a=warehouse("purge"))
    with_adopt = record(record_with_retained_data(), a=warehouse("purge"), adopting=["a"])

    assert without["kept"] == with_adopt["kept"] == [KEPT]
    assert record(with_adopt, a=warehouse("purge"))["kept"] == [KEPT | {"is_declared": True}]
    for tried in (without, with_adopt):
        assert record(tried, b=warehouse("purge"))["kept"] == [KEPT]


def test_purge_leaves_nothing() -> None:
    assert record(record(a=warehouse("purge"), b=warehouse()), b=warehouse())["kept"] == []


def test_earlier_deletion_counts_when_a_warehouse_moves() -> None:
    before = record(a=warehouse("retain"))

    assert [item["key_prefix"] for item in record(before, a=warehouse("purge", key_prefix="x"))["kept"]] == ["acme/a"]


@pytest.mark.long
@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["protect", "retain", "purge"]), min_size=1),
        max_size=6,
    )
)
def test_no_two_warehouses_ever_share_a_prefix(specs: list[dict[str, Any]]) -> None:
    """No sequence of added and removed warehouses shares one with another warehouse, or with retained data."""
    before: dict[str, Any] = {}
    for spec in specs:
        before = record(before, **{name: warehouse(deletion) for name, deletion in spec.items()})
        state = TenantRecordArgs.from_state(before)
        live_prefixes = {(item.origin, item.key_prefix) for item in state.warehouses.values()}
        kept_prefixes = [item.key_prefix for item in state.kept if (item.origin, item.key_prefix) not in live_prefixes]
        places = [item.key_prefix or "" for item in state.warehouses.values()] + kept_prefixes
        assert len({prefix.casefold() for prefix in places}) == len(places)


def test_removed_and_added_ignore_a_rename() -> None:
    before = {name: RecordedWarehouse(bucket="lake", deletion="purge", origin=name) for name in ("a", "b")}
    now = {
        "c": RecordedWarehouse(bucket="lake", deletion="purge", origin="a"),
        "d": RecordedWarehouse(bucket="lake", deletion="purge", origin="d"),
    }

    assert list(list_removed(now, before)) == ["b"]
    assert list_added(now, before) == ["d"]


def test_prefixes_overlap_by_whole_segments() -> None:
    assert prefixes_overlap("a", "a/b")
    assert prefixes_overlap("a/b", "a")
    assert not prefixes_overlap("a", "ab")


@pytest.mark.parametrize("deletion", ["protect", "retain", "purge"])
def test_renamed_from_is_refused_where_both_names_exist(deletion: str) -> None:
    before = record(a=warehouse(deletion), b=warehouse(deletion))

    with pytest.raises(RemovalRefusedError, match=r"the state has both `a` and `b`.*restore `a`"):
        record(before, b=warehouse(deletion, renamed_from="a"))


def test_rename_may_be_repeated_and_finished() -> None:
    renamed = record(record(a=warehouse(), c=warehouse()), b=warehouse(renamed_from="a"), c=warehouse())

    assert record(renamed, b=warehouse(renamed_from="a"), c=warehouse()) == renamed


def test_reverted_rename_needs_the_old_name() -> None:
    renamed = record(record(a=warehouse("purge")), b=warehouse("purge", renamed_from="a"))

    with pytest.raises(RemovalRefusedError, match=r"`a` would take .* of warehouse `b`.*give `a` `renamed_from: b`"):
        record(renamed, a=warehouse("purge"))

    assert prefixes(record(renamed, a=warehouse("purge", renamed_from="b"))) == {"a": "acme/a"}


def test_new_name_at_a_removed_prefix_needs_the_old_name() -> None:
    before = record(a=warehouse(key_prefix="shared"))

    with pytest.raises(RemovalRefusedError, match="`renamed_from: a`"):
        record(before, c=warehouse(key_prefix="shared/c"))

    assert prefixes(record(before, c=warehouse(key_prefix="shared", renamed_from="a"))) == {"c": "shared"}


def threats(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    old, new = TenantRecordArgs.from_state(before), TenantRecordArgs.from_state(after)
    kept_data = [*old.kept, *new.kept]
    threatened = find_threatened(new.warehouses, old.warehouses, kept_data, new.dropped_warehouses)
    return sorted({(name, data.name) for name, data in threatened})


def test_data_of_protect_is_threatened_by_purge_only() -> None:
    without_a = record(record(a=warehouse(), b=warehouse()), b=warehouse())
    back = record(without_a, a=warehouse(), b=warehouse())

    assert [(item["name"], item["deletion"]) for item in without_a["kept"]] == [("a", "protect")]
    assert back["kept"] == []
    assert threats(without_a, back) == []
    assert threats(back, record(back, a=warehouse("purge"), b=warehouse())) == []
    assert threats(without_a, record(without_a, a=warehouse("purge"), b=warehouse())) == [("a", "a")]


def test_purged_prefix_that_contains_protected_data() -> None:
    without_a = record(record(a=warehouse(), b=warehouse(key_prefix="b")), b=warehouse(key_prefix="b"))
    over = record(without_a, b=warehouse(key_prefix="b"), c=warehouse(key_prefix="acme"))
    purged = record(over, b=warehouse(key_prefix="b"), c=warehouse("purge", key_prefix="acme"))

    assert threats(without_a, over) == []
    assert threats(over, purged) == [("c", "a")]
    assert threats(purged, purged) == []


def test_dropped_protected_warehouse_is_forgotten() -> None:
    without_a = record(record(a=warehouse(), b=warehouse()), b=warehouse())

    forgotten = record(without_a, b=warehouse(), c=warehouse("purge", key_prefix="acme/a"), dropped_warehouses=["a"])

    assert forgotten["kept"] == []
    assert threats(without_a, forgotten) == []


@pytest.mark.parametrize(("accounts", "share"), [(("eu", "us"), False), (("eu", "eu"), True), ((None, "eu"), True)])
def test_containers_of_one_name_in_two_accounts(accounts: tuple[str | None, str], *, share: bool) -> None:
    """States of earlier versions name no account."""
    first, second = (RecordedWarehouse(**warehouse(key_prefix="sales", account=account)) for account in accounts)

    assert share_place(first, second) is share


def test_retained_places_of_two_accounts_are_both_recorded() -> None:
    first = record(
        a=warehouse("retain", account="eu", key_prefix="sales"), b=warehouse("retain", account="us", key_prefix="sales")
    )

    remaining = record(first)["kept"]

    assert [(data["name"], data["account"]) for data in remaining] == [("a", "eu"), ("b", "us")]
