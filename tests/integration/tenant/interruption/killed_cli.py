"""Run `lakewright` and kill it at a provider call: before the call is sent, or after it took effect.

`python killed_cli.py before|after LOG WORD...` writes the first changing call that is not yet in LOG to LOG, and
kills the process there. Repeated runs with one LOG reach all calls. No part of the product is replaced:
the calls have their usual targets.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakewright.cli import main
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.providers.provider import Provider

CHANGING = ("create", "update", "delete")


class Killer:
    def __init__(self, moment: str, log: Path) -> None:
        self._moment = moment
        self._log = log
        self._lock = threading.Lock()

    def watch(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_and_kill(provider: Provider, state: ResourceState, *more: Any, **options: Any) -> Any:
            if options.get("preview"):  # A preview changes nothing.
                return call(provider, state, *more, **options)
            new = self._is_new(f"{name} {state.urn}")
            if new and self._moment == "before":
                self._die()
            response = call(provider, state, *more, **options)
            if new:
                self._die()
            return response

        return call_and_kill

    def _is_new(self, call: str) -> bool:
        with self._lock, self._log.open("a+") as log:
            log.seek(0)
            if call in log.read().splitlines():
                return False
            log.write(call + "\n")
            return True

    @staticmethod
    def _die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def run() -> None:
    """Run the command of `sys.argv`."""
    moment, log, *arguments = sys.argv[1:]
    killer = Killer(moment, Path(log))
    for name in CHANGING:
        setattr(Provider, name, killer.watch(name, getattr(Provider, name)))
    sys.argv = ["lakewright", *arguments]
    main()


if __name__ == "__main__":
    run()
