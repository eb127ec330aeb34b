"""Summary of a plan's changes, for people and for CI: steps with their properties, secrets as `[secret]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from lakewright_engine.display.hidden_properties import HiddenValue, hide_values
from lakewright_engine.display.property_diff import PropertyChange, changes, diff_at_path
from lakewright_engine.model.errors import PlanError
from lakewright_engine.model.urns import is_default_provider, urn_name
from lakewright_engine.plans.plan_file import PlanDocument

_PARTS = ("create-replacement", "delete-replaced", "discard-replaced", "remove-pending-replace")
"""Parts of a replacement, which its `replace` step stands for."""


def plan_to_json(document: PlanDocument) -> dict[str, Any]:
    """Return the object that `plan show --json` prints. Unchanged resources are left out.

    Raises:
        PlanError: A step is damaged.
    """
    try:
        steps = list(_steps(document))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise PlanError(f"{document.file} is damaged: {type(error).__name__}: {error}") from error
    return {
        "version": 1,
        "file": str(document.file),
        "sha256": document.sha256,
        "signed": document.is_signed,
        "engine": {"name": document.engine, "version": document.engine_version},
        "project": document.project,
        "stack": document.stack,
        "created": document.created,
        "options": document.options.to_json(),
        "changes": document.changes,
        "steps": steps,
        "contents": document.body.get("contents") or [],
        "exit": 0,
    }


def _steps(document: PlanDocument) -> Iterator[dict[str, Any]]:
    steps = cast("list[dict[str, Any]]", document.body["steps"])
    replaced = {step["urn"] for step in steps if step["op"] == "replace"}
    for step in steps:
        is_part = step["op"] in _PARTS and step["urn"] in replaced
        if step["op"] == "same" or is_part or is_default_provider(step["urn"]):
            continue
        properties = _properties(step)
        yield {
            "op": step["op"],
            "urn": step["urn"],
            "type": step["type"],
            "name": urn_name(step["urn"]),
            "keys": _keys(step) if step["op"] in ("update", "replace") else [],
            "properties": [{"sign": item.sign, "path": item.path, "text": item.text} for item in properties],
        }


def _properties(step: dict[str, Any]) -> list[PropertyChange]:
    if step["new"] is None:
        return []
    old, new = _inputs(step["old"]), _inputs(step["new"])
    if step["old"] is not None:
        hidden_paths: list[str] = step["new"].get("hideDiff") or []
        old, new = (hide_values(side, hidden_paths, HiddenValue) for side in (old, new))
    changes_by_path = {change.path: change for change in changes(old, new)}
    detailed = cast("dict[str, tuple[str, bool]]", step["diff"]["detailed"] or {})
    for path, (kind, _) in sorted(detailed.items()):
        # Also what differs from the object rather than from the inputs, such as drift.
        changes_by_path = {change.path: change for change in diff_at_path(path, kind, old, new)} | changes_by_path
    return [change for _, change in sorted(changes_by_path.items())]


def _keys(step: dict[str, Any]) -> list[str]:
    diff = step["diff"]
    diff_keys: set[str] = {*diff["keys"], *diff["replace_keys"], *(diff["detailed"] or ())}
    changed_paths = {change.path for change in changes(_inputs(step["old"]), _inputs(step["new"]))}
    return sorted({path.partition(".")[0].partition("[")[0] for path in diff_keys or changed_paths} - {""})


def _inputs(state: dict[str, Any] | None) -> dict[str, Any]:
    return (state or {}).get("inputs") or {}
