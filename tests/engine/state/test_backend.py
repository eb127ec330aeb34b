"""The file backend with a folder of the CLI: reads, writes, damage, locks, exports and imports."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from lakewright_engine.model.errors import (
    DamagedStateError,
    EngineError,
    StackLockedError,
    StackNotFoundError,
    StateError,
    UnsupportedFeatureError,
)
from lakewright_engine.model.resources import PendingOperation, ResourceState, SecretValue, StackSnapshot
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
from lakewright_engine.state.checkpoint import Codec
from lakewright_engine.state.outputs import stack_outputs
from lakewright_engine.steps.deployment import format_time

SAMPLE = Path(__file__).parents[1] / "backend-sample"
TOKEN = "s3cr3t-value"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiProject:
    """Return the folder of the CLI after its first `up`, with its project."""
    shutil.copytree(SAMPLE, tmp_path / "conf")
    (tmp_path / "conf" / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'conf'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "conformance")
    return PulumiProject.load(tmp_path / "conf")


@pytest.fixture
def backend(project: PulumiProject) -> StateBackend:
    return project.backend()


def checkpoint_file(backend: StateBackend) -> Path:
    return backend.storage.root / "stacks" / "conf" / "dev.json"


def remove_manifest(checkpoint: dict) -> dict:
    checkpoint["checkpoint"]["latest"].pop("manifest")
    return checkpoint


def test_state_of_the_cli_is_read(backend: StateBackend) -> None:
    snapshot = backend.load("conf", "dev")
    assert snapshot is not None
    stack, provider, a, b = snapshot.resources
    assert stack.outputs == {"content": SecretValue(f"key {TOKEN}"), "plain": "one"}
    assert provider.inputs == {"conf:token": SecretValue(TOKEN)}
    assert a.outputs["etag"] == "etag-one"
    assert b.inputs["content"] == SecretValue(f"key {TOKEN}")
    assert a.parent == stack.urn
    assert a.provider.startswith(provider.urn)


def test_state_is_written_back_with_its_ciphertexts(project: PulumiProject, backend: StateBackend) -> None:
    before = backend.checkpoint("conf", "dev")
    snapshot = backend.load("conf", "dev")
    assert before is not None
    assert snapshot is not None
    backend.save("conf", "dev", snapshot, project.secrets("dev"))
    after = backend.checkpoint("conf", "dev")
    assert after is not None
    assert remove_manifest(after) == remove_manifest(before)
    keys_before, keys_after = (
        [list(resource) for resource in checkpoint["checkpoint"]["latest"]["resources"]]
        for checkpoint in (before, after)
    )
    assert keys_after == keys_before, "keys stand in the CLI's order"


def test_only_changed_secrets_get_new_ciphertexts(project: PulumiProject, backend: StateBackend) -> None:
    snapshot = backend.load("conf", "dev")
    before = checkpoint_file(backend).read_text()
    assert snapshot is not None
    snapshot.resources[3].inputs["content"] = SecretValue("another")
    backend.save("conf", "dev", snapshot, project.secrets("dev"))
    after = checkpoint_file(backend).read_text()
    old = [secret["ciphertext"] for secret in _secrets(json.loads(before))]
    new = [secret["ciphertext"] for secret in _secrets(json.loads(after))]
    assert len(set(old) & set(new)) == len(old) - 1
    assert "another" not in after


def test_changes_in_place_are_written(project: PulumiProject, backend: StateBackend) -> None:
    snapshot = backend.load("conf", "dev")
    assert snapshot is not None
    secrets = project.secrets("dev")
    backend.save("conf", "dev", snapshot, secrets)
    snapshot.resources[2].outputs["nested"] = {"deep": [1]}
    backend.save("conf", "dev", snapshot, secrets)
    snapshot.resources[2].outputs["nested"]["deep"].append(2)
    snapshot.resources[2].delete = True
    backend.save("conf", "dev", snapshot, secrets)
    saved = open_backend(backend.url).load("conf", "dev")
    assert saved is not None
    assert saved.resources[2].outputs["nested"] == {"deep": [1, 2]}
    assert saved.resources[2].delete


def test_previous_checkpoint_is_kept_as_backup(project: PulumiProject, backend: StateBackend) -> None:
    before = checkpoint_file(backend).read_bytes()
    backend.save("conf", "dev", StackSnapshot(), project.secrets("dev"))
    backup = checkpoint_file(backend).with_name("dev.json.bak")
    assert backup.read_bytes() == before


def test_pending_operations_and_unknown_fields_are_kept(project: PulumiProject, backend: StateBackend) -> None:
    resource = ResourceState(urn="urn:pulumi:dev::conf::t:t:T::x", type="t:t:T", custom=True)
    resource.extra = {"viewOf": "urn:v", "newField": ["a"]}
    snapshot = StackSnapshot([resource], [PendingOperation(resource, "creating")], {"note": 1})
    backend.save("conf", "dev", snapshot, project.secrets("dev"))
    content = backend.checkpoint("conf", "dev")
    assert content is not None
    assert (content["version"], content["features"]) == (4, ["views"]), "a reader must know the format that it reads"
    assert open_backend(backend.url).load("conf", "dev") == snapshot


def test_snippets_and_extensions_are_kept(project: PulumiProject, backend: StateBackend) -> None:
    content = backend.checkpoint("conf", "dev")
    assert content is not None
    content["checkpoint"]["latest"]["snippets"] = [{"id": "1"}]
    content |= {"version": 4, "features": ["snippets-prototype"]}
    checkpoint_file(backend).write_text(json.dumps(content))
    snapshot = backend.load("conf", "dev")
    assert snapshot is not None
    backend.save("conf", "dev", snapshot, project.secrets("dev"))
    saved = backend.checkpoint("conf", "dev")
    assert saved is not None
    assert saved["checkpoint"]["latest"]["snippets"] == [{"id": "1"}]
    assert saved["features"] == ["snippets-prototype"]


def test_checkpoint_is_compressed_as_by_the_cli(
    project: PulumiProject, backend: StateBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment decides, also for a state in the other form, which becomes the backup."""
    plain, secrets = checkpoint_file(backend), project.secrets("dev")
    packed = plain.with_name("dev.json.gz")
    monkeypatch.setenv("PULUMI_DIY_BACKEND_GZIP", "true")
    backend.save("conf", "dev", StackSnapshot(), secrets)
    assert not plain.exists()
    assert json.loads(gzip.decompress(packed.read_bytes()))["version"] == 3
    assert [summary.name for summary in backend.stacks("conf")] == ["dev"]
    assert len(backend.export_backup("conf", "dev")["deployment"]["resources"]) == 4

    monkeypatch.delenv("PULUMI_DIY_BACKEND_GZIP")
    backend.save("conf", "dev", StackSnapshot(), secrets)
    assert not packed.exists()
    assert json.loads(plain.read_bytes())["version"] == 3
    assert "resources" not in backend.export_backup("conf", "dev")["deployment"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"version": 3, "checkpoint": {"latest": {"resources": [{}]}}}', b"\xff\xfe"],
    ids=["empty", "cut off", "a list", "a resource without a name", "no text"],
)
def test_damaged_checkpoint_is_reported_and_kept(backend: StateBackend, content: bytes) -> None:
    checkpoint_file(backend).write_bytes(content)
    with pytest.raises(StateError, match=r"the state of stack 'dev'.*damaged"):
        backend.load("conf", "dev")
    assert checkpoint_file(backend).read_bytes() == content


