"""Run `lakewright` commands as forks of one process that has imported it, so that hundreds of runs are fast.

`python -m tests.integration.ownership.command_server FOLDER` reads a JSON object per line: `words`, `folder`,
`environment`, `output` (a file), and `kill_after`: the number of changing provider calls after which the command is
killed, or null. It responds to each with the exit code; a negative code is a signal.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from tests.command_server import MODULES, OWN_PROCESSES
from tests.shared_keys import share_keys

CHANGING = ("create", "update", "delete")


def kill_at_call(number: int) -> None:
    """Have this process killed right after a changing call of a provider took effect."""
    from lakewright_engine.providers.provider import Provider

    lock, calls = threading.Lock(), 0

    def watch(call: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_call(*values: Any, **options: Any) -> Any:
            nonlocal calls
            response = call(*values, **options)
            if not options.get("preview"):
                with lock:
                    calls += 1
                    if calls == number:
                        os.kill(os.getpid(), signal.SIGKILL)
            return response

        return count_and_call

    for name in CHANGING:
        setattr(Provider, name, watch(getattr(Provider, name)))


def become_command(request: dict[str, Any], path: list[str]) -> NoReturn:
    """Run a command in this process, which is a fork, and end it."""
    from lakewright.cli.app import run
    from lakewright_engine.processes.forkserver import Preloaded, preloaded

    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    preloaded.set(Preloaded(path, ()))
    if request["kill_after"]:
        kill_at_call(request["kill_after"])
    code = 1
    try:
        run(request["words"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def serve() -> None:
    """Import the command line, and run a command for each line of standard input."""
    from lakewright.warm.preload import FIRST, Preloader

    preloader = Preloader()
    for name in (*FIRST, *MODULES):
        preloader.load(name)
    path = sys.path[1:]  # without the folder in which this process was started
    if not os.environ.get(OWN_PROCESSES):
        share_keys(Path(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become_command(json.loads(line), path)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
