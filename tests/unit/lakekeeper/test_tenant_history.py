"""Who a warehouse is after renames, and what `retain` has left: worked out from what was recorded before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakewright.lakekeeper.tenant_history import RecordedWarehouse, added, overlaps, removed
from lakewright.lakekeeper.tenant_record import TenantRecordArgs, TenantRecordProvider

SERVER = {"endpoint": "http://127.0.0.1:1"}


def warehouse(deletion: str = "protect", **fields: Any) -> dict[str, Any]:
    return {"bucket": "lake", "deletion": deletion, **fields}


def record(before: dict[str, Any] | None = None, /, **warehouses: dict[str, Any]) -> dict[str, Any]:
    """The checked inputs of a record, after those of before."""
    props = {"server": SERVER, "tenant": "acme", "warehouses": warehouses}
    checked = TenantRecordProvider().check(before or {}, props)
    assert not checked.failures
    return checked.inputs


def origins(checked: dict[str, Any]) -> dict[str, str]:
    return {name: one["origin"] for name, one in checked["warehouses"].items()}


def prefixes(checked: dict[str, Any]) -> dict[str, str]:
    return {name: one["key_prefix"] for name, one in checked["warehouses"].items()}


def test_a_first_record_names_each_warehouse_by_itself() -> None:
    checked = record(a=warehouse(), b=warehouse(key_prefix="elsewhere/b"))

    assert origins(checked) == {"a": "a", "b": "b"}
    assert prefixes(checked) == {"a": "acme/a", "b": "elsewhere/b"}
    assert checked["kept"] == []


def test_origin_and_prefix_outlive_two_renames_and_their_words() -> None:
    first = record(a=warehouse())
    second = record(first, b=warehouse(renamed_from="a"))
    third = record(second, c=warehouse(renamed_from="b"))

    assert record(third, c=warehouse()) == third
    assert (origins(third), prefixes(third)) == ({"c": "a"}, {"c": "acme/a"})


def test_a_rename_is_known_to_a_stack_without_a_record() -> None:
    assert prefixes(record(b=warehouse(renamed_from="a"))) == {"b": "acme/a"}


def test_a_new_warehouse_of_an_old_name_gets_a_place_of_its_own() -> None:
    renamed = record(record(a=warehouse()), b=warehouse(renamed_from="a"))

    checked = record(renamed, b=warehouse(), a=warehouse())

    assert prefixes(checked) == {"b": "acme/a", "a": "acme/a-2"}


def test_retained_data_is_remembered_until_it_is_declared_again() -> None:
    both = record(a=warehouse("retain"), b=warehouse("purge"))
    left = record(both, b=warehouse("purge"))
    later = record(record(left, b=warehouse("purge")), c=warehouse("purge"))

    kept = [{"name": "a", "origin": "a", "bucket": "lake", "key_prefix": "acme/a"}]
    assert left["kept"] == later["kept"] == kept
    assert record(later, a=warehouse("purge"))["kept"] == []
    assert record(later, other=warehouse("purge", key_prefix="acme/a"))["kept"] == kept


@pytest.mark.parametrize("deletion", ["protect", "purge"])
def test_only_retain_leaves_anything(deletion: str) -> None:
    assert record(record(a=warehouse(deletion), b=warehouse()), b=warehouse())["kept"] == []


def test_the_earlier_deletion_counts_when_a_warehouse_moves() -> None:
    before = record(a=warehouse("retain"))

    assert [one["key_prefix"] for one in record(before, a=warehouse("purge", key_prefix="x"))["kept"]] == ["acme/a"]


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["protect", "retain", "purge"]), min_size=1),
        max_size=6,
    )
)
def test_no_two_warehouses_ever_share_a_place(specs: list[dict[str, Any]]) -> None:
    """Whatever joins and leaves: neither with one another, nor with what an earlier one has left."""
    before: dict[str, Any] = {}
    for spec in specs:
        before = record(before, **{name: warehouse(deletion) for name, deletion in spec.items()})
        state = TenantRecordArgs.from_state(before)
        places = [one.key_prefix or "" for one in state.warehouses.values()] + [one.key_prefix for one in state.kept]
        assert len({place.casefold() for place in places}) == len(places)


def test_removed_and_added_see_through_a_rename() -> None:
    before = {name: RecordedWarehouse(bucket="lake", deletion="purge", origin=name) for name in ("a", "b")}
    now = {
        "c": RecordedWarehouse(bucket="lake", deletion="purge", origin="a"),
        "d": RecordedWarehouse(bucket="lake", deletion="purge", origin="d"),
    }

    assert list(removed(now, before)) == ["b"]
    assert added(now, before) == ["d"]


def test_prefixes_overlap_by_whole_segments() -> None:
    assert overlaps("a", "a/b")
    assert overlaps("a/b", "a")
    assert not overlaps("a", "ab")
