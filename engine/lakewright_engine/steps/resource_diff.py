"""The diff between a resource's state and its new inputs, and whether it requires a replacement."""

from __future__ import annotations

from dataclasses import replace

from lakewright_engine.model.paths import apply_ignore_changes, contains, parse_path
from lakewright_engine.model.properties import is_equal, plaintext_properties
from lakewright_engine.model.resources import Properties, ResourceState
from lakewright_engine.model.step import Diff
from lakewright_engine.providers.provider import Provider


def resource_diff(provider: Provider, urn: str, old: ResourceState, inputs: Properties, ignore: list[str]) -> Diff:
    """Return the provider's diff, or that of the old and new inputs if the provider computes none."""
    diff = provider.diff(urn, old, inputs, ignore)
    if diff.changes != "unknown":
        return diff
    before, after = (
        plaintext_properties(old.inputs),
        plaintext_properties(apply_ignore_changes(inputs, old.inputs, ignore)),
    )
    keys = [
        key
        for key in sorted({*before, *after})
        if key not in before or key not in after or not is_equal(before[key], after[key])
    ]
    kinds = {key: "add" if key not in before else "delete" if key not in after else "update" for key in keys}
    detailed = {key: (kind, True) for key, kind in kinds.items()}
    return replace(diff, changes="some" if keys or diff.replace_keys else "none", keys=keys, detailed=detailed or None)


def apply_replace_on_changes(diff: Diff, paths: list[str], init_errors: list[str]) -> Diff:
    """Return the diff as a replacement if it contains one of the `paths` (replaceOnChanges)."""
    replace_paths = [parse_path(text) for text in paths]
    if not replace_paths or (diff.changes != "some" and not init_errors):
        return diff
    detailed = diff.detailed
    if detailed is not None:
        detailed = {
            path: (
                kind if kind.endswith("-replace") or not _any_contains(replace_paths, path) else f"{kind}-replace",
                inputs,
            )
            for path, (kind, inputs) in detailed.items()
        }
    keys = [
        *diff.replace_keys,
        *(key for key in diff.keys if key not in diff.replace_keys and _any_contains(replace_paths, key)),
    ]
    if init_errors and _any_contains(replace_paths, "#initerror"):
        return replace(diff, changes="some", detailed=detailed, replace_keys=[*keys, "#initerror"])
    return replace(diff, detailed=detailed, replace_keys=keys)


def _any_contains(replace_paths: list[list[str | int]], path: str) -> bool:
    return any(contains(outer, parse_path(path)) for outer in replace_paths)
