"""Start servers of the sandbox in tests as forks of one process per worker that has imported them.

A server that starts as an interpreter of its own imports for two seconds. `make test-all` starts it in this way.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tests.command_server import OWN_PROCESSES

STOP_SECONDS = 15
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["lakewright_sandbox.aws.moto_app", "lakewright_sandbox.lakekeeper.app", "tests.frozen_modules"]
)


class ModuleProcess:
    """A Python module that runs as a process of its own until the block ends."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._module, self._arguments = module, arguments
        self._process: subprocess.Popen[bytes] | multiprocessing.process.BaseProcess | None = None

    def __enter__(self) -> None:
        if os.environ.get(OWN_PROCESSES):
            self._process = subprocess.Popen([sys.executable, "-m", self._module, *self._arguments])
            return
        arguments = (self._module, self._arguments, dict(os.environ))
        self._process = _FORKS.Process(target=run_module, args=arguments, daemon=True)
        self._process.start()

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        if isinstance(self._process, subprocess.Popen):
            self._process.wait(STOP_SECONDS)
            return
        self._process.join(STOP_SECONDS)
        assert self._process.exitcode is not None, f"{self._module} did not end within {STOP_SECONDS} s"


def run_module(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a module as `python -m` does, with an environment."""
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
