"""Stacks whose states have what another stack would create or adopt."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from lakewright.cli.commands.operations import open_server_access
from lakewright.cli.ownership.refusals import OwnedElsewhereError, refuse_owned_objects
from lakewright.cli.ownership.state_owners import find_other_owners
from lakewright.ownership.consent import Consent, parse_consent
from lakewright_engine.project.project import PulumiProject

CLOSED = "http://127.0.0.1:9"
"""The address of the environment's Lakekeeper, where no server listens."""
SPEC = """config:
  lakewright:tenant:
    name: acme
    environment: production
    storage: {main: {backend: aws, bucket: acme-lake}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiProject:
    """Three stacks in one backend: `mine` declares tenant acme; `theirs` and, in another project, `elsewhere` exist."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "p")
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "production.yaml").write_text(f"lakekeeper: {{endpoint: '{CLOSED}/'}}\n")
    (tmp_path / "Pulumi.mine.yaml").write_text(SPEC)
    project = PulumiProject.load(tmp_path)
    secrets = project.secrets("mine")
    for name, stack in (("lake", "mine"), ("lake", "theirs"), ("pond", "elsewhere")):
        project.backend().create(name, stack, secrets)
    return project


def add_project(
    project: PulumiProject, stack: str, endpoint: str = CLOSED, *, server_id: str | None = None, is_marked: bool = True
) -> None:
    """Put project `acme` at an endpoint into the state of a stack."""
    inputs: dict[str, Any] = {"project_id": "acme", "server": {"endpoint": endpoint}}
    inputs |= {"stack": f"lake/{stack}"} if is_marked else {}
    outputs = {"server_id": server_id} if server_id else {}
    _add_resource(project, stack, "pulumi-python:dynamic/lakekeeper:Project", inputs, outputs)


def add_bucket(project: PulumiProject, stack: str, endpoint: str | None = None) -> None:
    """Put bucket `acme-lake` of a store, or of AWS, into the state of a stack."""
    inputs = {"bucket": "acme-lake", "region": "eu-west-1"} | ({"endpoint": endpoint} if endpoint else {})
    _add_resource(project, stack, "pulumi-python:dynamic/lakekeeper:BucketRemoval", inputs, {})


def _add_resource(
    project: PulumiProject, stack: str, kind: str, inputs: dict[str, Any], outputs: dict[str, Any]
) -> None:
    name = "pond" if stack == "elsewhere" else "lake"
    backend = project.backend()
    exported: dict[str, Any] = backend.export(name, stack)
    resource = {"urn": f"urn:pulumi:{stack}::{name}::{kind}::acme", "type": kind, "custom": True, "id": "acme"}
    exported["deployment"]["resources"] = [resource | {"inputs": inputs, "outputs": inputs | outputs}]
    backend.import_(name, stack, exported, force=True)


def refusal(project: PulumiProject, *consents: Consent, deletes: bool = False) -> str:
    """Return why stack `mine` is refused; an empty string if it is not."""
    try:
        refuse_owned_objects(open_server_access(project), "mine", consents, deletes=deletes)
    except OwnedElsewhereError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("stack", "endpoint", "is_named"),
    [
        ("theirs", "http://127.0.0.1.:9", True),
        ("elsewhere", CLOSED, True),
        ("theirs", "https://staging.example", False),
        ("mine", CLOSED, False),
    ],
)
def test_owner_of_the_project_is_named(project: PulumiProject, stack: str, endpoint: str, *, is_named: bool) -> None:
    add_project(project, stack, endpoint)

    message = refusal(project)

    assert ("project `acme` of this Lakekeeper is in the state of stack `" in message) is is_named
    assert ("lakewright up --stack mine --adopt project=acme" in message) is is_named
    assert (f"lakewright stack forget --stack {stack}" in message) is is_named


@pytest.mark.parametrize(("endpoint", "is_named"), [(None, True), ("https://minio.example", False)])
def test_owner_of_the_bucket_is_named(project: PulumiProject, endpoint: str | None, *, is_named: bool) -> None:
    add_bucket(project, "elsewhere", endpoint)

    assert ("bucket `acme-lake` is in the state of stack `pond/elsewhere`" in refusal(project)) is is_named


def test_bucket_that_a_deployed_stack_adds_is_searched(project: PulumiProject) -> None:
    add_project(project, "mine")
    add_bucket(project, "theirs")

    assert "bucket `acme-lake` is in the state of stack `lake/theirs`" in refusal(project)


@pytest.mark.parametrize(("text", "is_named"), [('{"checkpoint": "acme', True), ('{"checkpoint": "globex', False)])
def test_unreadable_state_is_a_possible_owner(project: PulumiProject, text: str, *, is_named: bool) -> None:
    add_project(project, "theirs")
    (file,) = Path(project.state_url.removeprefix("file://")).rglob("theirs.json")
    file.write_text(text)

    message = refusal(project)

    assert ("may be in the state of stack `lake/theirs`, which cannot be read" in message) is is_named


def test_operator_permits_what_another_state_has(project: PulumiProject, capsys: pytest.CaptureFixture[str]) -> None:
    add_project(project, "theirs")

    assert "project `acme`" in refusal(project, parse_consent("bucket=acme"))
    assert refusal(project, parse_consent("project=acme")) == ""
    assert "run `lakewright stack forget --stack theirs` in project `lake`" in capsys.readouterr().err


@pytest.mark.parametrize("deletes", [True, False])
@pytest.mark.parametrize("is_marked", [True, False])
def test_unmarked_project_in_two_states_is_refused(project: PulumiProject, *, is_marked: bool, deletes: bool) -> None:
    """A copy of a state of an earlier version: no mark says whose the project is."""
    add_project(project, "mine", is_marked=is_marked)
    add_project(project, "theirs", is_marked=is_marked)

    assert bool(refusal(project, deletes=deletes)) is not is_marked


def test_destroy_of_an_empty_stack_is_allowed(project: PulumiProject) -> None:
    add_project(project, "theirs")

    assert refusal(project, deletes=True) == ""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cat state.json", 1),
        ("echo \"error: no stack named 'mine' found\" >&2; exit 255", 0),
        ("echo error: not logged in >&2; exit 255", None),
    ],
)
def test_state_of_a_backend_of_the_cli_is_exported(
    project: PulumiProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, expected: int | None
) -> None:
    """Retained and lost objects are also found if only the Pulumi CLI reads the backend."""
    add_project(project, "mine")
    exported = project.backend().export(project.name, "mine")
    (project.root / "state.json").write_text(json.dumps(exported))
    command = tmp_path / "bin" / "pulumi"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n[ \"$*\" = '--non-interactive stack export --stack mine' ] || exit 9\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PULUMI_BACKEND_URL", "https://api.pulumi.com")

    objects = open_server_access(PulumiProject.load(project.root)).read_objects("mine")

    assert (objects and len(objects.projects)) == expected
    assert find_other_owners(open_server_access(PulumiProject.load(project.root)), "mine") == []
