"""Interrupted creations for the processes of providers, which do not see the state.

A provider of dynamic resources may take over what an interrupted run of this very stack created, and nothing else. The
file is the same on both engines, so that `lakewright` can write it for the Pulumi CLI too.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from lakewright_engine.model.properties import redact
from lakewright_engine.model.resources import StackSnapshot
from lakewright_engine.model.signatures import SIGNATURE

ENVIRONMENT_VARIABLE = "LAKEWRIGHT_PENDING_CREATIONS"
"""Environment variable: path of a JSON list of objects with `urn`, `type` and `inputs` (secrets blinded)."""

Creation = dict[str, Any]


def from_snapshot(snapshot: StackSnapshot) -> list[Creation]:
    """Return the interrupted creations of a state, without those that a later run carried out."""
    done = {one.urn for one in snapshot.resources if not one.delete and not one.pending_replacement}
    return [
        {"urn": op.resource.urn, "type": op.resource.type, "inputs": redact(op.resource.inputs)}
        for op in snapshot.pending_operations
        if op.type == "creating" and op.resource.urn not in done
    ]


def from_export(deployment: Mapping[str, Any]) -> list[Creation]:
    """Return the same from the `deployment` of an exported state; the Pulumi CLI keeps those that were carried out."""
    return [
        {"urn": one["urn"], "type": one["type"], "inputs": _redact_ciphertexts(one.get("inputs") or {})}
        for one in _creating(deployment)
        if one["urn"] not in _completed_urns(deployment)
    ]


def remove_completed(deployment: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a deployment without the interrupted creations that a later run carried out; None if it has none.

    Args:
        deployment: The state after a run.
        before: The state before it: it has the resources that the run deleted.
    """
    done = _completed_urns(deployment) | _completed_urns(before)
    kept = [
        op
        for op in cast(list[dict[str, Any]], deployment.get("pending_operations") or [])
        if op["type"] != "creating" or op["resource"]["urn"] not in done
    ]
    if len(kept) == len(deployment.get("pending_operations") or []):
        return None
    return {**deployment, "pending_operations": kept}


@contextmanager
def write_environment(creations: Iterable[Creation]) -> Generator[dict[str, str]]:
    """Write creations to a file that only this user can read; yields the environment that names it."""
    with tempfile.TemporaryDirectory(prefix="lakewright-") as folder:
        file = Path(folder) / "pending.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps([*creations]), encoding="utf-8")
        yield {ENVIRONMENT_VARIABLE: str(file)}


def _creating(deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    operations = cast(list[dict[str, Any]], deployment.get("pending_operations") or [])
    return [op["resource"] for op in operations if op["type"] == "creating"]


def _completed_urns(deployment: Mapping[str, Any]) -> set[str]:
    resources = cast(list[dict[str, Any]], deployment.get("resources") or [])
    return {str(one["urn"]) for one in resources if not one.get("delete") and not one.get("pendingReplacement")}


def _redact_ciphertexts(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast(dict[str, Any], value)
        if SIGNATURE in items:
            return "[secret]"
        return {key: _redact_ciphertexts(item) for key, item in items.items()}
    return [_redact_ciphertexts(item) for item in cast(list[Any], value)] if isinstance(value, list) else value
