"""States in a real S3 store: conditional writes, locks, and the same stack with the Pulumi CLI."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.model.errors import StackLockedError, StateConflictError
from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.processes.process_identity import is_running
from lakewright_engine.state.backends import open_backend
from lakewright_engine.state.secrets import PassphraseManager
from lakewright_sandbox.runtime.state import StoreState

from tests.s3.conftest import read_secret

PROGRAM = """
import threading
from pathlib import Path
import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider

class Notes(ResourceProvider):
    def create(self, props):
        if props["text"] == "blocks":
            Path("blocked").touch()
            threading.Event().wait()
        return CreateResult(props["text"], props)

class Note(Resource):
    def __init__(self, name, text):
        super().__init__(Notes(), name, {"text": text})

config = pulumi.Config()
Note("first", "one")
if config.get_bool("blocks"):
    Note("second", "blocks")
pulumi.export("token", config.require_secret("token"))
"""


@pytest.fixture
def backend_url(store: StoreState, s3: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a bucket for states. Its key and a passphrase are in the environment."""
    name = f"states-{uuid.uuid4()}"
    s3().create_bucket(Bucket=name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", read_secret(store.access_key_id))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", read_secret(store.secret_access_key))
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "conformance")
    return f"s3://{name}/team?region={store.region}&endpoint={store.endpoint}&s3ForcePathStyle=true"


@pytest.fixture
def project(tmp_path: Path, backend_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a project with the stack `dev` in the bucket."""
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend_url)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULUMI_SKIP_UPDATE_CHECK", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    lakewright(tmp_path, "stack", "init", "dev")
    lakewright(tmp_path, "config", "set", "token", "s3cr3t", "--secret", "--stack", "dev")
    return tmp_path


def lakewright(folder: Path, *arguments: str, code: int = 0) -> str:
    return call(folder, [sys.executable, "-m", "lakewright.cli", *arguments], code)


def pulumi(folder: Path, *arguments: str, code: int = 0) -> str:
    return call(folder, ["pulumi", "--non-interactive", *arguments], code)


def call(folder: Path, command: list[str], code: int) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def test_stale_write_keeps_the_newer_state(backend_url: str) -> None:
    secrets = PassphraseManager.create("dev")
    first, second = open_backend(backend_url), open_backend(backend_url)
    first.create("conf", "dev", secrets)
    assert second.load("conf", "dev") == StackSnapshot()
    newer = StackSnapshot([ResourceState("urn:pulumi:dev::conf::t:t:T::a", "t:t:T", custom=False)])
    first.save("conf", "dev", newer, secrets)
    with pytest.raises(StateConflictError):
        second.save("conf", "dev", StackSnapshot(), secrets)
    assert open_backend(backend_url).load("conf", "dev") == newer
    with first.lock("conf", "dev"), pytest.raises(StackLockedError), second.lock("conf", "dev"):
        pytest.fail("two held the stack at once")


@pytest.mark.pulumi_cli
def test_either_engine_continues_the_other(project: Path) -> None:
    on = ("--stack", "dev")
    lakewright(project, "up", *on, "--yes", "--engine", "embedded")
    assert json.loads(pulumi(project, "stack", "output", "--json", "--show-secrets", *on)) == {"token": "s3cr3t"}
    pulumi(project, "preview", "--expect-no-changes", *on)
    assert [entry["kind"] for entry in json.loads(pulumi(project, "stack", "history", "--json", *on))] == ["update"]
    assert [entry["name"] for entry in json.loads(pulumi(project, "stack", "ls", "--json"))] == ["dev"]

    pulumi(project, "stack", "rename", "prod", *on)
    on = ("--stack", "prod")
    lakewright(project, "preview", "--expect-no-changes", *on, "--engine", "embedded")
    exported = pulumi(project, "stack", "export", *on)
    (project / "state.json").write_text(exported)
    lakewright(project, "stack", "import", *on, "--file", "state.json")
    pulumi(project, "up", "--yes", "--skip-preview", *on)
    assert len(json.loads(lakewright(project, "stack", "history", "--json", *on))["updates"]) == 2
    assert json.loads(lakewright(project, "stack", "output", "--json", "--show-secrets", *on)) == {"token": "s3cr3t"}

    lakewright(project, "destroy", *on, "--yes", "--engine", "embedded")
    pulumi(project, "stack", "rm", "--yes", *on)
    assert json.loads(lakewright(project, "stack", "ls", "--json"))["stacks"] == []


@pytest.mark.pulumi_cli
@pytest.mark.parametrize("engine", ["embedded", "pulumi"])
def test_killed_run_is_refused_cancelled_and_continued(project: Path, engine: str) -> None:
    """The CLI cannot know that the lock of the embedded engine is dead, and the lock of the CLI never is."""
    on = ("--stack", "dev")
    lakewright(project, "config", "set", "blocks", "true", *on)
    command = [sys.executable, "-m", "lakewright.cli", "up", *on, "--yes", "--engine", engine]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while not (project / "blocked").exists():
            assert running.poll() is None
        for other in ("embedded", "pulumi"):
            refused = lakewright(project, "up", *on, "--yes", "--engine", other, code=1)
            assert "is locked by 1 other process(es)" in refused
            assert " ago" in refused
        assert "created by" in pulumi(project, "up", "--yes", "--skip-preview", *on, code=1)
        (locked,) = json.loads(lakewright(project, "stack", "ls", "--json"))["stacks"]
        (lock,) = locked["locks"]
        for process in {running.pid, lock["pid"]}:
            os.kill(process, signal.SIGKILL)
    while is_running(lock["pid"]):
        time.sleep(0.1)
    lakewright(project, "config", "set", "blocks", "false", *on)
    if engine == "embedded":
        assert "currently locked" in pulumi(project, "up", "--yes", "--skip-preview", *on, code=1)
    else:
        assert "no such process runs" in lakewright(project, "up", *on, "--yes", "--engine", "embedded", code=1)
        pulumi(project, "cancel", "--yes", "dev")
    lakewright(project, "up", *on, "--yes", "--engine", "embedded")
    pulumi(project, "preview", "--expect-no-changes", *on)
