"""An inconsistent state is refused, by the rules of the CLI."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from lakewright_engine.model.errors import StateError
from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.state.integrity import check_integrity, check_magic

PROVIDER = ResourceState("urn:p::pulumi:providers:t::default", "pulumi:providers:t", custom=True, id="1")
FIRST = ResourceState("urn:a", "t:t:T", custom=True, id="a", provider=f"{PROVIDER.urn}::1")
SECOND = replace(FIRST, urn="urn:b", id="b")


def test_consistent_state_is_accepted() -> None:
    second = replace(
        SECOND,
        parent="urn:a",
        dependencies=["urn:a"],
        property_dependencies={"x": ["urn:a"], "y": []},
        deleted_with="urn:a",
        replace_with=["urn:a"],
    )
    check_integrity("dev", StackSnapshot([PROVIDER, FIRST, second, replace(FIRST, delete=True)]))


@pytest.mark.parametrize(
    ("reference", "role"),
    [
        ({"parent": "urn:b"}, "parent"),
        ({"dependencies": ["urn:b"]}, "dependency"),
        ({"property_dependencies": {"x": ["urn:b"]}}, "dependency of the property x"),
        ({"deleted_with": "urn:b"}, "deletedWith"),
        ({"replace_with": ["urn:b"]}, "replaceWith"),
    ],
)
def test_reference_to_later_resource_is_refused(reference: dict[str, object], role: str) -> None:
    first = replace(FIRST, **reference)  # pyright: ignore[reportArgumentType]
    with pytest.raises(StateError, match=rf"refers to 'urn:b' as its {role}, which comes after it"):
        check_integrity("dev", StackSnapshot([PROVIDER, first, SECOND]))
    with pytest.raises(StateError, match=rf"refers to 'urn:b' as its {role}, which is missing"):
        check_integrity("dev", StackSnapshot([PROVIDER, first]))


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        ([PROVIDER, replace(FIRST, provider=f"{PROVIDER.urn}::2")], "which does not precede it with this id"),
        ([FIRST, PROVIDER], "which does not precede it"),
        ([replace(PROVIDER, id="")], "has no id"),
        ([PROVIDER, FIRST, FIRST], "occurs twice"),
        ([replace(FIRST, custom=False, provider="")], "is a component, but has the id 'a'"),
        ([replace(PROVIDER, type="")], "has no type"),
        ([replace(PROVIDER, urn="")], "has no URN"),
    ],
)
def test_damaged_resource_is_refused(resources: list[ResourceState], reason: str) -> None:
    with pytest.raises(StateError, match=re.escape(reason)):
        check_integrity("dev", StackSnapshot(resources))


def test_provider_of_replaced_resource_may_be_missing() -> None:
    pending = replace(FIRST, provider=f"{PROVIDER.urn}::gone", pending_replacement=True)
    check_integrity("dev", StackSnapshot([PROVIDER, pending]))


def test_changed_manifest_is_refused() -> None:
    magic = "8b0b9a1f"
    with pytest.raises(StateError, match=r"manifest\.magic does not match"):
        check_magic("dev", {"manifest": {"version": "v3.1.0", "magic": magic}})
    check_magic("dev", {})
