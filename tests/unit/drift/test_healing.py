"""Which resources a plan against drift is limited to."""

from __future__ import annotations

from typing import Any

from lakewright.drift.healing.previewed_steps import read_steps
from lakewright.drift.healing.stack_healing import StackHealing, choose_targets
from lakewright.drift.model import Difference, DifferenceKind, IgnoredBy, StackDrift

Step = tuple[str, str, tuple[str, ...]]
"""Operation, name, and changed properties."""
RULE = IgnoredBy("migration", "2027-01-31", "spec")


def difference(name: str, path: str = "", *, ignored: IgnoredBy | None = None) -> Difference:
    kind = DifferenceKind.CHANGED if path else DifferenceKind.GONE
    return Difference("acme", "acme", f"urn::{name}", "x:Role", name, path, 1, 2, kind, ignored=ignored)


def preview(*steps: Step) -> dict[str, Any]:
    entries = [
        {"op": op, "urn": f"urn::{name}", "type": "x:Role", "name": name, "keys": list(keys)}
        for op, name, keys in steps
    ]
    return read_steps({"steps": entries})


def heal(differences: list[Difference], undeployed: list[Step], refreshed: list[Step]) -> StackHealing:
    stack = StackDrift("acme", "acme", differences=differences)
    return choose_targets(stack, preview(*undeployed), preview(*refreshed))


def names(urns: Any) -> list[str]:
    return [urn.removeprefix("urn::") for urn in urns]


def test_objects_that_are_gone_are_created() -> None:
    healing = heal([difference("a")], [("same", "a", ())], [("create", "a", ())])

    assert names(healing.targets) == ["a"]
    assert [entry.resource for entry in healing.reverted] == ["a"]


def test_new_ids_of_created_objects_are_passed_on() -> None:
    healing = heal(
        [difference("a")],
        [("same", "a", ()), ("same", "b", ()), ("update", "c", ("size",))],
        [("create", "a", ()), ("update", "b", ("role_id",)), ("update", "c", ("size", "role_id"))],
    )

    assert names(healing.targets) == ["a", "b"]
    assert [step.describe() for step in healing.excluded_steps] == ["update Role c (role_id, size)"]


def test_edits_that_were_never_deployed_are_left() -> None:
    edits: list[Step] = [("create", "new", ()), ("delete", "old", ()), ("replace", "moved", ("name",))]
    healing = heal([difference("a", "size")], [("same", "a", ()), *edits], [("update", "a", ("size",)), *edits])

    assert names(healing.targets) == ["a"]
    assert [step.op for step in healing.excluded_steps] == ["create", "delete", "replace"]


def test_resource_with_an_edit_of_the_drifted_property_stays() -> None:
    edit = [("update", "a", ("size",))]
    healing = heal([difference("a", "size")], edit, edit)

    assert (healing.reverted, healing.targets) == ((), ())
    assert "never deployed" in healing.unreverted[0][1]


def test_deleted_object_with_an_edit_stays_deleted() -> None:
    healing = heal([difference("a")], [("update", "a", ("size",))], [("create", "a", ())])

    assert healing.targets == ()
    assert "never deployed" in healing.unreverted[0][1]


def test_object_that_the_spec_drops_stays_as_it_is() -> None:
    healing = heal([difference("a", "size"), difference("b")], [("delete", "a", ()), ("delete", "b", ())], [])

    assert healing.targets == ()
    assert all("no longer declares" in reason for _, reason in healing.unreverted)


def test_replacements_are_never_made() -> None:
    parts = [(op, "a", ("size",)) for op in ("create-replacement", "replace", "delete-replaced")]
    healing = heal([difference("a", "size")], [("same", "a", ())], parts)

    assert healing.targets == ()
    assert "would replace it" in healing.unreverted[0][1]


def test_accepted_value_is_read_beside_a_revert() -> None:
    healing = heal(
        [difference("a", "size"), difference("b", "size"), difference("b", "color.tone")],
        [("update", "a", ("size",)), ("update", "b", ("size",))],
        [("same", "a", ()), ("update", "b", ("color",))],
    )

    assert [(entry.resource, entry.property) for entry in healing.reverted] == [("b", "color.tone")]
    assert names(healing.targets) == ["b", "a"], "the state takes the value of a"
    assert all("already declares" in reason for _, reason in healing.unreverted)


def test_ignored_resource_is_no_target() -> None:
    differences = [difference("a", "size", ignored=RULE), difference("a", "color"), difference("b", "size")]
    steps: list[Step] = [("update", "a", ("size", "color")), ("update", "b", ("size",))]
    healing = heal(differences, [("same", "a", ()), ("same", "b", ())], steps)

    assert names(healing.targets) == ["b"]
    assert [reason for _, reason in healing.unreverted] == [
        "ignored until 2027-01-31: migration",
        "its resource also has an ignored difference",
    ]
