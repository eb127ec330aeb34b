"""Read the outputs of a stack from its state."""

from __future__ import annotations

from typing import Any

from lakewright_engine.display.property_diff import redact_json
from lakewright_engine.model.resources import Properties, Value
from lakewright_engine.model.urns import ROOT_STACK_TYPE
from lakewright_engine.state.backend import StateBackend


def stack_outputs(backend: StateBackend, project: str, stack: str, *, show_secrets: bool = False) -> dict[str, Any]:
    """Return the outputs of the last update.

    Secrets are `[secret]`. With `show_secrets` they are decrypted, which needs the passphrase.
    """
    if show_secrets:
        from lakewright_engine.model.properties import to_output_json  # noqa: PLC0415 - only secrets need protobuf

        snapshot = backend.load(project, stack)
        states = snapshot.resources if snapshot is not None else []
        outputs: Properties = next(
            (root.outputs for root in states if root.type == ROOT_STACK_TYPE), dict[str, Value]()
        )
        return {key: to_output_json(value, show_secrets=True) for key, value in outputs.items()}
    latest = backend.export(project, stack)["deployment"]
    resources: list[dict[str, Any]] = latest.get("resources") or []
    root = next((resource for resource in resources if resource["type"] == ROOT_STACK_TYPE), dict[str, Any]())
    return redact_json(root.get("outputs") or {})
