"""One command in a child of the warm process, with everything of its caller: files, environment, signals, folder."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from lakewright_engine.processes.forkserver import Preloaded, preloaded

from lakewright.warm.messages import receive, send

_FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_operation(
    connection: socket.socket, variables: Mapping[str, str | None], entry: str, path: list[str]
) -> NoReturn:
    """Receive a command, run it, and end this process.

    Args:
        connection: To the caller.
        variables: Environment variables that were read while modules were imported. Only a caller with equal values
            is served.
        entry: The function to call, `module:name`.
        path: `sys.path` of an interpreter that runs no script.
    """
    send(connection, {"pid": os.getpid()})
    request, files = receive(connection, descriptors=3)
    if request is None:
        os._exit(0)
    environment: dict[str, str] = request["environment"]
    different = [name for name, value in variables.items() if environment.get(name) != value]
    if different:
        print(f"declined a command: {', '.join(different)} differ", flush=True)
        send(connection, {"declined": True})
        os._exit(0)
    _take_over(request, files)
    send(connection, {"started": True})
    preloaded.set(Preloaded(path, (connection.fileno(),)))
    module, _, name = entry.partition(":")
    status = _call(getattr(importlib.import_module(module), name))
    with contextlib.suppress(OSError):
        send(connection, status)
    os._exit(0)


def _take_over(request: Mapping[str, Any], files: list[int]) -> None:
    for target, descriptor in enumerate(files):
        os.dup2(descriptor, target)
        os.close(descriptor)
    is_unbuffered: bool = request["unbuffered"]
    sys.stdin = sys.__stdin__ = _reopen(sys.__stdin__, 0)
    sys.stdout = sys.__stdout__ = _reopen(sys.__stdout__, 1, is_unbuffered=is_unbuffered)
    sys.stderr = sys.__stderr__ = _reopen(sys.__stderr__, 2, is_unbuffered=is_unbuffered)
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    tempfile.tempdir = None
    importlib.invalidate_caches()
    sys.path[:] = request["path"]
    sys.argv[:] = [request["name"], *request["arguments"]]
    for number in _FORWARDED_SIGNALS:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    for number in request["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED_SIGNALS)


def _reopen(like: io.TextIOWrapper | None, descriptor: int, *, is_unbuffered: bool = False) -> io.TextIOWrapper:
    """Return a standard stream as the interpreter opens it when it starts."""
    assert like is not None
    is_input = descriptor == 0
    raw = io.FileIO(descriptor, "r" if is_input else "w", closefd=False)
    buffer: Any = raw if is_unbuffered else io.BufferedReader(raw) if is_input else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer,
        encoding=like.encoding,
        errors=like.errors,
        newline=None if is_input else "\n",
        line_buffering=descriptor == 2 or raw.isatty(),
        write_through=is_unbuffered,
    )


def _call(function: Callable[[], object]) -> dict[str, int]:
    """Call a function as the main program of an interpreter. Return how it ended."""
    status: dict[str, int] = {"exit": 0}
    try:
        function()
    except SystemExit as exit_:
        if isinstance(exit_.code, str):
            print(exit_.code, file=sys.stderr)
        status = {"exit": exit_.code & 0xFF if isinstance(exit_.code, int) else int(exit_.code is not None)}
    except KeyboardInterrupt:
        traceback.print_exc()
        status = {"signal": signal.SIGINT}
    except BaseException:  # noqa: BLE001 - the end of a process: the error is printed
        traceback.print_exc()
        status = {"exit": 1}
    cast("Any", threading)._shutdown()  # waits for threads, as an interpreter does
    cast("Any", atexit)._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = {"exit": 120}
    return status
