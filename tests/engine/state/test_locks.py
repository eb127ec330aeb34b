"""Locks of dead holders are removed, and locks of live holders are kept, also across containers and machines."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.model.errors import StackLockedError
from lakewright_engine.processes.process_identity import is_running
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
from lakewright_engine.storage import lock_holder
from stackrunner import Stack

HOLD = """
import os, sys
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
with open_backend(sys.argv[1]).lock("conf", "dev"):
    print("held", flush=True)
    sys.stdin.read()
    os._exit(9)  # as if killed: nothing is cleaned up
"""
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.fixture
def backend(tmp_path: Path) -> StateBackend:
    return open_backend(f"file://{tmp_path}")


@contextmanager
def holder(backend: StateBackend, *prefix: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the lock until its standard input ends, and then dies without releasing it."""
    command = [*prefix, sys.executable, "-c", HOLD, backend.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def die_in_lock(backend: StateBackend, *prefix: str) -> Path:
    """Leave the lock of a killed process. Return its file."""
    with holder(backend, *prefix) as process:
        process.communicate("")
    (file,) = lock_files(backend)
    return file


def lock_files(backend: StateBackend) -> list[Path]:
    return list((backend.storage.root / "locks").rglob("*.json"))


def edit(lock: Path, claims: dict[str, Any]) -> None:
    """Change fields of a lock; None removes a field."""
    content = json.loads(lock.read_text())
    content["lakewright"] = {key: value for key, value in (content["lakewright"] | claims).items() if value is not None}
    lock.write_text(json.dumps(content))


def is_free(backend: StateBackend) -> bool:
    try:
        with backend.lock("conf", "dev"):
            return True
    except StackLockedError:
        return False


def needs_containers() -> None:
    if shutil.which("unshare") is None or subprocess.run([*CONTAINER, "true"], check=False).returncode:
        pytest.skip("needs the right to make PID namespaces")


def test_lock_of_dead_holder_in_other_container_is_removed(backend: StateBackend) -> None:
    needs_containers()
    file = die_in_lock(backend, *CONTAINER)
    assert is_free(backend)
    assert not file.exists()


def test_living_holder_in_another_container_keeps_its_lock(backend: StateBackend) -> None:
    """Its heartbeat has stopped, as in a frozen container, but the kernel still reports it as alive."""
    needs_containers()
    with holder(backend, *CONTAINER):
        (file,) = lock_files(backend)
        os.utime(file, (0, 0))
        assert not is_free(backend)


def test_suspended_process_keeps_its_lock(backend: StateBackend) -> None:
    with holder(backend) as process:
        process.send_signal(signal.SIGSTOP)
        (file,) = lock_files(backend)
        os.utime(file, (0, 0))
        assert not is_free(backend)


@pytest.mark.parametrize("claims", [{"boot": "another"}, {"pids": "another", "file": None}])
def test_remote_holder_without_heartbeat_is_dead(backend: StateBackend, claims: dict[str, Any]) -> None:
    file = die_in_lock(backend)
    edit(file, claims)
    with pytest.raises(
        StackLockedError, match=r"last heartbeat was \d+ s ago; it is considered dead 300 s after a heartbeat"
    ):
        backend.lock("conf", "dev").__enter__()

    silent = time.time() - lock_holder.DEAD_AFTER_SECONDS - 5
    os.utime(file, (silent, silent))
    assert is_free(backend)
    assert lock_files(backend) == []


def test_lock_of_earlier_release_names_the_check(backend: StateBackend) -> None:
    file = die_in_lock(backend)
    edit(file, {"boot": "another", "heartbeat_seconds": None, "file": None})
    os.utime(file, (0, 0))
    with pytest.raises(StackLockedError, match=r"run `ps -p \d+` on .* to find out .*"):
        backend.lock("conf", "dev").__enter__()


def test_empty_lock_without_heartbeat_is_removed(backend: StateBackend) -> None:
    """The file exists and is empty. A living holder would touch it."""
    file = die_in_lock(backend)
    file.write_text("")
    assert not is_free(backend)

    silent = time.time() - lock_holder.DEAD_AFTER_SECONDS - 5
    os.utime(file, (silent, silent))
    assert is_free(backend)


def test_empty_lock_of_the_cli_is_kept(backend: StateBackend) -> None:
    file = die_in_lock(backend)
    theirs = file.with_name("5e7a0a8e-3a0f-4c9e-8a35-2d4a0f3c8f11.json")
    file.unlink()
    theirs.touch()
    os.utime(theirs, (0, 0))
    assert not is_free(backend)


def test_lock_is_on_the_disk_before_it_is_held(backend: StateBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    sync = os.fsync

    def look(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").resolve()
        synced.append(path.read_bytes() if path.is_file() else b"folder of " + path.name.encode())
        sync(descriptor)

    with backend.lock("conf", "dev"):
        pass  # creates the folders
    monkeypatch.setattr("os.fsync", look)
    with backend.lock("conf", "dev"):
        (file,) = lock_files(backend)
        assert synced == [file.read_bytes(), b"folder of dev"]


def test_lock_in_shared_folder_is_group_readable(backend: StateBackend, tmp_path: Path) -> None:
    with backend.lock("conf", "dev"):
        assert [file.stat().st_mode & 0o777 for file in lock_files(backend)] == [0o600]
    shared = open_backend(f"file://{tmp_path / 'shared'}")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o2770)
    with shared.lock("conf", "dev"):
        assert [file.stat().st_mode & 0o777 for file in lock_files(shared)] == [0o660]


@pytest.mark.parametrize("cancels", [True, False])
def test_partial_lock_files_are_removed(backend: StateBackend, *, cancels: bool) -> None:
    """The Pulumi CLI counts every file in the folder as a lock."""
    folder = die_in_lock(backend).parent
    names = ["1.partial", ".now-x", "../.dev.lakewright-1.partial", "../.now-x"]
    for partial_file in (folder / name for name in names):
        partial_file.touch()
        if not cancels:
            os.utime(partial_file, (0, 0))
    file_of_another_stack = folder / "../.other.lakewright-1.partial"
    file_of_another_stack.touch()

    if cancels:
        backend.cancel("conf", "dev")
    assert is_free(backend)

    assert list(folder.iterdir()) == []
    assert sorted(file.name for file in folder.parent.iterdir()) == [file_of_another_stack.name, "dev"]


def test_lock_folder_holds_only_locks(backend: StateBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    file = die_in_lock(backend)
    edit(file, {"boot": "another", "file": None})
    created_paths: list[Path] = []
    create = os.open

    def look(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            created_paths.append(Path(path))
        return create(path, flags, *more, **options)

    monkeypatch.setattr("os.open", look)
    assert not is_free(backend)
    file.unlink()
    assert is_free(backend)
    assert len(created_paths) > 1
    assert file.parent not in {path.parent for path in created_paths}


def test_holder_writes_heartbeats(backend: StateBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_holder, "HEARTBEAT_SECONDS", 0.01)
    with backend.lock("conf", "dev"):
        (file,) = lock_files(backend)
        os.utime(file, (0, 0))
        while file.stat().st_mtime == 0:
            os.sched_yield()


def test_run_without_its_lock_stops_before_it_saves(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        """
from pathlib import Path
from filestore import File
a = File("a", "a.json", "one")
def lose(_):
    for lock in Path(LOCKS).rglob("*.json"):
        lock.unlink()
    return "two"
File("b", "b.json", a.etag.apply(lose))
""".replace("LOCKS", repr(str(tmp_path / "state" / ".pulumi" / "locks"))),
    )
    outcome = stack.run("up")
    assert outcome.exit == 1
    assert any("the lock on stack 'dev' was removed during this run" in message for message in outcome.messages)
    assert list(stack.files()) == ["a.json"], "no provider is called for a step that could not be saved"


def test_process_without_a_reader_of_its_exit_code_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_running(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert not is_running(process.pid)
    process.communicate()
