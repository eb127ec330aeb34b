"""State and outputs of a stack on the Pulumi CLI, in which secrets remain encrypted or hidden.

The Automation API exports states with secrets in plain text, and leaves the file of a failed import behind.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulumi.automation import Stack


def export_state(stack: Stack) -> dict[str, Any]:
    """Return the exported state, with `version` and `deployment`. Raises CommandError."""
    return json.loads(_run(stack, "export"))


def export_deployment(stack: Stack) -> dict[str, Any]:
    """Return the deployment of the exported state; empty for a stack without one. Raises CommandError."""
    return dict(export_state(stack).get("deployment") or {})


def import_state(stack: Stack, state: Mapping[str, Any]) -> None:
    """Replace the state. Raises CommandError."""
    with tempfile.TemporaryDirectory(prefix="lakewright-state-") as folder:
        file = Path(folder) / "state.json"
        file.write_text(json.dumps(state), encoding="utf-8")
        _run(stack, "import", "--file", str(file))


def read_outputs(stack: Stack) -> dict[str, Any]:
    """Return the stack's outputs, with `[secret]` for each secret, also within an output. Raises CommandError."""
    return json.loads(_run(stack, "output", "--json"))


def _run(stack: Stack, command: str, *options: str) -> str:
    workspace = stack.workspace
    arguments = ["stack", command, *options, "--stack", stack.name]
    return workspace.pulumi_command.run(arguments, workspace.work_dir, workspace.env_vars).stdout
