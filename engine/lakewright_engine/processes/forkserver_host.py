"""Script of the fork server: import the SDK once, then fork the program and the dynamic providers.

The protocol is JSON lines over the socket whose descriptor is the first argument. A request has `module` or `script`,
`arguments`, `cwd` and `env`, and for a module the `address` to serve. It comes with two descriptors, for standard
output and error. The response is `{"pid": N}`. The end of a child is reported as `{"exited": N, "code": C}`. The system
kills the fork server and its children when the engine ends.
"""

import array
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn


def main(descriptor: int, parent: int) -> None:
    """Serve requests on a socket until the process `parent` closes it."""
    _end_after(parent)
    requests = socket.socket(fileno=descriptor)
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    sys.path[:] = [entry for entry in sys.path if entry]
    # The processes are short-lived and mostly import: they create hardly any garbage.
    gc.set_threshold(50_000, 20, 20)
    _import_sdk()
    requests.sendall(b'{"ready": true}\n')
    while True:
        readable, _, _ = select.select([requests, ended], [], [])
        if ended in readable:
            os.read(ended, 4096)
            _report(requests)
        if requests in readable:
            request, descriptors = _receive(requests)
            if request is None:
                return
            pid = os.fork()
            if pid == 0:
                for unused in (descriptor, ended, wake):
                    os.close(unused)
                _run(request, descriptors)
            for passed in descriptors:
                os.close(passed)
            requests.sendall(json.dumps({"pid": pid}).encode() + b"\n")


def reopen_output() -> None:
    """Make standard output and error unbuffered, as in an interpreter that was started with `-u`."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        raw = io.FileIO(descriptor, "w", closefd=False)
        like = getattr(sys, name)
        stream = io.TextIOWrapper(raw, like.encoding, like.errors, newline="\n", write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _wake(_number: int, _frame: object) -> None:
    """Do nothing: the wake-up descriptor is written by the signal."""


def _end_after(parent: int) -> None:
    # Not available on every system. An engine that ends in an orderly way still ends its children.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _import_sdk() -> None:
    for module in ("pulumi", "pulumi.runtime", "pulumi.dynamic"):
        importlib.import_module(module)
    # Children share these objects until they write to them; collecting them again frees nothing.
    gc.freeze()


def _receive(requests: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    size = array.array("i")
    text, ancillary, _, _ = requests.recvmsg(65536, socket.CMSG_LEN(2 * size.itemsize))
    for _, _, data in ancillary:
        size.frombytes(data[: len(data) - len(data) % size.itemsize])
    while text and not text.endswith(b"\n"):
        more = requests.recv(65536)
        if not more:
            return None, []
        text += more
    return (json.loads(text) if text else None), list(size)


def _report(requests: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        message = {"exited": pid, "code": os.waitstatus_to_exitcode(status)}
        requests.sendall(json.dumps(message).encode() + b"\n")


def _run(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        parent = os.getppid()
        os.setsid()
        _end_after(parent)
        for target, source in zip((1, 2), descriptors, strict=True):
            os.dup2(source, target)
            os.close(source)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        code = _execute(request)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve_privately(private: str) -> None:
    """Make the first server listen at the address `private` instead of a port that any user of the machine can call.

    The SDK's provider has no option for it. It still prints a port, which the engine does not need.
    """
    import grpc  # noqa: PLC0415 - the SDK loads it while the first request is awaited

    make_server = grpc.server

    def private_server(*arguments: Any, **options: Any) -> Any:
        grpc.server = make_server
        server = make_server(*arguments, **options)
        listen = server.add_insecure_port

        def use_socket(address: str) -> int:  # noqa: ARG001 - the port that the SDK requests
            return listen(private)

        server.add_insecure_port = use_socket
        return server

    grpc.server = private_server


def _execute(request: dict[str, Any]) -> int:
    sys.path.insert(0, request["cwd"])
    try:
        if "module" in request:
            sys.argv = [request["module"], *request["arguments"]]
            if "address" in request:
                # Expected errors of a provider are one line.
                if request["env"].get("LAKEWRIGHT_DEBUG", "") in ("", "0"):
                    sys.tracebacklimit = 0
                _serve_privately(request["address"])
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        else:
            sys.argv = [request["script"], *request["arguments"]]
            runpy.run_path(request["script"], run_name="__main__")
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - the process ends: any error is printed and sets the exit code
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
