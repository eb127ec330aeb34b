"""Runs `lakewright`, and kills it hard at one of its calls to a provider: before it leaves, or after it took effect.

`python killed_cli.py NUMBER before|after LOG WORD...`: NUMBER counts from 1 the calls that can change something; LOG
gets a line for each, written before it is made. Nothing of the product is replaced: the calls go where they always go.
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
from lakewright_engine.model import ResourceState
from lakewright_engine.providers import Provider

CHANGING = ("create", "update", "delete")


class Killer:
    def __init__(self, number: int, moment: str, log: Path) -> None:
        self._number = number
        self._moment = moment
        self._log = log
        self._count = 0
        self._lock = threading.Lock()

    def watch(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(provider: Provider, state: ResourceState, *more: Any) -> Any:
            if more and more[-1] is True:  # a preview changes nothing
                return call(provider, state, *more)
            with self._lock:
                self._count += 1
                mine = self._count == self._number
                with self._log.open("a") as log:
                    log.write(f"{name} {state.urn}\n")
            if mine and self._moment == "before":
                self._die()
            answer = call(provider, state, *more)
            if mine:
                self._die()
            return answer

        return watched

    @staticmethod
    def _die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    number, moment, log, *words = sys.argv[1:]
    killer = Killer(int(number), moment, Path(log))
    for name in CHANGING:
        setattr(Provider, name, killer.watch(name, getattr(Provider, name)))
    sys.argv = ["lakewright", *words]
    main()
