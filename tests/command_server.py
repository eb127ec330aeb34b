"""Run `lakewright` in tests as forks of one process per worker that has imported it.

A command of its own process imports for more than a second, and most tests of tenants run several. The process is the
warm process of the product, without a project. With TEST_OWN_PROCESSES=1, as in a part of `make test-all`, each command
is a process of its own.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lakewright.warm.client import ENTRY
from lakewright.warm.messages import receive, receive_all, send

LAKEWRIGHT = Path(sys.executable).with_name("lakewright")
START_SECONDS = 60
_PATH = "PYTHONPATH"
MODULES = (
    "boto3.s3.inject",
    "cryptography.hazmat.primitives.ciphers.aead",
    "cryptography.hazmat.primitives.kdf.pbkdf2",
    "encodings.idna",
    "grpc._channel",
    "grpc._server",
    "lakewright.cli.adoption_display",
    "lakewright.cli.commands.stack",
    "lakewright.cli.ownership.server_marks",
    "lakewright.deletions.retention_report",
    "lakewright.environment.loading",
    "lakewright.project_files.servers",
    "lakewright.terminal.console",
    "lakewright_sandbox.providers.aws.service_models",
    "pulumi_aws.iam.access_key",
    "pulumi_aws.iam.get_access_keys",
    "pulumi_aws.s3.access_point",
)
"""Modules that the process learns from the first commands of tenants; tests leave it no pause to import them."""
_PROCESS = Path(__file__).with_name("command_process.py")


OWN_PROCESSES = "TEST_OWN_PROCESSES"
"""Variable of a run in which every command is a process of its own."""


def run_command(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    script: Path | None = None,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `lakewright` and return what `subprocess.run` returns for it.

    Args:
        arguments: The arguments after `lakewright`.
        folder: The working directory.
        environment: All environment variables of the command.
        script: A script whose function `run` runs instead of `lakewright`.
        stdin: The standard input of the command.
    """
    if not os.environ.get(OWN_PROCESSES):
        done = start_command_server(script, environment.get(_PATH, "")).run(arguments, folder, environment, stdin)
        if done is not None:
            return done
    program = [sys.executable, str(script)] if script else [str(LAKEWRIGHT)]
    return subprocess.run(
        [*program, *arguments],
        cwd=folder,
        env=dict(environment),
        input=stdin,
        check=False,
        capture_output=True,
        text=True,
    )


class CommandServer:
    """A process that has imported `lakewright`, and forks for each command."""

    def __init__(self, script: Path | None, path: str) -> None:
        self._program = script or LAKEWRIGHT
        entry = f"{script.stem}:run" if script else ENTRY
        self._folder = Path(tempfile.mkdtemp(prefix="commands", dir="/tmp"))  # the path of a socket must be short
        base = str(self._folder / "server")
        self._socket = f"{base}.socket"
        Path(f"{base}.modules").write_text("\n".join(MODULES))
        with Path(f"{base}.log").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PROCESS), base, str(self._folder), entry],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | ({_PATH: path} if path else {}),
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while not Path(self._socket).exists():
            assert self._process.poll() is None, Path(f"{base}.log").read_text()
            assert time.monotonic() < until
            time.sleep(0.02)

    def is_running(self) -> bool:
        return self._process.poll() is None and Path(self._socket).exists()

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str
    ) -> subprocess.CompletedProcess[str] | None:
        """Run a command; return None if this process cannot run it, for example with another KUBECONFIG."""
        with (
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
            tempfile.TemporaryFile() as standard_input,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            standard_input.write(stdin.encode())
            standard_input.seek(0)
            connection.connect(self._socket)
            ready, _ = receive(connection)
            if ready is None or "pid" not in ready:
                return None
            request = {
                "arguments": [str(argument) for argument in arguments],
                "name": str(self._program),
                "path": [str(self._program.parent), *sys.path[1:]],
                "folder": str(folder),
                "environment": dict(environment),
                "umask": 0o022,
                "unbuffered": False,
                "ignored": [],
            }
            try:
                send(connection, request, [standard_input.fileno(), output.fileno(), errors.fileno()])
            except BrokenPipeError:
                return None  # it ended before it read the request, so nothing ran
            code = _receive_exit_code(connection)
            if code is None:
                return None
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess(
                [self._program, *arguments], code, output.read().decode(), errors.read().decode()
            )

    def stop(self) -> None:
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        shutil.rmtree(self._folder, ignore_errors=True)


def _receive_exit_code(connection: socket.socket) -> int | None:
    """Return the exit code of a command, negative for a signal; None for a command that the process declined."""
    for message in receive_all(connection):
        if "declined" in message:
            return None
        if "exit" in message:
            return message["exit"]
        if "signal" in message:
            return -message["signal"]
    raise AssertionError("the process of a command ended without its exit code")


def start_command_server(script: Path | None = None, path: str = "") -> CommandServer:
    """Return the server of this worker for `lakewright` or a script; it ends with the worker.

    Args:
        script: A script whose function `run` runs instead of `lakewright`.
        path: The PYTHONPATH of the commands, which an interpreter reads when it starts.
    """
    server = _start_server(script, path)
    if not server.is_running():  # it ends after 15 minutes without a command
        _start_server.cache_clear()
        return _start_server(script, path)
    return server


@functools.cache
def _start_server(script: Path | None, path: str) -> CommandServer:
    server = CommandServer(script, path)
    atexit.register(server.stop)
    return server
