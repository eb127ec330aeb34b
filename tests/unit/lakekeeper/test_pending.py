"""Reported interrupted creations count for their own stack only."""

from __future__ import annotations

import json
from pathlib import Path

import pulumi
import pytest
from lakewright.lakekeeper.provider import pending_creations as pending
from lakewright.lakekeeper.provider.options import not_imported


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of stack `mine` of project `lake`."""
    monkeypatch.setattr(pulumi, "get_stack", lambda: "mine")
    monkeypatch.setattr(pulumi, "get_project", lambda: "lake")


def report(folder: Path, monkeypatch: pytest.MonkeyPatch, stack: str, project: str) -> None:
    kind = "pulumi-python:dynamic/lakekeeper:Project"
    creation = {"urn": f"urn:pulumi:{stack}::{project}::lakewright:index:Tenant${kind}::acme", "type": kind}
    file = folder / "pending.json"
    file.write_text(json.dumps([creation | {"inputs": {}}]))
    monkeypatch.setenv(pending.FILE, str(file))


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(("stack", "project"), [("theirs", "lake"), ("mine", "other")])
def test_creations_of_another_stack_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: str, project: str
) -> None:
    report(tmp_path, monkeypatch, stack, project)
    with pytest.raises(pulumi.RunError, match=rf"of stack `{stack}` of project `{project}`, .* Unset the variable"):
        not_imported(None)


@pytest.mark.usefixtures("running")
def test_creations_of_the_own_stack_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report(tmp_path, monkeypatch, "mine", "lake")
    assert not_imported(None) is None
    monkeypatch.setenv(pending.FILE, str(tmp_path / "gone.json"))
    assert not_imported(None) is None
