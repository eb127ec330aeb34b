"""Shows how the work goes: a bar on a terminal, a line for each table elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lakewright_spark.policies.builtin import is_own
from lakewright_spark.scheduler.run_log.records import RunRecord, RunState
from lakewright_spark.scheduler.supervisor import Observer
from lakewright_spark.table_identifier import TableIdentifier

_LOUD = {RunState.FAILED, RunState.CANCELLED}


@contextmanager
def shown(console: Console) -> Iterator[Observer]:
    """Yield an observer for the block. The console should take names as they are: no markup in them, no emoji."""
    if not console.is_terminal:
        lines = _Lines(console)
        try:
            yield lines
        finally:
            lines.close()
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)


@dataclass
class _Lines:
    """Print one line for each table once all of its runs have ended. Its own tables have one if a run failed."""

    console: Console
    open: dict[TableIdentifier, set[str]] = field(default_factory=dict)
    """Table -> ids of its runs that have not ended."""
    ended: dict[TableIdentifier, list[RunRecord]] = field(default_factory=dict)

    def __call__(self, run: RunRecord) -> None:
        waiting = self.open.setdefault(run.table, set())
        if not run.state.ended:
            waiting.add(run.id)
            return
        waiting.discard(run.id)
        self.ended.setdefault(run.table, []).append(run)
        if not waiting:
            self._print(run.table)

    def close(self) -> None:
        """Print what is known of tables whose runs have not all ended."""
        for table in list(self.ended):
            self._print(table)

    def _print(self, table: TableIdentifier) -> None:
        del self.open[table]
        runs = self.ended.pop(table)
        if not is_own(table) or any(run.state in _LOUD for run in runs):
            self.console.print(line_of(table, runs), soft_wrap=True)


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
                self._progress.console.print(line_of(run.table, [run]), soft_wrap=True)
        shown = f"{run}" if run.state is RunState.RUNNING else None
        self._progress.update(self._task, total=self._runs, completed=self._ended, description=shown)


def line_of(table: TableIdentifier, runs: Sequence[RunRecord]) -> str:
    """Return the line of a table whose runs have ended; what errors say in several lines becomes one."""
    return " ".join(f"{table}: {', '.join(map(_told, runs))}".split())


def _told(run: RunRecord) -> str:
    took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
    numbers = ", ".join(f"{key} {value}" for key, value in run.metrics.items() if key != "dry_run" and value)
    more = run.reason.strip() or numbers
    return f"{run.job} {run.state.value.lower()}{took}{f' ({more})' if more else ''}"
