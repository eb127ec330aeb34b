"""States that cannot be read: one clear error with stack, place and way out; other stacks are still listed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lakewright.cli.app import run
from lakewright_engine.model.errors import DamagedStateError, EngineError, SecretsError, UnsupportedStateError
from lakewright_engine.model.resources import ResourceState, SecretValue, StackSnapshot
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.state.backend import StateBackend

RESOURCE = {"urn": "urn:pulumi:dev::conf::t:t:T::a", "type": "t:t:T"}


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateBackend:
    """Return a backend with the stacks `dev` and `other`, and enter their project."""
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "right")
    monkeypatch.chdir(tmp_path)
    project = PulumiProject.load(tmp_path)
    secrets = project.secrets("dev")
    for stack in ("dev", "other"):
        project.backend().create("conf", stack, secrets)
    resource = ResourceState(RESOURCE["urn"], "t:t:T", custom=False, inputs={"x": SecretValue("s")})
    project.backend().save("conf", "dev", StackSnapshot([resource]), secrets)
    project.backend().save("conf", "dev", StackSnapshot([resource, resource]), secrets)
    return project.backend()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".pulumi" / "stacks" / "conf" / "dev.json"


def encode_state(*resources: Any, **fields: Any) -> bytes:
    latest = {"resources": [*resources]} | fields.pop("latest", {})
    return json.dumps({"version": 3, "checkpoint": {"latest": latest}} | fields).encode()


DAMAGE = {
    "empty": b"",
    "cut off": b'{"version": 3, "check',
    "no text": b"\xff\xfe\x00",
    "a list": b"[]",
    "cut gzip": gzip.compress(b"{}" * 100)[:-12],
    "deep": b"[" * 100_000,
    "version": encode_state(version="3"),
    "features": encode_state(features=[1]),
    "no checkpoint": b'{"version": 3}',
    "checkpoint": encode_state(checkpoint=[]),
    "resources": encode_state(latest={"resources": {}}),
    "resource": encode_state("a"),
    "no urn": encode_state({"type": "t:t:T"}),
    "type": encode_state(RESOURCE | {"type": 5}),
    "inputs": encode_state(RESOURCE | {"inputs": [1]}),
    "pending": encode_state(latest={"pending_operations": [{"type": "creating"}]}),
    "manifest": encode_state(latest={"manifest": "x"}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_names_place_and_way_out(backend: StateBackend, file: Path, damage: str) -> None:
    file.write_bytes(DAMAGE[damage])
    for read in (backend.load, backend.export):
        with pytest.raises(DamagedStateError) as refused:
            read("conf", "dev")
        text = str(refused.value)
        assert f"the state of stack 'dev' ({file}) is damaged: " in text
        assert "`lakewright stack import --stack dev --backup`" in text
    assert [(stack.name, bool(stack.problem)) for stack in backend.stacks("conf")] == [("dev", True), ("other", False)]
    assert backend.names("conf") == ["dev", "other"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (encode_state(version=9), r"has version 9.*\(.*dev\.json\)\. Update lakewright, or use --engine pulumi"),
        (encode_state(version=4, features=["timeTravel"]), r"needs timeTravel.*dev\.json"),
        (b"\x28\xb5\x2f\xfdxxxx", r"compressed with zstd"),
    ],
)
def test_newer_state_says_what_it_needs(backend: StateBackend, file: Path, content: bytes, expected: str) -> None:
    file.write_bytes(content)
    with pytest.raises(UnsupportedStateError, match=expected):
        backend.load("conf", "dev")
    assert [bool(stack.problem) for stack in backend.stacks("conf")] == [True, False]


def test_foreign_secrets_provider_is_named(backend: StateBackend, file: Path) -> None:
    content = json.loads(file.read_text())
    content["checkpoint"]["latest"]["secrets_providers"] = {"type": "awskms://alias/x?region=y"}
    file.write_text(json.dumps(content))
    with pytest.raises(UnsupportedStateError, match=r"stack 'dev' uses the secrets provider 'awskms://alias/x'"):
        backend.load("conf", "dev")
    assert [stack.problem for stack in backend.stacks("conf")] == ["", ""], "a list needs no secrets"


def test_wrong_passphrase_names_stack_and_variable(backend: StateBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "wrong")
    with pytest.raises(SecretsError, match="incorrect passphrase for stack 'dev'; it is taken from PULUMI_CONFIG"):
        backend.load("conf", "dev")


@pytest.mark.parametrize("meta", [None, "version: 0\n", "version: 2\n", "{", "text"])
def test_other_layouts_are_refused(backend: StateBackend, file: Path, meta: str | None) -> None:
    """Without a description, a state outside a project's folder is one of the old layout."""
    described = file.parents[2] / "meta.yaml"
    if meta is None:
        described.unlink()
        (file.parents[1] / "old.json").write_bytes(encode_state())
    else:
        described.write_text(meta)
    with pytest.raises(EngineError, match=r"\.pulumi.*(state upgrade|version|cannot be read)"):
        backend.stacks("conf")


def test_backup_restores_a_damaged_state(
    backend: StateBackend, file: Path, capsys: pytest.CaptureFixture[str], command: Callable[[str], int]
) -> None:
    file.write_bytes(b"{")
    assert command("stack ls --json") == 0
    dev, other = json.loads(capsys.readouterr().out)["stacks"]
    assert (dev["name"], other["problem"], other["locks"]) == ("dev", "", [])
    assert "damaged" in dev["problem"]

    with backend.lock("conf", "other"):
        assert command("stack ls") == 0
    printed = capsys.readouterr()
    assert "unreadable" in printed.out
    assert "@" in printed.out, "the holder of the lock"
    assert "is damaged" in printed.err

    assert command("stack import --stack dev --backup") == 0
    assert len(backend.export("conf", "dev")["deployment"]["resources"]) == 1
    assert command("stack rm --stack dev --yes --force") == 0


def test_damaged_stack_is_removed_only_with_force(
    backend: StateBackend, file: Path, command: Callable[[str], int]
) -> None:
    file.write_bytes(b"{")
    assert command("stack rm --stack dev --yes") == 1
    assert file.exists()
    assert command("stack rm --stack dev --yes --force") == 0
    assert backend.names("conf") == ["other"]


@pytest.fixture
def command() -> Callable[[str], int]:
    def call(command_line: str) -> int:
        with pytest.raises(SystemExit) as ended:
            run(command_line.split())
        return int(ended.value.code or 0)

    return call
