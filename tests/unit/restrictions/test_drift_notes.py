"""Notes of the drift check about archives and enforced limits: which stacks are read, and which errors are notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lakewright.cli.options import load_project
from lakewright.drift.detection.steps import DriftOptions, DriftRun
from lakewright.drift.model import DriftReport
from lakewright.drift.session import ScanSession, StackResource
from lakewright.fleet.selection import SelectedStack
from lakewright.restrictions import reading
from lakewright.restrictions.drift_notes import note_restrictions
from lakewright_engine.model.resources import ResourceState

from tests.tenant_project import create_project

RECORD = "pulumi-python:dynamic/lakekeeper:TenantRecord"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScanSession:
    """A run of a project whose environment names a server that does not respond."""
    create_project(tmp_path / "acme", {"lakekeeper": {"url": "http://127.0.0.1:9"}})
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tmp_path / "acme" / "state").as_uri())
    return ScanSession(load_project(tmp_path / "acme"))


def list_notes(session: ScanSession, stack: SelectedStack, record: Mapping[str, Any] | None) -> list[str]:
    """Return the notes of a run over a stack whose state has this record."""
    report, run = DriftReport(), DriftRun(session, [stack], DriftOptions())
    if record is not None:
        urn = f"urn:pulumi:{stack.name}::lakewright::{RECORD}::record"
        state = ResourceState(urn, RECORD, custom=True, outputs=dict(record))
        run.resources.append(StackResource(stack.name, stack.tenant, stack.environment, state))
    note_restrictions(report, run)
    return report.notes


def test_stack_without_state_is_not_read(session: ScanSession) -> None:
    assert list_notes(session, SelectedStack("acme", {"name": "acme", "environment": "sandbox"}), None) == []


def test_stack_without_spec_is_a_note(session: ScanSession) -> None:
    """Its server is not known, so its archives are not known either."""
    (note,) = list_notes(session, SelectedStack("acme"), {"kept": [{"bucket": "lake"}]})

    assert note.startswith("acme: archives and enforced limits could not be read: its stack file has no spec")


def test_server_without_response_is_a_note(session: ScanSession) -> None:
    stack = SelectedStack("acme", {"name": "acme", "environment": "sandbox"})

    (note,) = list_notes(session, stack, {"kept": [{"bucket": "lake"}]})

    assert note.startswith("acme: archives and enforced limits could not be read: ")


def test_unexpected_response_is_a_note(session: ScanSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role without a time of its creation must not end the step for other stacks."""

    def read_role(*_: object) -> None:
        raise KeyError("created-at")

    monkeypatch.setattr(reading, "open_project", read_role)
    stack = SelectedStack("acme", {"name": "acme", "environment": "sandbox"})

    (note,) = list_notes(session, stack, {"kept": [{"bucket": "lake"}]})

    assert note.endswith("is not as expected: KeyError: 'created-at'")
