"""Runs over many stacks call a server with the secret in the configuration of each stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from lakewright.costs.archive_collection import record_archives
from lakewright.drift.detection.steps import DriftOptions, DriftRun
from lakewright.drift.model import DriftReport
from lakewright.drift.session import ScanSession, StackResource
from lakewright.fleet.selection import SelectedStack, Selection, select
from lakewright.fleet.spark_reports import SparkReport
from lakewright.fleet.states import StackState
from lakewright.restrictions.drift_notes import note_restrictions
from lakewright.restrictions.reading import read_restrictions
from lakewright.shares.expiry import expire_shares
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.tenant_project import create_project

pytestmark = pytest.mark.stand_in("records the tokens of requests")

RECORD = "pulumi-python:dynamic/lakekeeper:TenantRecord"
NAMES = ("acme", "globex")

Run = Callable[[PulumiProject, Sequence[SelectedStack]], list[str]]
"""Reads the archives of stacks from their servers, and returns the problems."""


class TokenRecorder:
    """Records the project and the token of each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.requests: set[tuple[str, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode() for name, value in scope.get("headers", [])}
        if "authorization" in headers:
            self.requests.add((headers.get("x-project-id", ""), headers["authorization"].removeprefix("Bearer ")))
        await self._app(scope, receive, send)


class RecordedStates:
    """States with a tenant's record that names data of a removed warehouse."""

    def names(self) -> list[str]:
        return [*NAMES]

    def read(self, stack: str) -> StackState:
        outputs = {"bucket_tag": f"record-of-{stack}", "kept": [{"bucket": f"{stack}-lake", "key_prefix": "raw"}]}
        urn = f"urn:pulumi:{stack}::lakewright::{RECORD}::record"
        return StackState(stack, [ResourceState(urn, RECORD, custom=True, outputs=outputs)])


@pytest.fixture
def recorder(tmp_path: Path) -> TokenRecorder:
    settings = Settings(database=f"sqlite:///{tmp_path / 'lakekeeper.db'}", skip_storage_validation=True)
    return TokenRecorder(create_app(settings))


@pytest.fixture
def project(tmp_path: Path, recorder: TokenRecorder, monkeypatch: pytest.MonkeyPatch) -> Iterator[PulumiProject]:
    """A project whose stacks have different tokens under the key that their environment names."""
    folder = tmp_path / "project"
    with serve(recorder) as endpoint:
        auth = {"kind": "token", "token": "config:lakekeeper_token"}
        create_project(folder, {"lakekeeper": {"endpoint": endpoint, "auth": auth}})
        monkeypatch.setenv("PULUMI_BACKEND_URL", (folder / "state").as_uri())
        for name in NAMES:
            spec = {"name": name, "environment": "sandbox"}
            config = {"lakewright:tenant": spec, "lakewright:lakekeeper_token": f"token-of-{name}"}
            (folder / "tenants" / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"config": config}))
        yield PulumiProject.load(folder)


def read_status(project: PulumiProject, selected: Sequence[SelectedStack]) -> list[str]:
    """Read the archives as `lakewright fleet status` does."""
    stacks = read_restrictions(project, selected, reader=RecordedStates())
    return [problem for stack in stacks for problem in stack.problems]


def expire(project: PulumiProject, selected: Sequence[SelectedStack]) -> list[str]:
    """Process the archives as `lakewright expire` does."""
    stacks = expire_shares(project, selected, reader=RecordedStates())
    return [problem for stack in stacks for problem in stack.problems]


def record_days(project: PulumiProject, selected: Sequence[SelectedStack]) -> list[str]:
    """List the archives as `lakewright record-compute` does. There are none, so no day is recorded."""

    def refuse(*_: object) -> list[SparkReport]:
        raise AssertionError("no stack has an archive")

    stacks = record_archives(project, selected, refuse, reader=RecordedStates())
    return [stack.problem for stack in stacks]


def note_archives(project: PulumiProject, selected: Sequence[SelectedStack]) -> list[str]:
    """Read the archives as the drift check does."""
    session, states, report = ScanSession(project), RecordedStates(), DriftReport()
    run = DriftRun(session, [*selected], DriftOptions())
    for stack in selected:
        (record,) = states.read(stack.name).resources
        run.resources.append(StackResource(stack.name, stack.tenant, stack.environment, record))
    try:
        note_restrictions(report, run)
    finally:
        session.close()
    return report.notes


@pytest.mark.parametrize("read_archives", [read_status, expire, record_days, note_archives])
def test_each_stack_is_read_with_its_token(project: PulumiProject, recorder: TokenRecorder, read_archives: Run) -> None:
    """The environment's reference has no project, and both stacks name the same server."""
    problems = read_archives(project, select(project, Selection()))

    assert problems == []
    assert recorder.requests == {("acme", "token-of-acme"), ("globex", "token-of-globex")}
