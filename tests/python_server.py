"""Run the Python processes of the Pulumi CLI as forks of one process per worker, so that hundreds of its runs are fast.

The CLI starts an interpreter for the program, another for the dynamic providers, and four that list packages: two
seconds of processor time per run. Here `bin/python` of a virtual environment is a small client. It passes its
arguments, folder, environment and open files to the server, `python -m tests.python_server ADDRESS`, which forks.
Program and providers still get a process of their own in each run. With TEST_OWN_PROCESSES=1, and in the long form, the
CLI starts interpreters.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from tests.command_server import MODULES

PYTHON = "PULUMI_PYTHON_CMD"
"""Variable with the interpreter of the Pulumi CLI for projects without a virtual environment."""
KILL_AFTER = "TEST_KILL_AFTER"
"""Variable of a run: the number of changing provider calls after which the CLI and its processes are killed."""
CHANGING = ("Create", "Update", "Delete")
CLIENT = """#!{python} -ISE
import _signal, json, os, socket, sys
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
request = dict(arguments=sys.argv[1:], folder=os.getcwd(), environment=dict(os.environ), session=os.getsid(0))
message = json.dumps(request).encode() + b"\\n"
socket.send_fds(server, [len(message).to_bytes(4, "big")], [0, 1, 2])
server.sendall(message)
response = server.recv(8)
if response == {declined!r}:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
os._exit(int(response) if response else 137)
"""
DECLINED = b"declined"
"""Response to a client that becomes an interpreter itself."""
SEPARATE = ("pulumi.dynamic", "pulumi.run.plugin")
"""Modules that the CLI runs as processes that last."""


def find_environment() -> Path:
    """Return the virtual environment for a project: that of the clients in a test of the Pulumi CLI."""
    return Path(os.environ[PYTHON]).parents[1] if PYTHON in os.environ else Path(sys.prefix)


@functools.cache
def start_python_server() -> Path:
    """Return an interpreter that is a client of this worker's server, which ends with the worker."""
    folder = Path(tempfile.mkdtemp(prefix="python", dir="/tmp"))  # the path of a socket must be short
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = str(folder / "server.socket")
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, address],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    atexit.register(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return write_environment(folder / "environment", address)


def write_environment(folder: Path, address: str) -> Path:
    """Write a virtual environment whose interpreter is a client of the server; return the interpreter."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").symlink_to(Path(sys.prefix) / "lib")
    (folder / "pyvenv.cfg").write_text((Path(sys.prefix) / "pyvenv.cfg").read_text())
    for name in ("python", "python3"):
        client = folder / "bin" / name
        client.write_text(CLIENT.format(python=sys.executable, address=address, declined=DECLINED))
        client.chmod(0o755)
    return folder / "bin" / "python"


def serve(address: str) -> NoReturn:
    """Import what programs and providers of tenants import, and serve clients until the starting process has ended."""
    from lakewright.warm.preload import FIRST, Preloader

    preloader = Preloader()
    for name in (*FIRST, *MODULES):
        preloader.load(name)
    path = sys.path[1:]  # without the folder in which this process was started
    responses: dict[tuple[str, ...], tuple[int, bytes]] = {}
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        listener.settimeout(2)
        print("ready", flush=True)
        while os.getppid() == parent:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(None)
            while _has_ended_child():
                pass
            _serve_client(connection, path, responses, listener)
            connection.close()
    os._exit(0)


def _serve_client(
    connection: socket.socket,
    path: list[str],
    responses: dict[tuple[str, ...], tuple[int, bytes]],
    listener: socket.socket,
) -> None:
    request, descriptors = _receive(connection)
    arguments: list[str] = request["arguments"] if request else []
    if request is None:
        pass
    elif run := _find_run(arguments):
        if os.fork() == 0:
            try:
                listener.close()
                _become(run, request, connection, descriptors, path)
            finally:
                os._exit(1)
    elif arguments[:3] == ["-m", "pip", "list"] or arguments[:1] in (["-c"], ["--version"]):
        with contextlib.suppress(BrokenPipeError):  # a client that was killed
            _respond(connection, request, descriptors, responses)
    else:
        connection.sendall(DECLINED)
    for descriptor in descriptors:
        os.close(descriptor)


def _has_ended_child() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _receive(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the request of a client and its open files; None for a client that was killed."""
    size = array.array("i").itemsize
    header, descriptors, _, _ = socket.recv_fds(connection, 4, 3 * size)
    with connection.makefile("rb") as stream:
        message = stream.read(int.from_bytes(header, "big"))
    try:
        return json.loads(message), list(descriptors)
    except json.JSONDecodeError:
        return None, list(descriptors)


def _find_run(arguments: list[str]) -> Callable[[], object] | None:
    """Return a function that runs the program or the providers; None for other arguments."""
    import runpy

    program, *program_arguments = [argument for argument in arguments if argument != "-u"] or [""]
    if program == "-m" and program_arguments[0] in SEPARATE:
        sys.argv = program_arguments
        return lambda: runpy.run_module(program_arguments[0], run_name="__main__", alter_sys=True)
    if program.endswith("pulumi-language-python-exec"):
        sys.argv = [program, *program_arguments]
        return lambda: runpy.run_path(program, run_name="__main__")
    return None


def _respond(
    connection: socket.socket,
    request: dict[str, Any],
    descriptors: list[int],
    responses: dict[tuple[str, ...], tuple[int, bytes]],
) -> None:
    """Respond to a question about the interpreter or its packages, which do not change during a test."""
    arguments, environment = request["arguments"], request["environment"]
    question = (*arguments, environment.get("PYTHONPATH", ""))
    if question not in responses:
        command = [sys.executable, *arguments]
        completed = subprocess.run(command, check=False, stdout=subprocess.PIPE, cwd=request["folder"], env=environment)
        responses[question] = (completed.returncode, completed.stdout)
    code, output = responses[question]
    with os.fdopen(os.dup(descriptors[1]), "wb") as stream:
        stream.write(output)
    connection.sendall(str(code).encode())


def _become(
    run: Callable[[], object],
    request: dict[str, Any],
    connection: socket.socket,
    descriptors: list[int],
    path: list[str],
) -> NoReturn:
    """Run a program or the providers in this process, which is a fork, and end it."""
    from lakewright_engine.processes.forkserver_host import reopen_output

    os.setsid()
    for target, source in enumerate(descriptors):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    user_path = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:] = [request["folder"], *user_path, *path]
    reopen_output()
    threading.Thread(target=_end_with_client, args=(connection,), daemon=True).start()
    if number := int(os.environ.get(KILL_AFTER, "0")):
        _kill_at_call(number, request["session"])
    code = 0
    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:  # noqa: BLE001 - the process ends: any error is printed and sets the exit code
        import traceback

        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    connection.sendall(str(code).encode())
    os._exit(code)


