"""The text output of an operation: a line for each resource, live progress on a terminal, a summary. Never a secret."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from lakewright_engine.display.property_diff import ValueForm, format_value
from lakewright_engine.display.report import OperationReport, StepReport, format_diagnostic, format_violation
from lakewright_engine.model.urns import ROOT_STACK_TYPE

if TYPE_CHECKING:
    from pulumi.automation.events import DiagnosticEvent, EngineEvent

MARKS = {
    "create": ("+", "green", "create", "created"),
    "update": ("~", "yellow", "update", "updated"),
    "delete": ("-", "red", "delete", "deleted"),
    "retain": ("=", "cyan", "retain", "retained"),
    "replace": ("+-", "magenta", "replace", "replaced"),
    "create-replacement": ("++", "green", "create replacement", "created replacement"),
    "delete-replaced": ("--", "red", "delete replaced", "deleted replaced"),
    "retain-replaced": ("=", "cyan", "retain replaced", "retained replaced"),
    "adopt": ("=", "cyan", "adopt", "adopted"),
    "import": ("=", "cyan", "import", "imported"),
    "import-replacement": ("=", "cyan", "import replacement", "imported replacement"),
    "read": (">", "cyan", "read", "read"),
    "read-replacement": (">>", "cyan", "read replacement", "read replacement"),
    "refresh": ("~", "cyan", "refresh", "refreshed"),
    "discard": ("<", "red", "discard", "discarded"),
    "discard-replaced": ("<<", "red", "discard replaced", "discarded replaced"),
    "remove-pending-replace": ("~", "red", "finish replacement", "finished replacement"),
    "same": ("", "dim", "unchanged", "unchanged"),
}
"""Operation -> sign, color, its name in a preview, its name when it is done."""

REPLACEMENT_PARTS = ("create-replacement", "delete-replaced", "retain-replaced")
"""The parts of a replacement. A preview displays only the replacement, a deployment only its parts."""

GroupSteps = Callable[[Sequence[StepReport]], Sequence[tuple[str, Sequence[StepReport]]]]
"""Divides steps into groups with titles."""

TITLES = {"preview": "Previewing update", "up": "Updating", "refresh": "Refreshing", "destroy": "Destroying"}


def estimate_remaining(elapsed: float, done: int, total: int) -> float:
    """Return the seconds that the remaining steps need at the rate of the completed steps; 0 if this is unknown."""
    return elapsed / done * (total - done) if done else 0.0


class Display:
    """Displays engine events. Used as a context manager, which clears the live line."""

    def __init__(
        self,
        console: Console,
        verb: str,
        stack: str,
        *,
        dry: bool,
        diff: bool = False,
        errors: Console | None = None,
        planned: int = 0,
        group: GroupSteps | None = None,
    ) -> None:
        """Display an operation on a stack.

        Args:
            console: Where to display.
            verb: The operation.
            stack: The stack.
            dry: Whether it is a preview.
            diff: Whether to list changed properties.
            errors: Where errors and warnings go, unless both are terminals. Default: the same console.
            planned: Number of resources in a preview of the operation; 0 if there was none.
            group: Returns the steps of a preview in groups with titles, which may be empty. None displays each step at
                once, as without a preview.
        """
        self._planned = planned
        self._group = group if dry else None
        self._ungrouped: list[StepReport] = []
        """Steps of a preview that are displayed when all are known."""
        self._began = time.monotonic()
        self.report = OperationReport()
        self._console = console
        same_screen = errors is None or (console.is_terminal and errors.is_terminal)
        self._errors = console if errors is None or same_screen else errors
        self._dry = dry
        self._diff = diff
        self._title = f"Previewing {verb}" if dry and verb != "preview" else TITLES[verb]
        self._stack = stack
        self._lock = threading.Lock()
        self._status: dict[str, str] = {}
        """The last status that providers reported of resources in progress, by URN."""
        self._live = console.status("") if console.is_terminal else None

    def __enter__(self) -> Display:
        """Start the live line."""
        self._context: AbstractContextManager[Any] = self._live or nullcontext()
        self._context.__enter__()
        self._progress()
        return self

    def __exit__(self, *exception: Any) -> None:
        """Clear the live line, and display the steps that were to be grouped."""
        self._context.__exit__(*exception)
        if self._group is not None:
            for title, steps in self._group(self._ungrouped):
                if title:
                    self._line(f"  [bold]{escape(title)}[/bold]")
                for step in steps:
                    self._print_step(step)

    def __call__(self, event: EngineEvent) -> None:
        """Display an event."""
        with self._lock:
            if event.prelude_event is not None:
                self._line(f"[bold]{self._title}[/bold] ({escape(self._stack)}):")
            step = self.report.add(event)
            if step is not None and step.done:
                self._show(step)
            if event.diagnostic_event is not None:
                self._diagnostic(event.diagnostic_event)
            if event.policy_event is not None:
                violation = format_violation(event.policy_event)
                color = "red" if violation.startswith("error") else "yellow"
                self._line(f"[{color}]{escape(violation)}[/{color}]", is_message=True)
            self._progress()

    def summary(self, outputs: dict[str, Any]) -> None:
        """Display the outputs of a deployment and the counts of changes.

        Args:
            outputs: The outputs in the state. If the engine has sent an output, its masked form is displayed.
        """
        if outputs and not self._dry:
            sent_outputs = self.report.stack_outputs
            outputs = {name: sent_outputs.get(name, value) for name, value in outputs.items()}
            self._line("[bold]Outputs:[/bold]")
            width = max(len(name) for name in outputs)
            for name, value in sorted(outputs.items()):
                self._line(f"    {escape(_escape_line_breaks(name)):<{width}} : {escape(format_value(value))}")
        if self._dry and self._has_planned_nothing():
            self._line("Nothing is planned: the program failed before it declared a resource.")
            self._line(f"Duration: {self.report.seconds}s")
            return
        self._line("[bold]Resources:[/bold]")
        counted = {op: count for op, count in self.report.changes.items() if count and op != "same"}
        for op, count in counted.items():
            sign, color, planned, done = MARKS.get(op, ("", "dim", op, op))
            self._line(f"    [{color}]{sign} {count} {f'to {planned}' if self._dry else done}[/{color}]")
        unchanged = self.report.changes.get("same", 0)
        if unchanged or not counted:
            self._line(f"    {unchanged} unchanged")
        self._line(f"Duration: {self.report.seconds}s")

    def _has_planned_nothing(self) -> bool:
        """Return whether the run failed before a resource was planned. The stack itself does not count."""
        failed = any(message.startswith("error") for message in self.report.messages)
        return failed and all(step.type == ROOT_STACK_TYPE for step in self.report.steps)

    def _show(self, step: StepReport) -> None:
        if not step.failed and (
            step.effect == "same"
            or (self._dry and step.op in REPLACEMENT_PARTS)
            or (not self._dry and step.op == "replace")
        ):
            return
        if self._group is None:
            self._print_step(step)
        else:
            self._ungrouped.append(step)

    def _print_step(self, step: StepReport) -> None:
        sign, color, planned, done = MARKS.get(step.effect, ("", "dim", step.effect, step.effect))
        outcome = f"{planned} failed" if step.failed else planned if self._dry else done
        if step.result:
            outcome = f"drift: {'gone' if step.result == 'delete' else 'changed'}"
        keys = f" [dim]\\[{escape(_escape_line_breaks(', '.join(step.keys)))}][/dim]" if step.keys else ""
        style = "bold red" if step.failed else color
        mark = "!" if step.failed else sign
        self._line(
            f"[{style}]{mark:>3}  {escape(step.type)}  {escape(_escape_line_breaks(step.name))}  "
            f"{outcome}[/{style}]{keys}"
        )
        if self._diff:
            self._properties(step)

    def _properties(self, step: StepReport) -> None:
        for change in step.changes(ValueForm.WHOLE):
            color = {"+": "green", "-": "red", "~": "yellow"}[change.sign]
            first, *later_lines = change.text.split("\n")
            path = escape(_escape_line_breaks(change.path))
            self._line(f"      [{color}]{change.sign} {path}: {escape(first)}[/{color}]")
            for line in later_lines:
                self._line(f"        [{color}]{escape(line)}[/{color}]")

    def _diagnostic(self, event: DiagnosticEvent) -> None:
        if event.ephemeral and event.urn:
            self._status[event.urn] = event.message.strip()
        if event.severity == "debug" or event.ephemeral:
            return
        color = {"error": "red", "warning": "yellow"}.get(event.severity, "")
        prefix = f"{event.urn.rpartition('::')[2]}: " if event.urn else ""
        body = escape(_indent(prefix + (format_diagnostic(event) or event.message.strip("\n"))))
        if body.strip():
            self._line(f"[{color}]{body}[/{color}]" if color else body, is_message=bool(color))

    @property
    def progress(self) -> str:
        """The text of the live line."""
        done = sum(step.done for step in self.report.steps)
        names = ", ".join(self._with_status(step) for step in self.report.in_progress[:3])
        more = len(self.report.in_progress) - 3
        suffix = f": {names}{f' and {more} more' if more > 0 else ''}" if names else ""
        return f"{self._title} … {self._format_done(done)}{suffix}"

    def _format_done(self, done: int) -> str:
        """Return the number of steps that are done, with the total and the remaining time if there was a preview."""
        if not self._planned:
            return f"{done} done"
        total = max(self._planned, len(self.report.steps))
        remaining_seconds = estimate_remaining(time.monotonic() - self._began, done, total)
        return f"{done} of {total} done" + (
            f", about {math.ceil(remaining_seconds)} s left" if remaining_seconds else ""
        )

    def _progress(self) -> None:
        if self._live is not None:
            self._live.update(escape(_escape_line_breaks(self.progress)))

    def _with_status(self, step: StepReport) -> str:
        status = self._status.get(step.urn)
        return f"{step.name} ({status})" if status else step.name

    def message(self, text: str) -> None:
        """Display an error or a warning."""
        color = "red" if text.startswith("error") else "yellow"
        self._line(f"[{color}]{escape(_indent(text))}[/{color}]", is_message=True)

    def _line(self, markup: str, *, is_message: bool = False) -> None:
        console = self._errors if is_message else self._console
        if console.is_terminal:
            console.print(markup, highlight=False, soft_wrap=True)
        else:  # the same text, without the cost of layout
            console.file.write(f"{Text.from_markup(markup).plain}\n")


def _escape_line_breaks(text: str) -> str:
    """Return a name with its line breaks escaped, so that no part of it looks like another line."""
    return text.replace("\n", "\\n")


def _indent(message: str) -> str:
    """Return a message whose second and later lines are indented, so that none looks like a line of the display."""
    return message.replace("\n", "\n  ")
