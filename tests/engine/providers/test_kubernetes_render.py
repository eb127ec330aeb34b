"""A program that renders manifests has the results of the real plugin under the CLI, in tests/kubernetes/render."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stackrunner import Stack

CASE = Path(__file__).parents[2] / "kubernetes" / "render"
KUBECONFIG = "/nonexistent"
"""The kubeconfig in the environment of the recorded run."""

RANDOM = re.compile(r"(auto-named|pulumi-kubernetes)-[0-9a-f]{8}")


def test_state_and_files_match_recording(tmp_path: Path) -> None:
    stack = Stack(tmp_path, (CASE / "program.py").read_text())
    outcome = stack.run("up", env={"KUBECONFIG": KUBECONFIG})
    assert outcome.exit == 0, outcome.messages
    assert outcome.outputs == {"namespace": "tenant-a"}
    assert normal(stack.deployment()["resources"]) == normal(json.loads((CASE / "state.json").read_text()))
    rendered = stack.program_dir / "rendered"
    assert manifests(rendered / "1-manifest") == manifests(CASE / "rendered")
    assert not list((rendered / "0-crd").glob("*"))

    assert stack.run("up", "--refresh", "--expect-no-changes", env={"KUBECONFIG": KUBECONFIG}).exit == 0
    assert stack.run("destroy").exit == 0
    assert not [path for path in rendered.rglob("*") if path.is_file()]


def manifests(folder: Path) -> dict[str, str]:
    return {_hide_random_suffixes(path.name): _hide_random_suffixes(path.read_text()) for path in folder.iterdir()}


def normal(resources: list[dict[str, Any]]) -> dict[str, Any]:
    """Return resources by URN without times, positions, random names and ids."""
    return {resource["urn"]: _normal(resource) for resource in resources}


def _normal(body: dict[str, Any]) -> dict[str, Any]:
    dropped = ("created", "modified", "sourcePosition", "stackTrace", "dependencies")
    fields: dict[str, Any] = {key: value for key, value in body.items() if key not in dropped}
    fields["depends on"] = sorted(body.get("dependencies", []))
    if body["type"].startswith("pulumi:providers:"):
        del fields["id"]
    if "provider" in fields:
        fields["provider"] = fields["provider"].rpartition("::")[0]
    return json.loads(_hide_random_suffixes(json.dumps(fields)))


def _hide_random_suffixes(text: str) -> str:
    return RANDOM.sub(r"\1-RANDOM", text)
