"""Interrupted creations of a stack, in a file for provider processes, which have no access to the state.

A dynamic provider may adopt an object that an interrupted run of the same stack created, and no other object. Both
engines use the same file: `lakewright` also writes it for the Pulumi CLI.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from lakewright_engine.model.properties import redact
from lakewright_engine.model.resources import PendingOperation, Properties, ResourceState, StackSnapshot
from lakewright_engine.model.signatures import SIGNATURE
from lakewright_engine.state.natural_ids import natural_id

ENVIRONMENT_VARIABLE = "LAKEWRIGHT_PENDING_CREATIONS"
"""Names the path of a JSON list of objects with `urn`, `type` and `inputs` (secrets redacted)."""

Creation = dict[str, Any]
_DYNAMIC = "pulumi-python:dynamic"


def is_dynamic(type_: str) -> bool:
    """Return whether a dynamic provider, which adopts on create, has the resources of a type."""
    return type_.startswith(_DYNAMIC)


def settles_creation(state: ResourceState, interrupted: ResourceState) -> bool:
    """Return whether a created resource has the object of an interrupted creation, if that made one.

    A dynamic provider has looked for the object when it created the resource, and so has the engine for an object with
    the same natural id. An object without a natural id may exist beside the object of the resource.
    """
    if state.urn != interrupted.urn:
        return False
    object_id = natural_id(interrupted.type, interrupted.inputs)
    return is_dynamic(interrupted.type) or (bool(object_id) and object_id == natural_id(state.type, state.inputs))


def list_unfinished(snapshot: StackSnapshot) -> list[PendingOperation]:
    """Return the interrupted creations of a state whose objects it may not have.

    The Pulumi CLI does not remove a creation that a later run completed. A resource with other inputs may be the one
    that the interrupted run was replacing.
    """
    live = {state.urn: state for state in snapshot.resources if not state.delete and not state.pending_replacement}

    def is_complete(interrupted: ResourceState) -> bool:
        state = live.get(interrupted.urn)
        return (
            state is not None
            and settles_creation(state, interrupted)
            and (not is_dynamic(state.type) or _select_declared(state.inputs) == _select_declared(interrupted.inputs))
        )

    return [op for op in snapshot.pending_operations if op.type == "creating" and not is_complete(op.resource)]


def describe_removal(stack: str) -> str:
    """Return how a user removes interrupted creations from the state of a stack."""
    return (
        "make sure that the objects do not exist and remove them from the state: "
        f"`lakewright stack export --stack {stack} --file state.json`, delete them from "
        f"`pending_operations`, and `lakewright stack import --stack {stack} --file state.json`"
    )


def _select_declared(inputs: Properties) -> Any:
    """Return inputs without secrets and without the code of a dynamic provider, which an upgrade changes."""
    return redact({key: value for key, value in inputs.items() if key != "__provider"})


def from_snapshot(snapshot: StackSnapshot) -> list[Creation]:
    """Return the interrupted creations of a state, without creations that a later run completed."""
    done = {state.urn for state in snapshot.resources if not state.delete and not state.pending_replacement}
    return [
        {"urn": op.resource.urn, "type": op.resource.type, "inputs": redact(op.resource.inputs)}
        for op in snapshot.pending_operations
        if op.type == "creating" and op.resource.urn not in done
    ]


def from_export(deployment: Mapping[str, Any]) -> list[Creation]:
    """Return the interrupted creations of an exported state. The Pulumi CLI does not remove completed creations."""
    return [
        {"urn": created["urn"], "type": created["type"], "inputs": _redact_ciphertexts(created.get("inputs") or {})}
        for created in _list_creations(deployment)
        if created["urn"] not in _list_completed_urns(deployment)
    ]


def remove_completed(deployment: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a deployment without the interrupted creations that a later run completed; None if there are none.

    Args:
        deployment: The state after a run.
        before: The state before the run, with the resources that it deleted.
    """
    done = _list_completed_urns(deployment) | _list_completed_urns(before)
    kept_operations = [
        op
        for op in cast(list[dict[str, Any]], deployment.get("pending_operations") or [])
        if op["type"] != "creating" or op["resource"]["urn"] not in done
    ]
    if len(kept_operations) == len(deployment.get("pending_operations") or []):
        return None
    return {**deployment, "pending_operations": kept_operations}


@contextmanager
def write_environment(creations: Iterable[Creation]) -> Generator[dict[str, str]]:
    """Write creations to a file that only this user can read. Yield the environment variable that names it."""
    with tempfile.TemporaryDirectory(prefix="lakewright-") as folder:
        file = Path(folder) / "pending.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps([*creations]), encoding="utf-8")
        yield {ENVIRONMENT_VARIABLE: str(file)}


def _list_creations(deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    operations = cast(list[dict[str, Any]], deployment.get("pending_operations") or [])
    return [op["resource"] for op in operations if op["type"] == "creating"]


def _list_completed_urns(deployment: Mapping[str, Any]) -> set[str]:
    resources = cast(list[dict[str, Any]], deployment.get("resources") or [])
    return {str(state["urn"]) for state in resources if not state.get("delete") and not state.get("pendingReplacement")}


def _redact_ciphertexts(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast(dict[str, Any], value)
        if SIGNATURE in items:
            return "[secret]"
        return {key: _redact_ciphertexts(item) for key, item in items.items()}
    return [_redact_ciphertexts(item) for item in cast(list[Any], value)] if isinstance(value, list) else value
