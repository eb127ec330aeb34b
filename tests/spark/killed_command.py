"""Program: `lakewright-spark` in a process that kills itself as soon as tables have completed a step of a migration.

Arguments: the step, the number of tables that complete it in this process, and the arguments of `lakewright-spark`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable

from lakewright_spark import cli
from lakewright_spark.migration.ledger import Entry, Ledger, Step

STEPS = [step for step in Step if step is not Step.UNDONE]


def build_killer(step: Step, count: int) -> Callable[[Ledger, Iterable[Entry]], None]:
    """Return a function that writes entries, and ends the process after this number of tables has completed a step.

    No other thread writes between that write and the kill.
    """
    guard, write, completed = threading.Lock(), Ledger._write_entries, STEPS[STEPS.index(step) :]
    counts_at_start: list[int] = []

    def write_entries(ledger: Ledger, entries: Iterable[Entry]) -> None:
        with guard:
            if not counts_at_start:
                counts_at_start.append(count_completed(ledger))
            write(ledger, entries)
            if count_completed(ledger) - counts_at_start[0] >= count:
                os.kill(os.getpid(), signal.SIGKILL)

    def count_completed(ledger: Ledger) -> int:
        return sum(entry.step in completed for entry in ledger.list_entries())

    return write_entries


if __name__ == "__main__":
    Ledger._write_entries = build_killer(Step(sys.argv.pop(1)), int(sys.argv.pop(1)))
    cli.main()
