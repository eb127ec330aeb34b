"""The embedded engine's journal of 10,000 resources, against ten times that of 1,000.

Run it alone with `python -m benchmarks.journal`.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace

from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.state.journal import Journal
from rich.console import Console

from benchmarks.ground import Ground
from benchmarks.measure import Row, table

FEW, MANY = 1_000, 10_000
TIMES = 5
TARGET = 1.5
"""Allows for one garbage collection; rebuilding a list at every step would give a ratio of 10."""


def measure(_ground: Ground | None = None) -> list[Row]:
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)  # as the command line does
    try:
        few, many = (min(_time(count) for _ in range(TIMES)) for count in (FEW, MANY))
    finally:
        gc.set_threshold(*before)
    note = f"steps, updates and deletions of {MANY:,} resources; reference: {MANY // FEW} times the steps of {FEW:,}"
    return [Row("journal", many, few * MANY / FEW, TARGET, note=note)]


def _time(count: int) -> float:
    """Return the seconds of processor time: other work of the machine must not count."""
    gc.collect()
    began = time.process_time()
    _carry_out(count)
    return time.process_time() - began


def _carry_out(count: int) -> None:
    """Keep, update and delete every resource of a state, one after the other."""
    olds = [ResourceState(f"urn:{index}", "t:t:T", custom=True, id=str(index)) for index in range(count)]
    journal = Journal(StackSnapshot(olds), None)
    copies = [replace(old) for old in olds]
    for old, new in zip(olds, copies, strict=True):
        journal.replace(old, new)
    updated = [replace(old, inputs={"a": 1}) for old in copies]
    for old, new in zip(copies, updated, strict=True):
        journal.finish(done=old, new=new)
    for old in updated:
        journal.finish(done=old)
    assert not journal.snapshot().resources


if __name__ == "__main__":
    Console(width=180).print(table(measure()))
