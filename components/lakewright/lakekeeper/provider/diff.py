"""Differences between two declarations, and the update or replacement that each requires. Pure functions."""

from dataclasses import dataclass
from typing import Any

from lakewright.lakekeeper.provider.inputs import (
    MARKS,
    CreateOnly,
    Declared,
    Mark,
    Replace,
    Rotate,
    ServerKeeps,
    StateOnly,
    Update,
    has_unknown,
)


@dataclass(frozen=True)
class Change:
    """One property that differs."""

    path: str
    old: Any
    new: Any
    mark: Mark

    @property
    def known(self) -> bool:
        """Return whether the new value is known. It may be unknown in a preview."""
        return isinstance(self.new, Declared) or not has_unknown(self.new)

    def __str__(self) -> str:
        """Return the text for messages."""
        if isinstance(self.mark, Rotate):  # an external id is treated as a secret
            return self.path
        return f"{self.path}: {_describe(self.old)} -> {_describe(self.new)}"


def _describe(value: Any) -> str:
    """Return a value as a program writes it."""
    if has_unknown([value]):
        return "not known yet"
    return repr(value.props() if isinstance(value, Declared) else value)


def list_changes(old: Declared, new: Declared) -> list[Change]:
    """Return the differences that matter, with their paths. Both declarations are of one class."""
    return _list_changes(old, new, "", Replace())


def via(changes: list[Change]) -> set[str]:
    """Return the names of the calls that make these changes in place."""
    return {change.mark.via for change in changes if isinstance(change.mark, Update | Rotate)}


def needs_calls(changes: list[Change]) -> bool:
    """Return whether a change affects more than the state."""
    return any(not isinstance(change.mark, StateOnly) for change in changes)


def _list_changes(old: Declared, new: Declared, prefix: str, inherited: Mark) -> list[Change]:
    changes: list[Change] = []
    for name, field in type(new).model_fields.items():
        was, now = getattr(old, name), getattr(new, name)
        mark = next((mark for mark in field.metadata if isinstance(mark, MARKS)), inherited)
        if was == now or isinstance(mark, CreateOnly):
            continue
        if now is None and any(isinstance(mark, ServerKeeps) for mark in field.metadata):
            continue
        path = f"{prefix}{name}"
        if isinstance(now, Declared) and type(was) is type(now):
            changes += _list_changes(was, now, f"{path}.", mark)
        else:
            changes.append(Change(path, was, now, mark))
    return changes
