"""Locks whose holder is dead need no user; those of living holders hold, in other containers and machines too."""

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
from lakewright_engine import lock_holder
from lakewright_engine.errors import StackLocked
from lakewright_engine.state import FileBackend
from stackrunner import Stack

HOLD = """
import os, sys
from lakewright_engine.state import FileBackend
with FileBackend(sys.argv[1]).lock("conf", "dev"):
    print("held", flush=True)
    sys.stdin.read()
    os._exit(9)  # as if killed: nothing is cleaned up
"""
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.fixture
def backend(tmp_path: Path) -> FileBackend:
    return FileBackend(f"file://{tmp_path}")


@contextmanager
def holder(backend: FileBackend, *prefix: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the lock until its standard input ends, and then dies with it."""
    command = [*prefix, sys.executable, "-c", HOLD, backend.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def die_in_lock(backend: FileBackend, *prefix: str) -> Path:
    """Leave the lock of a process that was killed; return its file."""
    with holder(backend, *prefix) as process:
        process.communicate("")
    (file,) = lock_files(backend)
    return file


def lock_files(backend: FileBackend) -> list[Path]:
    return list((backend.root / "locks").rglob("*.json"))


def edit(lock: Path, claims: dict[str, Any]) -> None:
    """Change what a lock says of its holder; None removes a claim."""
    content = json.loads(lock.read_text())
    content["lakewright"] = {key: value for key, value in (content["lakewright"] | claims).items() if value is not None}
    lock.write_text(json.dumps(content))


def is_free(backend: FileBackend) -> bool:
    try:
        with backend.lock("conf", "dev"):
            return True
    except StackLocked:
        return False


def needs_containers() -> None:
    if shutil.which("unshare") is None or subprocess.run([*CONTAINER, "true"], check=False).returncode:
        pytest.skip("needs the right to make PID namespaces")


def test_dead_holder_in_another_container_needs_no_user(backend: FileBackend) -> None:
    needs_containers()
    file = die_in_lock(backend, *CONTAINER)
    assert is_free(backend)
    assert not file.exists()


def test_living_holder_in_another_container_keeps_its_lock(backend: FileBackend) -> None:
    """Its heartbeat has stopped, as that of a frozen container: the kernel still says that it lives."""
    needs_containers()
    with holder(backend, *CONTAINER):
        (file,) = lock_files(backend)
        os.utime(file, (0, 0))
        assert not is_free(backend)


def test_stopped_process_of_this_machine_keeps_its_lock(backend: FileBackend) -> None:
    with holder(backend) as process:
        process.send_signal(signal.SIGSTOP)
        (file,) = lock_files(backend)
        os.utime(file, (0, 0))
        assert not is_free(backend)


@pytest.mark.parametrize("claims", [{"boot": "another"}, {"pids": "another", "file": None}])
def test_holder_elsewhere_is_dead_without_a_heartbeat(backend: FileBackend, claims: dict[str, Any]) -> None:
    file = die_in_lock(backend)
    edit(file, claims)
    with pytest.raises(StackLocked, match=r"last heartbeat was \d+ s ago; 300 s after the last one"):
        backend.lock("conf", "dev").__enter__()

    silent = time.time() - lock_holder.DEAD_AFTER_SECONDS - 5
    os.utime(file, (silent, silent))
    assert is_free(backend)
    assert lock_files(backend) == []


def test_lock_of_an_earlier_release_says_how_to_find_out(backend: FileBackend) -> None:
    file = die_in_lock(backend)
    edit(file, {"boot": "another", "heartbeat_seconds": None, "file": None})
    os.utime(file, (0, 0))
    with pytest.raises(StackLocked, match=r"run `ps -p \d+` on .* to find out .*"):
        backend.lock("conf", "dev").__enter__()


def test_holder_gives_heartbeats(backend: FileBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_holder, "HEARTBEAT_SECONDS", 0.01)
    with backend.lock("conf", "dev"):
        (file,) = lock_files(backend)
        os.utime(file, (0, 0))
        while file.stat().st_mtime == 0:
            os.sched_yield()


def test_run_that_lost_its_lock_stops_before_it_saves(tmp_path: Path) -> None:
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
    assert any("the lock on stack 'dev' was removed while this run held it" in one for one in outcome.messages)
    assert list(stack.files()) == ["a.json"], "no provider is called for what could not be saved"
