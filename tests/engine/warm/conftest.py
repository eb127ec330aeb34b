"""Commands of one project with a warm process of their own."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lakewright.warm.address import Address
from stackrunner import Stack

LAKEWRIGHT = str(Path(sys.executable).parent / "lakewright")
WITHIN = 60
"""Seconds after which a condition that does not come true fails a test."""


class Commands:
    """Runs `lakewright` in its own project. Its warm process ends with the test."""

    def __init__(self, folder: Path, runtime: Path) -> None:
        self.stack = Stack(folder, "")
        self.environment = {
            **os.environ,
            **self.stack.environment,
            "XDG_RUNTIME_DIR": str(runtime),
            "LAKEWRIGHT_WARM": "1",
            "PYTHONDONTWRITEBYTECODE": "1",  # a new __pycache__ would be a change of the folder
        }
        self.runtime = runtime

    def words(self, *command: str) -> list[str]:
        engine = ["--engine", "embedded"] if command[0] in {"preview", "up", "refresh", "destroy"} else []
        return [LAKEWRIGHT, *command, "--stack", "dev", *engine]

    def start(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*command),
            cwd=self.stack.program_dir,
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, code: int = 0, **variables: str) -> tuple[str, str]:
        """Return standard output, without its times, and standard error."""
        with self.start(*command, **variables) as process:
            output, errors = process.communicate()
        assert process.returncode == code, output + errors
        return re.sub(r"Duration: \d+s", "", output), errors

    def warm_up(self) -> int:
        """Start the warm process as a first command does; return its process id once it listens."""
        self.run("preview")
        return self.wait_until_ready()

    def wait_until_ready(self) -> int:
        """Return the process id of a warm process that listens. A process that ends may listen for a moment."""
        listening: list[int] = []

        def find_process() -> bool:
            process = self.process()
            listening.extend([] if process is None else [process])
            return process is not None

        self.wait_until(find_process)
        return listening[0]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that no event announces."""
        until = time.monotonic() + WITHIN
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.05)

    @property
    def address(self) -> Address:
        """The files of the only warm process in the folder."""
        (lock,) = self.runtime.glob("lakewright/*.lock")
        return Address(str(lock.parent), lock.stem, str(self.stack.program_dir))

    def process(self) -> int | None:
        """Return the process that listens."""
        for file in self.runtime.glob("lakewright/*.socket"):
            with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
                connection.connect(str(file))
                raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                return struct.unpack("3i", raw)[0]
        return None

    def log(self) -> str:
        return Path(self.address.log).read_text()


def has_ended(process: int) -> bool:
    """Wait for the end of a process that is no child."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], WITHIN)[0])
    finally:
        os.close(descriptor)


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """Commands of a project whose warm process was not started yet."""
    runtime = Path(tempfile.mkdtemp(prefix="warm", dir="/tmp"))  # the path of a socket must be short
    commands = Commands(tmp_path, runtime)
    yield commands
    process = commands.process()
    shutil.rmtree(runtime)
    assert process is None or has_ended(process)


@pytest.fixture
def ended() -> Callable[[int], bool]:
    """A function that waits for the end of a process."""
    return has_ended
