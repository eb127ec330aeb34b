"""The stack that is named as a tenant's owner where the provider refuses to adopt the tenant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lakewright.cli.engines.tenant_owners import NOT_OURS, OwnerReportingEngine
from lakewright_engine import Operation, Result
from lakewright_engine.project.project import PulumiProject

SPEC = """config:
  lakewright:tenant: {name: acme, environment: production}
"""


class RefusingEngine:
    """An engine whose provider refuses to adopt the tenant."""

    def run(self, _operation: Operation, _on_event: Callable[..., None]) -> Result:
        return Result(1, messages=[f"error: project acme exists already, {NOT_OURS[0]}."])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiProject:
    """Two stacks: `mine` declares tenant acme, and `theirs` is in the same backend."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "p")
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "production.yaml").write_text(
        "lakekeeper: {endpoint: 'https://lakekeeper.example/'}\n"
    )
    (tmp_path / "Pulumi.mine.yaml").write_text(SPEC)
    found = PulumiProject.load(tmp_path)
    for stack in ("mine", "theirs"):
        found.backend().create(found.name, stack, found.secrets(stack))
    return found


def hold_project(project: PulumiProject, endpoint: str) -> None:
    """Give the other stack the tenant's project at an endpoint."""
    backend = project.backend()
    exported: dict[str, Any] = backend.export("lake", "theirs")
    inputs = {"project_id": "acme", "server": {"endpoint": endpoint}}
    kind = "pulumi-python:lakekeeper:Project"
    resource = {"urn": f"urn:pulumi:theirs::lake::{kind}::acme", "type": kind, "custom": True, "id": "acme"}
    exported["deployment"]["resources"] = [resource | {"inputs": inputs, "outputs": inputs}]
    backend.import_("lake", "theirs", exported, force=True)


@pytest.mark.parametrize(
    ("endpoint", "is_named"), [("https://LAKEKEEPER.example:443", True), ("https://staging.example", False)]
)
def test_owner_is_a_stack_on_the_same_server(project: PulumiProject, endpoint: str, *, is_named: bool) -> None:
    hold_project(project, endpoint)

    result = OwnerReportingEngine(RefusingEngine()).run(Operation("up", project, "mine"), lambda _: None)

    named = any("is in the state of stack `theirs`" in message for message in result.messages)
    assert named is is_named
