"""A stack's outputs, read from its state."""

from __future__ import annotations

from typing import Any

from lakewright_engine.display.property_diff import redact_json
from lakewright_engine.model.resources import Properties, SecretValue, Value
from lakewright_engine.model.urns import ROOT_STACK_TYPE
from lakewright_engine.state.backend import FileBackend


def stack_outputs(backend: FileBackend, project: str, stack: str, *, show_secrets: bool = False) -> dict[str, Any]:
    """The outputs of the last update; a secret is `[secret]` unless it is asked for, and then needs the passphrase."""
    if show_secrets:
        snapshot = backend.load(project, stack)
        states = snapshot.resources if snapshot is not None else []
        outputs: Properties = next((one.outputs for one in states if one.type == ROOT_STACK_TYPE), dict[str, Value]())
        return {key: opened(value) for key, value in outputs.items()}
    latest = backend.export(project, stack)["deployment"]
    resources: list[dict[str, Any]] = latest.get("resources") or []
    found = next((one for one in resources if one["type"] == ROOT_STACK_TYPE), dict[str, Any]())
    return redact_json(found.get("outputs") or {})


def opened(value: Value) -> Any:
    """A value of the state without the marks of secrets in it."""
    if isinstance(value, SecretValue):
        return opened(value.value)
    if isinstance(value, dict):
        return {key: opened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [opened(item) for item in value]
    return value
