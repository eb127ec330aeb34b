"""Compare two property trees: changes by path in Pulumi's notation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from lakewright_sandbox.typed.json_values import is_array, is_object

Change = Literal["add", "delete", "update"]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MISSING = object()


@dataclass(frozen=True)
class ResourceDifference:
    """The result of a diff: changes by path, the paths that force a replacement, and its order."""

    changes: dict[str, Change] = field(default_factory=dict[str, Change])
    replaces: frozenset[str] = frozenset()
    delete_before_replace: bool = False

    def drop_ignored(self, ignored: list[str]) -> ResourceDifference:
        """Return the difference without paths at or below an ignored path."""
        kept_changes: dict[str, Change] = {
            path: change for path, change in self.changes.items() if not any(is_below(path, i) for i in ignored)
        }
        return ResourceDifference(kept_changes, self.replaces & kept_changes.keys(), self.delete_before_replace)


def is_below(path: str, ancestor: str) -> bool:
    """Return whether `path` is `ancestor` or lies below it."""
    return path == ancestor or (path.startswith(ancestor) and path[len(ancestor)] in ".[")


def compare(old: Any, new: Any, path: str = "") -> dict[str, Change]:
    """Return the changes from `old` to `new` by path, as deep as both sides have the same shape."""
    if old is _MISSING:
        return {path: "add"}
    if new is _MISSING:
        return {path: "delete"}
    changes: dict[str, Change] = {}
    if is_object(old) and is_object(new):
        for key in sorted(old.keys() | new.keys()):
            changes |= compare(old.get(key, _MISSING), new.get(key, _MISSING), _join(path, key))
        return changes
    if is_array(old) and is_array(new):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else _MISSING
            after = new[index] if index < len(new) else _MISSING
            changes |= compare(before, after, f"{path}[{index}]")
        return changes
    # In Python True == 1, in JSON they are different values.
    return {} if old == new and isinstance(old, bool) == isinstance(new, bool) else {path: "update"}


def _join(path: str, key: str) -> str:
    if not _PLAIN_KEY.match(key):
        quoted = key.replace("\\", "\\\\").replace('"', '\\"')
        return f'{path}["{quoted}"]'
    return f"{path}.{key}" if path else key
