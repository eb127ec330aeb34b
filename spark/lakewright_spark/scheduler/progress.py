"""Shows how the work goes: a bar on a terminal, a line for each run elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lakewright_spark.scheduler.records import RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Observer

_LOUD = {RunState.FAILED, RunState.CANCELLED}


@contextmanager
def shown(console: Console) -> Iterator[Observer]:
    """An observer for the block. The console should take names as they are: no markup in them, no emoji."""
    if not console.is_terminal:
        yield lambda run: _line(console, run)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)


class _Bar:
    def __init__(self, progress: Progress) -> None:
        self._progress, self._runs, self._ended = progress, 0, 0
        self._task = progress.add_task("maintenance", total=None)

    def __call__(self, run: RunRecord) -> None:
        if run.state is RunState.QUEUED:
            self._runs += 1
        elif run.state.ended:
            self._ended += 1
            if run.state in _LOUD:
                _line(self._progress.console, run)
        shown = f"{run}" if run.state is RunState.RUNNING else None
        self._progress.update(self._task, total=self._runs, completed=self._ended, description=shown)


def _line(console: Console, run: RunRecord) -> None:
    if run.state.ended:
        took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
        numbers = ", ".join(f"{key} {value}" for key, value in run.metrics.items() if key != "dry_run" and value)
        why = f": {run.reason}" if run.reason else ""
        done = f": {numbers}" if numbers and not why else ""
        console.print(f"{run.state.value.lower()} {run}{took}{why}{done}", soft_wrap=True)