def _end_with_client(connection: socket.socket) -> None:
    """End this process when the client has ended: the CLI ends providers by a signal to the client."""
    connection.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_at_call(number: int, session: int) -> None:
    """Have the CLI and its processes killed right after a changing call of a provider took effect."""
    from pulumi.runtime.proto import provider_pb2_grpc

    register, lock, calls = provider_pb2_grpc.add_ResourceProviderServicer_to_server, threading.Lock(), 0

    def watch(call: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_call(request: Any, context: Any) -> Any:
            nonlocal calls
            response = call(request, context)
            if not getattr(request, "preview", False):
                with lock:
                    calls += 1
                    if calls == number:
                        _kill_session(session)
            return response

        return count_and_call

    def register_counting(servicer: Any, server: Any) -> None:
        for name in CHANGING:
            setattr(servicer, name, watch(getattr(servicer, name)))
        register(servicer, server)

    provider_pb2_grpc.add_ResourceProviderServicer_to_server = register_counting


def _kill_session(session: int) -> None:
    """Kill the CLI, whose session it is, the command that started it, and its other processes."""
    stats = {int(stat.parent.name): stat.read_text() for stat in Path("/proc").glob("[0-9]*/stat")}
    fields = {pid: stat.rpartition(")")[2].split() for pid, stat in stats.items()}
    os.kill(int(fields[session][1]), signal.SIGKILL)
    for pid in sorted((pid for pid in fields if int(fields[pid][3]) == session), key=session.__ne__):
        os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1])
