"""Run the Python processes of the Pulumi CLI as forks of one process, so that hundreds of its runs are fast.

The CLI starts an interpreter for the program, another for the dynamic providers, and four that list packages: two
seconds of processor time per run. Here `bin/python` of a project's virtual environment is a small client. It passes its
arguments, folder, environment and open files to the server, which forks. Program and providers still get a process of
their own in each run.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

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
code = server.recv(8)
os._exit(int(code) if code else 137)
"""


def write_environment(folder: Path, address: str) -> None:
    """Write a virtual environment whose interpreter is a client of the server."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text((Path(sys.prefix) / "pyvenv.cfg").read_text())
    for name in ("python", "python3"):
        client = folder / "bin" / name
        client.write_text(CLIENT.format(python=sys.executable, address=address))
        client.chmod(0o755)


def serve_python(listener: socket.socket, parent: int, path: list[str]) -> NoReturn:
    """Serve clients until the parent process has ended.

    Args:
        listener: The socket that clients connect to.
        parent: The process that forked this process.
        path: `sys.path` of an interpreter without a script.
    """
    responses: dict[tuple[str, ...], tuple[int, bytes]] = {}
    listener.settimeout(2)
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            if os.getppid() != parent:
                os._exit(0)
            continue
        connection.settimeout(None)
        while _has_ended_child():
            pass
        request, descriptors = _receive(connection)
        run = _find_run(request["arguments"])
        if run is None:
            _respond(connection, tuple(request["arguments"]), descriptors, responses)
        elif os.fork() == 0:
            listener.close()
            _become(run, request, connection, descriptors, path)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.close()


def _has_ended_child() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    size = array.array("i").itemsize
    header, descriptors, _, _ = socket.recv_fds(connection, 4, 3 * size)
    with connection.makefile("rb", buffering=0) as stream:
        message, length = b"", int.from_bytes(header, "big")
        while len(message) < length:
            message += stream.read(length - len(message)) or b""
    return json.loads(message), list(descriptors)


def _find_run(arguments: list[str]) -> Callable[[], object] | None:
    """Return a function that runs the program or the providers; None for questions about packages."""
    import runpy

    script_arguments = [word for word in arguments if word != "-u"]
    if script_arguments[:2] == ["-m", "pulumi.dynamic"]:
        sys.argv = script_arguments[1:]
        return lambda: runpy.run_module("pulumi.dynamic", run_name="__main__", alter_sys=True)
    if script_arguments[0].endswith("pulumi-language-python-exec"):
        return lambda: _run_script(script_arguments)
    return None


def _run_script(script_arguments: list[str]) -> None:
    import runpy

    sys.argv = script_arguments
    runpy.run_path(script_arguments[0], run_name="__main__")


def _respond(
    connection: socket.socket,
    arguments: tuple[str, ...],
    descriptors: list[int],
    responses: dict[tuple[str, ...], tuple[int, bytes]],
) -> None:
    """Respond to a question about installed packages, which do not change during a test."""
    if arguments not in responses:
        completed = subprocess.run([sys.executable, *arguments], check=False, stdout=subprocess.PIPE)
        responses[arguments] = (completed.returncode, completed.stdout)
    code, output = responses[arguments]
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
    os.chdir(request["folder"])
    sys.path[:] = [request["folder"], *path]
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
