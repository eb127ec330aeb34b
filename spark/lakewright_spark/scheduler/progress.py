"""Show the progress of runs: a bar on a terminal, otherwise a line for each table."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lakewright_spark.policies.builtin import is_own
from lakewright_spark.scheduler.run_log.records import (
    BASIS,
    FIRST,
    GB_HOURS,
    KILLED,
    PREDICTED,
    SUSPECT,
    TIMED_OUT,
    RunRecord,
    RunState,
)
from lakewright_spark.scheduler.supervisor import Observer
from lakewright_spark.table_identifier import TableIdentifier

_NOT_PRINTED = {"dry_run", BASIS, FIRST, PREDICTED, GB_HOURS, KILLED, SUSPECT, TIMED_OUT}
_ALWAYS_PRINTED = {RunState.FAILED, RunState.CANCELLED}


@contextmanager
def show_progress(console: Console) -> Generator[Observer, None, None]:
    """Yield an observer for the block. The console must not interpret markup or emoji in names."""
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
    """Print a line for each table whose runs have ended. This package's own tables get one only for failures."""

    console: Console
    open: dict[TableIdentifier, set[str]] = field(default_factory=dict[TableIdentifier, set[str]])
    """IDs of open runs by table."""
    ended: dict[TableIdentifier, list[RunRecord]] = field(default_factory=dict[TableIdentifier, list[RunRecord]])

    def __call__(self, run: RunRecord) -> None:
        waiting = self.open.setdefault(run.table, set())
        if not run.state.has_ended:
            waiting.add(run.id)
            return
        waiting.discard(run.id)
        self.ended.setdefault(run.table, []).append(run)
        if not waiting:
            self._print(run.table)

    def close(self) -> None:
        """Print the tables whose runs have not all ended."""
        for table in list(self.ended):
            self._print(table)

    def _print(self, table: TableIdentifier) -> None:
        del self.open[table]
        runs = self.ended.pop(table)
        if not is_own(table) or any(run.state in _ALWAYS_PRINTED for run in runs):
            self.console.print(format_line(table, runs), soft_wrap=True)


class _Bar:
    def __init__(self, progress: Progress) -> None:
        self._progress, self._runs, self._ended = progress, 0, 0
        self._task = progress.add_task("maintenance", total=None)

    def __call__(self, run: RunRecord) -> None:
        if run.state is RunState.QUEUED:
            self._runs += 1
        elif run.state.has_ended:
            self._ended += 1
            if run.state in _ALWAYS_PRINTED:
                self._progress.console.print(format_line(run.table, [run]), soft_wrap=True)
        description = f"{run}" if run.state is RunState.RUNNING else None
        self._progress.update(self._task, total=self._runs, completed=self._ended, description=description)


def format_line(table: TableIdentifier, runs: Sequence[RunRecord]) -> str:
    """Return the line of a table whose runs have ended. Errors of several lines are joined."""
    return " ".join(f"{table}: {', '.join(map(_format_run, runs))}".split())


def _format_run(run: RunRecord) -> str:
    took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
    metrics = ", ".join(f"{key} {value}" for key, value in run.metrics.items() if key not in _NOT_PRINTED and value)
    reason = run.reason.strip()
    more = f"{metrics}; {reason}" if reason and metrics and run.state is RunState.SUCCEEDED else reason or metrics
    return f"{run.job} {run.state.value.lower()}{took}{f' ({more})' if more else ''}"
