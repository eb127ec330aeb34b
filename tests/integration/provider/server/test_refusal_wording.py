"""A refusal by the server is one sentence to the user, also if the provider made further lookups before it failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_engine import Operation, Result, run
from lakewright_engine.project.project import PulumiProject

from tests.integration.provider.resource import Props

PROGRAM = """
import pulumi
from lakewright.lakekeeper import Project
config = pulumi.Config()
Project("tenant", **config.require_object("declared"), name="tenant", adopt=True)
"""


def operate(folder: Path, verb: str) -> Result:
    return run(Operation(verb, PulumiProject.load(folder), "dev"), lambda _: None)


def test_forbidden_identity_gets_one_sentence(
    tmp_path: Path, guarded_project: Props, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "demo")
    project = PulumiProject.load(tmp_path)
    settings = project.stack_config("dev")
    settings.set_value("declared", guarded_project)
    settings.save()
    project.backend().create("conf", "dev", project.secrets("dev"))
    created = operate(tmp_path, "up")
    assert created.exit == 0, created.messages

    token = guarded_project["server"]["auth"]["token"].removeprefix("env:")
    monkeypatch.setenv(token, f"stranger-{unique}")
    refused = operate(tmp_path, "destroy")

    assert refused.exit == 1
    first, *later_messages = refused.messages
    assert first.startswith("error: ForbiddenError: ")
    assert "403 ProjectActionForbidden" in first
    assert "\n" not in first
    assert later_messages == ["error: update failed"]
