"""Run `lakewright` and write the seconds of its work without start-up: `stamped_cli.py FILE WORD...`.

Work is the refresh, from its first call to its last, and what follows: from the program's first registration to the end
of the steps, or for `destroy` all of the steps. Before and between is Python starting, and modules being imported.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from lakewright.cli import main
from lakewright_engine import engine
from lakewright_engine.program.monitor import Monitor

_times: dict[str, float] = {}


def _stamp(name: str) -> None:
    _times.setdefault(name, time.perf_counter())


def _stamp_call(began: str, ended: str, call: Any) -> Any:
    def call_stamped(*arguments: Any) -> Any:
        _stamp(began)
        try:
            return call(*arguments)
        finally:
            _stamp(ended)

    return call_stamped


if __name__ == "__main__":
    file, *command = sys.argv[1:]
    engine.refresh = _stamp_call("refresh", "refreshed", engine.refresh)
    Monitor.RegisterResource = _stamp_call("registered", "answered", Monitor.RegisterResource)
    engine._Run._run_steps = _stamp_call("steps", "done", engine._Run._run_steps)
    sys.argv = ["lakewright", *command]
    try:
        main()
    finally:
        work = _times["done"] - _times.get("registered", _times["steps"])
        if "registered" in _times and "refresh" in _times:
            work += _times["refreshed"] - _times["refresh"]
        Path(file).write_text(str(work))
