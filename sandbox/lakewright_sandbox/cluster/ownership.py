"""Field ownership: the effects of apply, create and update on an object and its `managedFields`.

Follows the rules of Kubernetes' server-side apply (sigs.k8s.io/structured-merge-diff). Pure functions over manifests.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from lakewright_sandbox.cluster.fields import Json, decode, encode, item_part, path_text, values_by_path
from lakewright_sandbox.cluster.schema import Path, is_atomic, is_set, list_keys
from lakewright_sandbox.errors import SandboxError


@dataclass(frozen=True)
class Owner:
    """One entry of `managedFields`."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""
    fields: frozenset[Path] = field(default_factory=frozenset[Path])

    @property
    def key(self) -> tuple[str, ...]:
        """Return what distinguishes owners; an applier is the same in every version of the API."""
        version = "" if self.operation == "Apply" else self.api_version
        return (self.manager, self.operation, version, self.subresource)

    @property
    def entry(self) -> Json:
        """Return the owner as a `managedFields` entry."""
        entry: Json = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        entry |= {"time": self.time, "fieldsType": "FieldsV1", "fieldsV1": encode(self.fields)}
        return entry | ({"subresource": self.subresource} if self.subresource else {})

    def __str__(self) -> str:
        """Return the owner in the API's words."""
        text = f'"{self.manager}"'
        text += f' with subresource "{self.subresource}"' if self.subresource else ""
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


class ApplyConflictError(SandboxError):
    """An apply would change fields that others own; the message is the API's."""

    def __init__(self, conflicts: list[tuple[Owner, Path]]) -> None:
        """Set the conflicting owners and fields."""
        self.causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {owner}", "field": path_text(path)}
            for owner, path in sorted(conflicts, key=lambda conflict: path_text(conflict[1]))
        ]
        super().__init__(_conflict_message(conflicts))


def _conflict_message(conflicts: list[tuple[Owner, Path]]) -> str:
    if len(conflicts) == 1:
        owner, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {owner}: {path_text(path)}"
    by_owner: dict[str, list[str]] = defaultdict(list)
    for owner, path in conflicts:
        by_owner[str(owner)].append(f"- {path_text(path)}")
    lines = [line for owner in sorted(by_owner) for line in (f"conflicts with {owner}:", *by_owner[owner])]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def field_owners(live: Json) -> list[Owner]:
    """Return the owners of an object's fields."""
    return [
        Owner(
            entry["manager"],
            entry["operation"],
            entry["apiVersion"],
            entry.get("subresource", ""),
            entry.get("time", ""),
            frozenset(decode(entry["fieldsV1"])),
        )
        for entry in live.get("metadata", {}).get("managedFields", [])
    ]


def apply(live: Json | None, config: Json, applier: Owner, *, force: bool) -> Json:
    """Return an object after an apply.

    Raises:
        ApplyConflictError: Others own fields that would change, and `force` is not set.
    """
    before = live or {key: config[key] for key in ("apiVersion", "kind")} | {"metadata": {}}
    merged = _merge(before, config, ())
    config_paths, changed = frozenset(values_by_path(config)), _find_changed_paths(before, merged)
    mine = next((owner for owner in field_owners(before) if owner.key == applier.key), None)
    other_owners = [owner for owner in field_owners(before) if owner.key != applier.key]
    conflicts = [(owner, path) for owner in other_owners for path in sorted(owner.fields & changed)]
    if conflicts and not force:
        raise ApplyConflictError(conflicts)
    other_owners = [replace(owner, fields=owner.fields - changed) for owner in other_owners]
    # List items are removed as a whole, so outer paths come first; an item that remains keeps its key.
    for path in sorted(mine.fields - config_paths if mine else (), key=len):
        if not _is_key(path) and not any(
            path_of_other[: len(path)] == path for owner in other_owners for path_of_other in owner.fields
        ):
            _remove(merged, path)
    if mine and mine.fields == config_paths and not changed:
        applier = mine
    return _set_owners(merged, [*other_owners, replace(applier, fields=config_paths)])


def update(live: Json | None, new: Json, updater: Owner) -> Json:
    """Return an object after a create, an update or a patch. The updater becomes the only owner of changed fields."""
    before = live or {}
    manifest = copy.deepcopy(new)
    changed = _find_changed_paths(before, manifest)
    removed_paths = values_by_path(before).keys() - values_by_path(manifest).keys()
    owners = [replace(owner, fields=owner.fields - changed - removed_paths) for owner in field_owners(before)]
    mine = next((owner for owner in owners if owner.key == updater.key), None)
    path_of_other = [owner for owner in owners if owner is not mine]
    if not changed and mine:
        return _set_owners(manifest, [*path_of_other, mine])
    return _set_owners(
        manifest, [*path_of_other, replace(updater, fields=changed | (mine.fields if mine else frozenset()))]
    )


def _find_changed_paths(before: Json, after: Json) -> frozenset[Path]:
    old, missing = values_by_path(before), object()
    return frozenset(path for path, value in values_by_path(after).items() if old.get(path, missing) != value)


def _set_owners(manifest: Json, owners: Iterable[Owner]) -> Json:
    entries = [owner.entry for owner in owners if owner.fields]
    return manifest | {"metadata": manifest["metadata"] | {"managedFields": entries}}


def _merge(live: Any, config: Any, path: Path) -> Any:
    if isinstance(live, dict) and isinstance(config, dict) and not is_atomic(path):
        old, new = cast(Json, live), cast(Json, config)
        inner = {key: _merge(old.get(key), new[key], (*path, f"f:{key}")) for key in new}
        return copy.deepcopy(old) | inner
    if isinstance(live, list) and isinstance(config, list) and list_keys(path):
        existing = {item_part(path, item): item for item in cast(list[Json], live)}
        config_items = {item_part(path, item): item for item in cast(list[Json], config)}
        return [
            _merge(existing.get(part), config_items.get(part, existing.get(part)), (*path, part))
            for part in existing | config_items
        ]
    if isinstance(live, list) and isinstance(config, list) and is_set(path):
        return list(dict.fromkeys([*cast(list[Any], live), *cast(list[Any], config)]))
    return copy.deepcopy(cast("Any", config))


def _is_key(path: Path) -> bool:
    *above, item, last = ("", "", *path)
    keys = list_keys(tuple(above[2:])) if item.startswith("k:") else None
    return last.removeprefix("f:") in (keys or ())


def _remove(manifest: Any, path: Path) -> None:
    """Remove a field, and parents that are empty without it."""
    trail: list[tuple[Any, Any]] = []
    node: Any = manifest
    for at, part in enumerate(path):
        key = _find_key(node, path[:at], part)
        if key is None:
            return
        trail.append((node, key))
        node = node[key]
    holder, key = trail.pop()
    del holder[key]
    for outer, inner in reversed(trail):
        if outer[inner] not in ({}, []):
            break
        del outer[inner]


def _find_key(node: Any, path: Path, part: str) -> Any:
    kind, _, name = part.partition(":")
    if isinstance(node, dict):
        return name if kind == "f" and name in node else None
    if not isinstance(node, list):
        return None
    items = cast(list[Any], node)
    matches = (part == item_part(path, item) if kind == "k" else part == f'v:"{item}"' for item in items)
    return next((index for index, is_match in enumerate(matches) if is_match), None)