def test_newer_states_are_refused(backend: StateBackend) -> None:
    content = backend.checkpoint("conf", "dev")
    assert content is not None
    file = checkpoint_file(backend)
    file.write_text(json.dumps(content | {"version": 4, "features": ["timeTravel"]}))
    with pytest.raises(UnsupportedFeatureError, match="timeTravel"):
        backend.load("conf", "dev")
    file.write_text(json.dumps(content | {"version": 9}))
    with pytest.raises(UnsupportedFeatureError, match="version 9"):
        backend.load("conf", "dev")


def test_other_backends_and_layouts_are_refused(backend: StateBackend) -> None:
    for scheme in ("gs", "azblob", "https"):
        with pytest.raises(UnsupportedFeatureError, match=rf"'{scheme}'.*--engine pulumi"):
            open_backend(f"{scheme}://bucket")
    (backend.storage.root / "meta.yaml").write_text("version: 7\n")
    with pytest.raises(UnsupportedFeatureError, match="version 7"):
        backend.load("conf", "dev")


def test_interrupted_write_keeps_the_old_state(
    project: PulumiProject, backend: StateBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = checkpoint_file(backend).read_bytes()

    def fail(_descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StateError, match=r"could not be saved: no space.* unchanged"):
        backend.save("conf", "dev", StackSnapshot(), project.secrets("dev"))
    assert checkpoint_file(backend).read_bytes() == before
    assert [summary.name for summary in backend.stacks("conf")] == ["dev"], "a leftover file is not a stack"
    assert not list(backend.storage.root.rglob("*.partial"))


def test_locked_stack_names_its_holder(backend: StateBackend) -> None:
    with (
        backend.lock("conf", "dev"),
        pytest.raises(StackLockedError, match=rf"pid {os.getpid()}.*"),
        open_backend(backend.url).lock("conf", "dev"),
    ):
        pytest.fail("two held the stack at once")
    with backend.lock("conf", "dev"):
        assert [lock.holder for lock in backend.cancel("conf", "dev")] != []
    with backend.lock("conf", "dev"):
        pass


HOLD_AND_DIE = """
import os, sys
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
lock = open_backend(sys.argv[1]).lock("conf", "dev")
lock.__enter__()
os._exit(9)
"""


def test_lock_of_killed_run_is_removed(backend: StateBackend) -> None:
    subprocess.run([sys.executable, "-c", HOLD_AND_DIE, backend.url], check=False)
    assert lock_files(backend)
    with backend.lock("conf", "dev"):
        pass
    assert lock_files(backend) == []


def test_lock_of_killed_cli_names_its_dead_process(backend: StateBackend) -> None:
    subprocess.run([sys.executable, "-c", HOLD_AND_DIE, backend.url], check=False)
    (file,) = lock_files(backend)
    content = json.loads(file.read_text())
    del content["lakewright"]
    file.write_text(json.dumps(content))

    with pytest.raises(StackLockedError, match="no such process runs"), backend.lock("conf", "dev"):
        pass


def lock_files(backend: StateBackend) -> list[Path]:
    return list((backend.storage.root / "locks").rglob("*.json"))


def test_concurrent_runs_get_at_most_one_lock(backend: StateBackend, tmp_path: Path) -> None:
    script = """
import sys, os
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
from lakewright_engine.model.errors import StackLockedError
backend, log = open_backend(sys.argv[1]), sys.argv[2]
for _ in range(20):
    try:
        with backend.lock("conf", "dev"):
            descriptor = os.open(log + ".held", os.O_CREAT | os.O_EXCL)  # fails if another is inside
            os.close(descriptor)
            os.unlink(log + ".held")
    except StackLockedError:
        pass
"""
    command = [sys.executable, "-c", script, backend.url, str(tmp_path / "log")]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    assert [(process.communicate()[1], process.returncode) for process in running] == [(b"", 0)] * 4
    assert list((backend.storage.root / "locks").rglob("*.json")) == []


def test_export_and_import(backend: StateBackend, project: PulumiProject) -> None:
    exported = backend.export("conf", "dev")
    assert f'"{TOKEN}"' not in json.dumps(exported)
    backend.create("conf", "other", project.secrets("dev"))
    with pytest.raises(StateError, match="does not belong to stack 'other'"):
        backend.import_("conf", "other", exported)
    backend.save("conf", "dev", StackSnapshot(), project.secrets("dev"))
    backend.import_("conf", "dev", exported)
    assert backend.export("conf", "dev") == exported


def test_import_refuses_inconsistent_state(backend: StateBackend) -> None:
    exported = backend.export("conf", "dev")
    before = checkpoint_file(backend).read_bytes()
    resources = exported["deployment"]["resources"]
    for wrong in (resources[1:], [*resources, resources[2]], list(reversed(resources))):
        with pytest.raises(StateError, match="inconsistent"):
            backend.import_("conf", "dev", {**exported, "deployment": {**exported["deployment"], "resources": wrong}})
    with pytest.raises(EngineError):
        backend.import_("conf", "dev", {"version": 3})
    assert checkpoint_file(backend).read_bytes() == before


def test_remove_refuses_a_stack_with_resources(backend: StateBackend) -> None:
    with pytest.raises(StateError, match="still has 4 resource"):
        backend.remove("conf", "dev")
    backend.record("conf", "dev", {"kind": "update"})
    backend.remove("conf", "dev", force=True)
    assert backend.stacks() == []
    assert [path for path in backend.storage.root.rglob("*") if path.is_file() and "dev" in path.name] == []
    with pytest.raises(StackNotFoundError, match="stack init"):
        backend.remove("conf", "dev")


def test_stack_names_outside_the_folder_are_refused(backend: StateBackend, project: PulumiProject) -> None:
    for name in ("../up", "a/b", "", "x" * 101, ".", ".."):
        with pytest.raises(StateError, match="not a stack name"):
            backend.create("conf", name, project.secrets("dev"))
    with pytest.raises(StateError, match="already exists"):
        backend.create("conf", "dev", project.secrets("dev"))


def test_outputs_show_secrets_only_on_request(backend: StateBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stack_outputs(backend, "conf", "dev", show_secrets=True)["content"] == f"key {TOKEN}"
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    assert stack_outputs(backend, "conf", "dev") == {"content": "[secret]", "plain": "one"}, "needs no passphrase"


def test_unknown_signature_is_refused() -> None:
    deployment = {
        "resources": [
            {
                "urn": "u",
                "custom": True,
                "type": "t",
                "inputs": {"x": {"4dabf18193072939515e22adb298388d": "something new"}},
            }
        ]
    }
    with pytest.raises(UnsupportedFeatureError, match="something new"):
        Codec("dev").decode(deployment, 3, [])


def _secrets(value: object) -> list[dict]:
    if isinstance(value, dict):
        if "ciphertext" in value:
            return [value]
        return [secret for item in value.values() for secret in _secrets(item)]
    return [secret for item in value for secret in _secrets(item)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("microseconds", "expected"),
    [(524002, "2026-11-22T07:30:33.524002Z"), (524000, "2026-11-22T07:30:33.524Z"), (0, "2026-11-22T07:30:33Z")],
)
def test_times_have_no_trailing_zeros(microseconds: int, expected: str) -> None:
    """The CLI formats the times of a state at each save. Another format would make two exports differ."""
    assert format_time(datetime(2026, 11, 22, 7, 30, 33, microseconds, tzinfo=UTC)) == expected


def test_history_entry_in_zstd_is_read(backend: StateBackend) -> None:
    """The CLI keeps such entries when PULUMI_DIY_BACKEND_ZSTD is unset again, and writes the state as plain text."""
    backend.record("conf", "dev", {"kind": "update"})
    folder = backend.storage.root / "history" / "conf" / "dev"
    plain = max(folder.glob("*.history.json"))
    compressor = zstandard.ZstdCompressor().compressobj()  # as the CLI's stream, without the size
    content = compressor.compress(plain.read_bytes()) + compressor.flush()
    before = backend.history("conf", "dev")
    plain.with_name(f"{plain.name}.zst").write_bytes(content)
    plain.unlink()

    assert backend.history("conf", "dev") == before
    plain.with_name(f"{plain.name}.zst").write_bytes(content[:-4])
    with pytest.raises(DamagedStateError, match=r"history entry .* is damaged"):
        backend.history("conf", "dev")


def test_the_last_update_needs_no_older_history(backend: StateBackend) -> None:
    backend.record("conf", "dev", {"kind": "update"})
    for file in (backend.storage.root / "history" / "conf" / "dev").glob("*.history.json"):
        file.write_text("{")
    backend.record("conf", "dev", {"kind": "refresh"})

    assert backend.history("conf", "dev", limit=1) == [{"kind": "refresh"}]
    with pytest.raises(StateError, match="is damaged"):
        backend.history("conf", "dev")
