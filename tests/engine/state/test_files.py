"""Files of a stack: private, valid after a power failure, unchanged on a full disk."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.model.errors import ProjectError, StateError
from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.project.project import PulumiProject
from stackrunner import Stack

PROGRAM = """
import os
from filestore import File
a = File("a", "a.json", "one")
File("b", "b.json", a.etag)
"""
UPDATE = {"kind": "update", "message": "x" * 5000}
SAVE = """
import os, sys
from lakewright_engine.model.resources import StackSnapshot
from lakewright_engine.project.project import PulumiProject
calls = int(sys.argv[2])
project = PulumiProject.load(sys.argv[1])
backend, secrets = project.backend(), project.secrets("dev")
def cut(call):
    def called(*arguments, **options):
        global calls
        calls -= 1
        if calls < 0:
            os._exit(9)
        return call(*arguments, **options)
    return called
snapshot = backend.load("conf", "dev")
with backend.lock("conf", "dev"):
    for name in ("fsync", "replace", "link", "fchmod", "chmod"):
        setattr(os, name, cut(getattr(os, name)))
    backend.save("conf", "dev", StackSnapshot(snapshot.resources[:1]), secrets)
    os._exit(0)
"""


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    stack = Stack(tmp_path, PROGRAM)
    for name, value in stack.environment.items():
        monkeypatch.setenv(name, value)
    return stack


@contextmanager
def full_disk(size: int = 200) -> Iterator[None]:
    """Limit the file size of this process: as on a full disk, a write fails half-way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def modes(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")}


def large(snapshot: StackSnapshot) -> StackSnapshot:
    big = ResourceState("urn:pulumi:dev::conf::a:b:C::big", "a:b:C", custom=True, inputs={"text": "x" * 5000})
    return StackSnapshot([*snapshot.resources, big])


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_state_and_settings_are_readable_only_by_the_user(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        stack = Stack(tmp_path, PROGRAM)
        stack.set_config("token", "one", secret=True)
        assert stack.run("up").exit == 0
        stack.backend.record("conf", "dev", UPDATE)
    finally:
        os.umask(before)
    modes_by_name = modes(tmp_path / "state")
    assert {"stacks", "history", "backups", "locks", "meta.yaml"} == {
        path.name for path in stack.backend.storage.root.iterdir()
    }
    assert {mode for name, mode in modes_by_name.items() if (tmp_path / "state" / name).is_dir()} == {"0o700"}
    assert {mode for name, mode in modes_by_name.items() if (tmp_path / "state" / name).is_file()} == {"0o600"}
    assert modes(stack.program_dir)["Pulumi.dev.yaml"] == "0o600"


def test_folder_of_earlier_release_becomes_private(stack: Stack) -> None:
    stack.backend.storage.root.chmod(0o755)
    with stack.backend.lock("conf", "dev"):
        assert stat.S_IMODE(stack.backend.storage.root.stat().st_mode) == 0o700


def test_folder_shared_with_a_group_stays_shared(stack: Stack) -> None:
    for folder in (
        stack.backend.storage.root,
        *(path for path in stack.backend.storage.root.rglob("*") if path.is_dir()),
    ):
        folder.chmod(0o2770)
    assert stack.run("up").exit == 0
    stack.backend.record("conf", "dev", UPDATE)
    assert stat.S_IMODE(stack.backend.storage.root.stat().st_mode) == 0o2770
    assert modes(stack.backend.storage.root)["stacks/conf/dev.json"] == "0o660"
    assert modes(stack.backend.storage.root)["history/conf/dev"] == "0o2770"


def test_save_syncs_file_before_rename_and_folder_after(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(descriptor: int) -> None:
        calls.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        fsync(descriptor)

    def record_replace(source: Any, target: Any) -> None:
        calls.append(("rename", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    stack.save(StackSnapshot())
    stack.set_config("plain", "one")

    def partial(name: str) -> str:
        return f"{name}.{os.getpid()}.partial"

    assert calls == [
        ("rename", "dev.json.bak"),
        ("sync", "conf"),
        ("sync", partial("dev.json")),
        ("rename", "dev.json"),
        ("sync", "conf"),
        ("sync", partial("Pulumi.dev.yaml")),
        ("rename", "Pulumi.dev.yaml"),
        ("sync", "conf"),
    ]


def test_power_failure_during_save_keeps_a_valid_state(stack: Stack) -> None:
    assert stack.run("up").exit == 0
    full = [resource.urn for resource in stack.resources()]
    codes: list[int] = []
    while 0 not in codes:
        command = [sys.executable, "-c", SAVE, str(stack.program_dir), str(len(codes))]
        codes.append(subprocess.run(command, check=False).returncode)
        urns = [resource.urn for resource in stack.resources()]
        assert urns in (full, full[:1])
        with stack.backend.lock("conf", "dev"):
            assert list(stack.backend.storage.root.rglob("*.partial")) == [], "the next run cleans up"
    assert len(codes) > 6
    assert set(codes) == {0, 9}


def test_full_disk_keeps_state_and_settings(stack: Stack) -> None:
    snapshot = stack.backend.load("conf", "dev")
    assert snapshot is not None
    project = PulumiProject.load(stack.program_dir)
    secrets = project.secrets("dev")
    before = contents(stack.folder)

    with full_disk(), pytest.raises(StateError, match="state of stack 'dev' could not be saved: File too large"):
        stack.backend.save("conf", "dev", large(snapshot), secrets)
    with full_disk(), pytest.raises(StateError, match="history of stack 'dev' could not be saved"):
        stack.backend.record("conf", "dev", UPDATE)
    settings = project.stack_config("dev")
    settings.set("long", "x" * 5000)
    with full_disk(), pytest.raises(ProjectError, match=r"Pulumi\.dev\.yaml could not be saved: File too large"):
        settings.save()

    after = contents(stack.folder)
    assert {name: after[name] for name in before} == before
    assert [name for name in after if name.endswith(".partial")] == []


def test_disk_full_during_a_run_loses_nothing(stack: Stack) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_disk(event: Any) -> None:
        done = event.res_outputs_event
        if done is not None and done.metadata.urn.endswith("::a"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
        if event.diagnostic_event is not None and "could not be saved" in event.diagnostic_event.message:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))  # a user frees space

    try:
        outcome = stack.run("up", on_event=fill_disk)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert outcome.exit == 1
    assert [
        message for message in outcome.messages if "state of stack 'dev' could not be saved: File too large" in message
    ]
    assert list(stack.files()) == ["a.json"]
    assert stack.resource("a").id == "a.json", "the finished steps are saved at the end, when the disk has room again"
    assert stack.run("up").exit == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_real_full_disk_keeps_the_old_state(small_disk: Path) -> None:
    stack = Stack(small_disk, PROGRAM)
    before = contents(stack.backend.storage.root)
    snapshot = stack.backend.load("conf", "dev")
    assert snapshot is not None
    filler = small_disk / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}"], check=False, capture_output=True)

    with pytest.raises(StateError, match="could not be saved: No space left on device"):
        stack.save(large(snapshot))
    after = contents(stack.backend.storage.root)
    assert after["stacks/conf/dev.json"] == before["stacks/conf/dev.json"]
    assert [name for name in after if name.endswith(".partial")] == []

    filler.unlink()
    stack.save(large(snapshot))
    assert len(stack.resources()) == 1
