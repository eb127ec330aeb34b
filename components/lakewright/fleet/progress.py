"""The progress of a fleet on standard error: a live display on a terminal, a line for each stack elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from lakewright_engine.display.lines import estimate_remaining
from rich.live import Live
from rich.text import Text
from typing_extensions import override

from lakewright.fleet.results import FleetReport, StackResult, StackStatus
from lakewright.fleet.selection import SelectedStack
from lakewright.terminal.console import open_console
from lakewright.terminal.escaping import escape_line
from lakewright.terminal.text_lines import format_table, plural

if TYPE_CHECKING:
    from rich.console import Console

_NAMED_STACKS = 8
"""Number of running stacks that the live display names."""

_COLORS = {
    StackStatus.FAILED: "red",
    StackStatus.INTERRUPTED: "yellow",
    StackStatus.SKIPPED: "yellow",
    StackStatus.CHANGED: "cyan",
}


class LineProgress(AbstractContextManager[Any]):
    """Prints a line when a stack ended."""

    def __init__(self, console: Console, verb: str, total: int) -> None:
        """Show the progress of `total` stacks."""
        self._console = console
        self.verb = verb
        self._total = total
        self._ended: list[StackResult] = []
        self._began = time.monotonic()
        self._running: dict[str, float] = {}

    @override
    def __enter__(self) -> Self:
        return self

    @override
    def __exit__(self, *_: object) -> None:
        return None

    def show_start(self, stack: SelectedStack, *, is_earlier: bool = False) -> None:
        """Count a stack as running."""
        self._running[stack.name] = time.monotonic()
        if is_earlier:
            self._print(Text(f"{stack.name}: its process of the earlier run still works; waiting for it"))

    def show_result(self, result: StackResult) -> None:
        """Print the result of a stack."""
        self._running.pop(result.stack.name, None)
        self._ended.append(result)
        width = len(str(self._total))
        line = Text(f"[{len(self._ended):{width}}/{self._total}] ")
        line.append(result.stack.name, style="bold")
        line.append(": ")
        line.append(format_status(result), style=_COLORS.get(result.status, ""))
        line.append(f" ({result.seconds:.1f} s)")
        if remaining_time := self._format_remaining_time():
            line.append(f", {remaining_time}")
        if result.error:
            line.append(f": {result.error}")
        self._print(line)

    def _format_remaining_time(self) -> str:
        """Return an estimate such as `about 3 min 20 s left`; empty after the last stack and before the first."""
        seconds = estimate_remaining(time.monotonic() - self._began, len(self._ended), self._total)
        return f"about {format_seconds(seconds)} left" if seconds else ""

    def show_note(self, text: str) -> None:
        """Print a line about the whole run."""
        self._print(Text(text))

    def show_interrupt(self, count: int, running: int) -> None:
        """Print the effect of an interrupt."""
        stacks = plural(running, "stack")
        texts = {
            1: f"Interrupted: no other stack starts. {stacks} still running: their current steps finish, and their"
            " states are saved. Ctrl-C again stops them at once.",
            2: f"Interrupted again: {stacks} must stop at once. Ctrl-C again kills the processes.",
        }
        self._print(Text(texts.get(count, f"Interrupted again: the processes of {stacks} are killed."), "yellow"))

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True, highlight=False)


class LiveProgress(LineProgress):
    """Prints lines as well, and keeps the running stacks below them."""

    @override
    def __enter__(self) -> Self:
        self._live = Live(console=self._console, get_renderable=self._render, refresh_per_second=4, transient=True)
        self._live.start()
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _render(self) -> Text:
        failed = sum(result.status is StackStatus.FAILED for result in self._ended)
        head = f"{self.verb}: {len(self._ended)} of {self._total} done, {len(self._running)} running"
        remaining_time = self._format_remaining_time()
        lines = [head + (f", {failed} failed" if failed else "") + (f", {remaining_time}" if remaining_time else "")]
        now = time.monotonic()
        running = [*self._running.items()]
        lines += [f"  {name} ({now - began:.0f} s)" for name, began in running[:_NAMED_STACKS]]
        if len(running) > _NAMED_STACKS:
            lines.append(f"  and {len(running) - _NAMED_STACKS} more")
        return Text("\n".join(lines), overflow="ellipsis", no_wrap=True)


def choose_progress(verb: str, total: int) -> LineProgress:
    """Return the progress display for standard error."""
    console = open_console(stderr=True)
    is_live = console.is_terminal and not console.is_dumb_terminal
    return (LiveProgress if is_live else LineProgress)(console, verb, total)


def format_status(result: StackResult) -> str:
    """Return the status with the changes, such as `changed: 2 create, 1 update`."""
    changes = ", ".join(f"{count} {op}" for op, count in sorted(result.changes.items()))
    return f"{result.status.value}: {changes}" if result.status is StackStatus.CHANGED else result.status.value


def format_seconds(seconds: float) -> str:
    """Return a duration such as `4.1 s` or `3 min 20 s`."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def format_summary(report: FleetReport, folder: str) -> list[str]:
    """Return the summary by stack, as lines of plain text."""
    head = ("STACK", "TENANT", "ENVIRONMENT", "RESULT", "TIME", "")
    rows = [
        (
            result.stack.name,
            result.stack.tenant or "-",
            result.stack.environment or "-",
            format_status(result) + (" (earlier run)" if result.is_resumed else ""),
            format_seconds(result.seconds) if result.exit is not None or result.seconds else "-",
            result.error,
        )
        for result in report.results
    ]
    lines = format_table(head, rows)
    counts = ", ".join(f"{count} {status}" for status, count in report.counts.items())
    lines += ["", f"{plural(len(report.results), 'stack')}: {counts}; {format_seconds(report.seconds)}"]
    for wave in report.waves:
        lines += [f"wave {wave.name}: {wave.status.value}", *(f"  {fault}" for fault in wave.faults)]
    if report.not_deployed:
        lines.append(format_not_deployed(report.not_deployed))
    if report.remaining:
        lines.append(
            f"{plural(len(report.remaining), 'stack')} not done; `lakewright fleet {report.command} --resume` continues"
        )
    return [*lines, f"Output of each stack: {folder}"]


def format_not_deployed(stacks: Sequence[str]) -> str:
    """Return the stacks that the backend does not have, and the command that creates them."""
    return f"not deployed: {', '.join(stacks)}; `lakewright fleet up --create` creates their stacks"


def format_details(report: FleetReport) -> list[str]:
    """Return the steps of each stack with changes, with the names of the properties that change."""
    lines: list[str] = []
    for result in report.results:
        steps: list[dict[str, Any]] = result.document.get("steps") or []
        changed = [step for step in steps if step.get("result", step["op"]) not in ("same", "read", "refresh")]
        if not changed:
            continue
        lines += ["", f"{result.stack.name}:"]
        for step in changed:
            keys = f" [{', '.join(step['keys'])}]" if step.get("keys") else ""
            lines.append(escape_line(f"  {step.get('result', step['op'])} {step['type']} {step['name']}{keys}"))
    return lines
