"""Edits of an exported state follow the rules of `pulumi state`."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright_engine.model.errors import StateError
from lakewright_engine.state import edits

TYPE = "pulumi-python:dynamic:Resource"
PROVIDER_TYPE = "pulumi:providers:pulumi-python"


def urn(name: str, type_: str = TYPE) -> str:
    return f"urn:pulumi:dev::demo::{type_}::{name}"


def resource(name: str, type_: str = TYPE, **more: Any) -> dict[str, Any]:
    return {"urn": urn(name, type_), "type": type_, "custom": True, "id": name, **more}


def deployment(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"resources": list(resources)}


def names(state: dict[str, Any]) -> list[str]:
    return [resource["urn"].rsplit("::", 1)[-1] for resource in state["resources"]]


DEPENDENCIES = {
    "parent": {"parent": urn("a")},
    "dependencies": {"dependencies": [urn("a")]},
    "property": {"propertyDependencies": {"key": [urn("a")]}},
    "deleted-with": {"deletedWith": urn("a")},
    "replace-with": {"replaceWith": [urn("a")]},
}


@pytest.mark.parametrize("needs", DEPENDENCIES.values(), ids=DEPENDENCIES)
def test_remove_refuses_resources_with_dependents(needs: dict[str, Any]) -> None:
    state = deployment(resource("a"), resource("b", **needs), resource("c"))
    with pytest.raises(StateError, match=r"b \(urn:.*\n.*--target-dependents"):
        edits.remove(state, [urn("a")])
    assert names(state) == ["a", "b", "c"]
    assert edits.remove(state, [urn("a")], target_dependents=True) == [urn("b"), urn("a")]
    assert names(state) == ["c"]


def test_remove_refuses_a_provider_in_use() -> None:
    provider = resource("default", PROVIDER_TYPE)
    state = deployment(provider, resource("a", provider=f"{provider['urn']}::default"))
    with pytest.raises(StateError, match="depend on it"):
        edits.remove(state, [provider["urn"]])


def test_remove_accepts_resources_with_their_dependents() -> None:
    state = deployment(resource("a"), resource("b", dependencies=[urn("a")]))
    assert edits.remove(state, [urn("a"), urn("b")]) == [urn("b"), urn("a")]
    assert names(state) == []


def test_remove_refuses_protected_resources() -> None:
    state = deployment(resource("a", protect=True))
    with pytest.raises(StateError, match="is protected; use --force"):
        edits.remove(state, [urn("a")])
    edits.remove(state, [urn("a")], force=True)
    assert names(state) == []


def test_remove_refuses_a_protected_dependent() -> None:
    state = deployment(resource("a"), resource("b", dependencies=[urn("a")], protect=True))
    with pytest.raises(StateError, match="b is protected"):
        edits.remove(state, [urn("a")], target_dependents=True)
    assert names(state) == ["a", "b"]


def test_unknown_and_ambiguous_urns_are_refused() -> None:
    state = deployment(resource("a"), resource("a", delete=True))
    with pytest.raises(StateError, match=r"holds no resource .*state ls"):
        edits.remove(state, [urn("x")])
    with pytest.raises(StateError, match="2 resources"):
        edits.remove(state, [urn("a")])


def test_unprotect_clears_named_resources_or_all() -> None:
    state = deployment(resource("a", protect=True), resource("b", protect=True), resource("c"))
    assert edits.unprotect(state, [urn("a"), urn("c")]) == [urn("a")]
    assert edits.unprotect(state) == [urn("b")]
    assert not any(resource.get("protect") for resource in state["resources"])


@pytest.mark.parametrize("needs", DEPENDENCIES.values(), ids=DEPENDENCIES)
def test_rename_changes_every_reference(needs: dict[str, Any]) -> None:
    state = deployment(resource("a"), resource("b", **needs))
    assert edits.rename(state, urn("a"), "z") == urn("z")
    assert names(state) == ["z", "b"]
    assert urn("a") not in str(state)
    assert str(urn("z")) in str(state["resources"][1])


def test_rename_of_a_provider_changes_references() -> None:
    provider = resource("own", PROVIDER_TYPE)
    state = deployment(provider, resource("a", provider=f"{provider['urn']}::id-1"))
    new = edits.rename(state, provider["urn"], "other")
    assert state["resources"][1]["provider"] == f"{new}::id-1"


@pytest.mark.parametrize(
    ("name", "message"), [("b", "already holds"), ("", "resource name"), ("x::y", "resource name")]
)
def test_rename_refuses_impossible_names(name: str, message: str) -> None:
    state = deployment(resource("a"), resource("b"))
    with pytest.raises(StateError, match=message):
        edits.rename(state, urn("a"), name)
    assert names(state) == ["a", "b"]
