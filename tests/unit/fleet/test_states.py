"""States of many stacks: read without secrets, and one by one."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
from lakewright.fleet.states import PulumiCliReader, StateReader, state_reader
from lakewright_engine.model.errors import SecretsError, StateError, UnsupportedFeatureError
from lakewright_engine.model.resources import SecretValue
from lakewright_engine.project.project import PulumiProject

SAMPLE = Path(__file__).parents[2] / "engine" / "backend-sample"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiProject:
    """Return a project with the states `dev`, of the real CLI, and `other`, a copy."""
    shutil.copytree(SAMPLE, tmp_path / "conf")
    (tmp_path / "conf" / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'conf'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "conformance")
    file = tmp_path / "conf" / ".pulumi" / "stacks" / "conf" / "dev.json"
    shutil.copy(file, file.with_name("other.json"))
    return PulumiProject.load(tmp_path / "conf")


@pytest.fixture
def states(project: PulumiProject) -> Path:
    return project.root / ".pulumi" / "stacks" / "conf"


@pytest.fixture
def reader(project: PulumiProject) -> StateReader:
    return state_reader(project)


def test_secrets_are_decrypted_at_first_use(reader: StateReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "wrong")

    state = reader.read("dev")

    assert [resource.urn.rpartition("::")[2] for resource in state.resources][-2:] == ["a", "b"]
    content = state.resources[3].inputs["content"]
    assert isinstance(content, SecretValue)
    with pytest.raises(SecretsError, match="incorrect passphrase"):
        _ = content.value
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "conformance")
    assert reader.read("dev").resources[3].inputs["content"].value == "key s3cr3t-value"  # pyright: ignore


def test_a_damaged_state_is_an_error_of_its_stack_only(reader: StateReader, states: Path) -> None:
    (states / "broken.json").write_text('{"version": 3, "checkp')
    newer = json.loads((states / "dev.json").read_text())
    newer["version"] = 9
    (states / "newer.json").write_text(json.dumps(newer))
    (states / "odd.json").write_text('{"version": 3, "checkpoint": ["latest"]}')

    assert reader.names() == ["broken", "dev", "newer", "odd", "other"]
    for stack in ("broken", "odd"):
        with pytest.raises(StateError, match=stack):
            reader.read(stack)
    with pytest.raises(UnsupportedFeatureError, match="version 9"):
        reader.read("newer")
    assert len(reader.read("other").resources) == 4


def test_holder_of_a_lock_is_reported(reader: StateReader, project: PulumiProject) -> None:
    folder = project.root / ".pulumi" / "locks" / "organization" / "conf" / "dev"
    folder.mkdir(parents=True)
    lock = {
        "pid": os.getpid(),
        "username": "ann",
        "hostname": socket.gethostname(),
        "timestamp": "2026-11-20T10:00:00Z",
    }
    (folder / "one.json").write_text(json.dumps(lock))

    state = reader.read("dev")

    assert len(state.locked) == 1
    assert "ann" in state.locked[0]
    assert len(state.resources) == 4
    assert reader.read("other").locked == ()


def test_stack_without_updates_has_no_resources(reader: StateReader, states: Path) -> None:
    (states / "fresh.json").write_text('{"version":3,"checkpoint":{"stack":"organization/conf/fresh","latest":null}}')

    assert reader.read("fresh").resources == []


def test_other_backends_need_the_pulumi_cli(project: PulumiProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://states")
    monkeypatch.setenv("PATH", "")

    with pytest.raises(UnsupportedFeatureError, match="gs"):
        state_reader(project)


@pytest.mark.pulumi_cli
def test_the_pulumi_cli_reads_the_same(project: PulumiProject, reader: StateReader) -> None:
    by_cli = PulumiCliReader(project)

    assert by_cli.names() == ["dev", "other"]
    assert by_cli.read("dev").resources == reader.read("dev").resources


@pytest.fixture
def cli(project: PulumiProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file with the entry of stack `dev` that `pulumi stack ls` prints."""
    entry, program = tmp_path / "entry.json", tmp_path / "bin" / "pulumi"
    program.parent.mkdir()
    deployment = project.root / ".pulumi" / "stacks" / "conf" / "dev.json"
    exported = {"version": 3, "deployment": json.loads(deployment.read_text())["checkpoint"]["latest"]}
    (tmp_path / "exported.json").write_text(json.dumps(exported))
    program.write_text(f'#!/bin/sh\ncase "$*" in *" ls "*) cat {entry};; *) cat {tmp_path / "exported.json"};; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return entry


def test_an_update_on_pulumi_cloud_is_read_each_time(project: PulumiProject, cli: Path) -> None:
    reader = PulumiCliReader(project)
    cli.write_text('[{"name": "dev", "updateInProgress": false}]')
    before = reader.read("dev")

    cli.write_text('[{"name": "dev", "updateInProgress": true}]')

    assert (before.locked, before.reports_locks) == ((), True)
    assert reader.read("dev").locked == ("an update in progress",)


def test_stores_read_by_the_cli_report_no_locks(project: PulumiProject, reader: StateReader, cli: Path) -> None:
    """The CLI prints no `updateInProgress` for them."""
    cli.write_text('[{"name": "dev", "lastUpdate": "2026-11-20T10:00:00.000Z"}]')

    assert not PulumiCliReader(project).read("dev").reports_locks
    assert reader.read("dev").reports_locks
