"""Properties whose differences a program hides with `hide_diffs`: displays have `(hidden)` in place of their values.

As by the Pulumi CLI, this applies to differences. The values of a resource that is created or deleted are displayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.display.event_states import list_states
from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.paths import parse_path
from lakewright_engine.model.signatures import SIGNATURE

if TYPE_CHECKING:
    from pulumi.automation.events import EngineEvent, StepEventMetadata, StepEventStateMetadata

HIDDEN_DIFF = "(hidden)"
_ATTRIBUTE = "hide_diffs"


@dataclass(frozen=True, repr=False)
class HiddenValue:
    """A value that may be compared and not displayed."""

    value: Any

    def __str__(self) -> str:
        """Return the placeholder."""
        return HIDDEN_DIFF

    __repr__ = __str__


def copy_hidden_paths(event: EngineEvent, body: dict[str, Any]) -> None:
    """Copy the hidden paths from an event's JSON to its states. The SDK's `EngineEvent.from_json` leaves them out."""
    for side, state in list_states(event):
        if paths := body["metadata"][side].get("hideDiffs"):
            setattr(state, _ATTRIBUTE, paths)


def find_hidden_paths(metadata: StepEventMetadata) -> list[str]:
    """Return the paths whose differences the program hides; empty for a resource that is created or deleted."""
    if metadata.old is None or metadata.new is None:
        return []
    return _get_paths(metadata.new)


def hide_values(properties: dict[str, Any], paths: Sequence[str], hide: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the properties with other values at the hidden paths.

    Args:
        properties: The properties of a state.
        paths: Property paths, which may have wildcards.
        hide: Returns the value to have in place of a hidden value.
    """
    for path in paths:
        try:
            parts = parse_path(path)
        except ProgramError:
            parts = [path]
        if parts:
            properties = _replace_value(properties, parts, hide)
    return properties


def _get_paths(state: StepEventStateMetadata) -> list[str]:
    return getattr(state, _ATTRIBUTE, [])


def _replace_value(value: Any, parts: Sequence[str | int], hide: Callable[[Any], Any]) -> Any:
    """Return a value with hidden values at a path inside of it."""
    if isinstance(value, HiddenValue):
        return value
    if not parts:
        return hide(value)
    head, tail = parts[0], parts[1:]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if SIGNATURE in members:
            return members
        return {key: _replace_value(item, tail, hide) if head in ("*", key) else item for key, item in members.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_replace_value(item, tail, hide) if head in ("*", index) else item for index, item in enumerate(items)]
    return value
