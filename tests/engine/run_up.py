"""Run `up` in a process that tests kill or interrupt: `run_up.py FOLDER [RESOURCE]`.

With a resource, the process kills itself right after the creation of that resource, before the state has it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from lakewright_engine import (
    Operation,
    engine,  # noqa: F401 - imported ahead, in the process that forks
)
from lakewright_engine import run as run_operation
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.providers.provider import Provider


def kill_after_creation(resource: str) -> None:
    create = Provider.create

    def create_and_die(self: Provider, new: Any, *, preview: bool) -> Any:
        response = create(self, new, preview=preview)
        if new.urn.endswith(f"::{resource}"):
            os.kill(os.getpid(), signal.SIGKILL)
        return response

    Provider.create = create_and_die


def run() -> None:
    """Run `up` on the stack `dev` of a project. The program has the process in the environment variable ENGINE."""
    os.environ["ENGINE"] = str(os.getpid())
    folder, *resources = sys.argv[1:]
    for resource in resources:
        kill_after_creation(resource)
    result = run_operation(Operation("up", PulumiProject.load(folder), "dev"), lambda event: None)
    print(*result.messages, sep="\n")
    sys.exit(result.exit)


if __name__ == "__main__":
    # Tests in the background or under nohup ignore these signals, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    run()
