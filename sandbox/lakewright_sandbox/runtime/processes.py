"""Start, recognize, await and stop the sandbox's own processes, and no other processes."""

import contextlib
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from lakewright_sandbox.errors import ProcessFailedError

_PORTS = range(20000, 32768)
_POLL_SECONDS = 0.05
_STOP_SECONDS = 10
_TAIL_LINES = 15


def free_port(preferred: int | None = None) -> int:
    """Return the preferred loopback port if it is free, else a random free port.

    Ports are taken below the ephemeral range, from which the system could assign one to an outgoing connection.
    """
    candidates = [preferred] if preferred else []
    candidates += [_PORTS.start + secrets.randbelow(len(_PORTS)) for _ in range(50)]
    for port in candidates:
        with contextlib.suppress(OSError), socket.socket() as probe:
            # Without this, lingering connections of the last run would keep the port taken for a minute.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise ProcessFailedError(f"No free port found on 127.0.0.1 between {_PORTS.start} and {_PORTS.stop - 1}.")


def command_line(pid: int) -> list[str]:
    """Return the arguments that a process was started with, empty if it does not run."""
    proc = Path(f"/proc/{pid}")
    if proc.parent.joinpath("self").exists():
        try:
            if proc.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return []
            return proc.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
        except (OSError, IndexError):
            return []
    result = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False)
    return result.stdout.split()


def is_ours(pid: int, module: str, credentials_file: Path) -> bool:
    """Return whether a process belongs to this sandbox: by now, another process may have the pid."""
    arguments = command_line(pid)
    return module in arguments and str(credentials_file) in arguments


def start(module: str, arguments: list[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start `python -m module` in its own session, so that it outlives its terminal. Write its output to the log."""
    return start_program([sys.executable, "-m", module, *arguments], log, environment)


def start_program(command: list[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a program in its own session. Write its output to the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".previous.log"))
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(environment),
        )


def healthy(url: str, accept: Callable[[httpx.Response], bool], trusted: Path | None = None) -> bool:
    """Return whether a URL returns an accepted response; `trusted` has certificate authorities in PEM."""
    verify = ssl.create_default_context(cafile=str(trusted)) if trusted else choose_trust(url)
    try:
        return accept(httpx.get(url, timeout=2, trust_env=False, verify=verify))
    except httpx.HTTPError:
        return False


def choose_trust(url: str) -> ssl.SSLContext | bool:
    """Return the `verify` argument of httpx for a URL.

    Loading the certificate authorities takes 25 ms, and without TLS they are not used.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if url.startswith("http:") else True


def wait_until_healthy(
    process: subprocess.Popen[bytes],
    name: str,
    *,
    url: str,
    accept: Callable[[httpx.Response], bool],
    log: Path,
    seconds: float,
    trusted: Path | None = None,
) -> None:
    """Wait until a process responds at its URL.

    Raises:
        ProcessFailedError: It ended or took too long; the message has the end of its log.
    """
    deadline = time.monotonic() + seconds
    while not healthy(url, accept, trusted):
        code = process.poll()
        if code is not None:
            raise ProcessFailedError(
                f"The sandbox's {name} ended with exit code {code} before it was ready.{tail(log)}"
            )
        if time.monotonic() > deadline:
            raise ProcessFailedError(
                f"The sandbox's {name} did not respond at {url} within {seconds:.0f} s.{tail(log)}"
            )
        time.sleep(_POLL_SECONDS)


def tail(log: Path) -> str:
    """Return the end of a log for an error message."""
    lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:] if log.exists() else []
    return f" The end of {log}:\n" + "\n".join(f"  {line}" for line in lines) if lines else f" {log} is empty."


def stop(pid: int, module: str, credentials_file: Path) -> bool:
    """Stop a process of this sandbox, by SIGTERM and then by SIGKILL. Return whether it ran."""
    if not is_ours(pid, module, credentials_file):
        return False
    for ask, patience in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, _STOP_SECONDS)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, ask)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # reaps it where the caller is its parent
            if not is_ours(pid, module, credentials_file):
                return True
            time.sleep(_POLL_SECONDS)
    raise ProcessFailedError(f"Process {pid} ({module}) did not end after SIGKILL. Inspect it with `ps -p {pid}`.")
