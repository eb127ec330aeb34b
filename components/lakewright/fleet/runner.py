"""Run a command on many stacks in parallel, each in a process of its own, and keep the results for `--resume`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from lakewright_engine.processes.process_identity import identity
from lakewright_engine.processes.prompt_signals import handle_signals

from lakewright.fleet.fingerprints import compute_inputs_fingerprint, compute_state_fingerprint
from lakewright.fleet.results import DONE, FleetReport, StackResult, StackStatus, create_result
from lakewright.fleet.run_folder import JournalEntry, RunFolder
from lakewright.fleet.schedule import Bounds, OnError, Schedule
from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.stack_process import EarlierProcess, RunningStack, StackProcess
from lakewright.project_files.stack_files import read_text

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STRENGTH = (signal.SIGINT, signal.SIGINT, signal.SIGKILL)
"""Signals to the running processes at the first, second and third interrupt."""


class Listener(Protocol):
    """Shows the progress."""

    def show_start(self, stack: SelectedStack, *, is_earlier: bool = False) -> None:
        """Show that a stack started, or that a process of the resumed run still works on it."""
        ...

    def show_result(self, result: StackResult) -> None:
        """Show the result of a stack."""
        ...

    def show_interrupt(self, count: int, running: int) -> None:
        """Show that the fleet was interrupted for the n-th time while stacks run."""
        ...


@dataclass(frozen=True)
class FleetCommand:
    """The command that runs on each stack."""

    name: str
    """Name of the fleet's command."""
    arguments: tuple[str, ...]
    """Command and options for a stack, such as `up --yes`."""
    extra_arguments: Callable[[str], tuple[str, ...]] = lambda _stack: ()
    """More options by the name of the stack."""


@dataclass(frozen=True)
class _ProcessEnd:
    """The end of a stack's process."""

    stack: str
    code: int | None
    """Exit code; None if it is lost."""
    at: float
    """Monotonic time, in seconds."""


class FleetRunner:
    """One run of a command on many stacks."""

    def __init__(
        self,
        project: PulumiProject,
        command: FleetCommand,
        folder: RunFolder,
        listener: Listener,
        *,
        bounds: Bounds,
        on_error: OnError,
        environ: Mapping[str, str],
    ) -> None:
        """Prepare a run.

        Args:
            project: The project of the stacks.
            command: The command.
            folder: Keeps the journal and the outputs.
            listener: Shows the progress.
            bounds: Limits of concurrent stacks.
            on_error: The behavior after an error.
            environ: Environment variables of the processes.
        """
        self._project = project
        self._command = command
        self._folder = folder
        self._listener = listener
        self._bounds = bounds
        self._on_error = on_error
        self._environ = environ
        self._running: dict[str, RunningStack] = {}
        self._results: dict[str, StackResult] = {}
        self._events: SimpleQueue[_ProcessEnd | None] = SimpleQueue()
        self._interrupts = 0
        self._handled_interrupts = 0
        self._has_failed = False

    def note_failures(self, failures: Iterable[StackResult]) -> None:
        """Note and show the failures of stacks before their command: `run` does not start these stacks."""
        for result in failures:
            self._results[result.stack.name] = result
            self._listener.show_result(result)

    def run(self, stacks: Sequence[SelectedStack]) -> FleetReport:
        """Run the command on the stacks that are not done. Return the results of all stacks of all calls."""
        began = time.monotonic()
        with handle_signals(_SIGNALS, self._count_interrupt):
            waiting = [stack for stack in stacks if stack.name not in self._results and not self._take_over(stack)]
            schedule = Schedule(waiting, self._bounds)
            while True:
                self._start_stacks(schedule)
                if not self._running:
                    break
                ended = self._events.get()
                self._pass_on_interrupts()
                if ended is not None:
                    self._end(schedule, ended)
        return replace(self.skip(schedule.waiting, self._explain_skip()), seconds=time.monotonic() - began)

    def skip(self, stacks: Sequence[SelectedStack], reason: str) -> FleetReport:
        """Note that stacks without a result are not started. Return the results of all stacks so far."""
        for stack in stacks:
            self._results.setdefault(stack.name, StackResult(stack, StackStatus.SKIPPED, error=reason))
        results = [self._results[name] for name in sorted(self._results)]
        return FleetReport(self._command.name, results, 0.0, is_interrupted=bool(self._interrupts))

    def _start_stacks(self, schedule: Schedule) -> None:
        while not self._interrupts and not (self._has_failed and self._on_error is OnError.STOP):
            stack = schedule.next()
            if stack is None:
                return
            self._start(stack)

    def _start(self, stack: SelectedStack) -> None:
        name = stack.name
        earlier = self._folder.entries.get(name, JournalEntry())

        def report_end(code: int | None) -> None:
            self._events.put(_ProcessEnd(name, code, time.monotonic()))

        running = EarlierProcess.watch(stack, earlier.pid, earlier.process, report_end) if not earlier.status else None
        self._listener.show_start(stack, is_earlier=running is not None)
        if running is None:
            inputs = compute_inputs_fingerprint(self._project, stack)
            arguments = (*self._command.arguments, *self._command.extra_arguments(name))
            files = (self._folder.output(name), self._folder.log(name))
            running = StackProcess.start(stack, arguments, self._environ, files, report_end)
            entry = JournalEntry(inputs=inputs, pid=running.pid, process=identity(running.pid))
            self._folder.set(name, entry)
        self._running[name] = running

    def _end(self, schedule: Schedule, ended: _ProcessEnd) -> None:
        name, code = ended.stack, ended.code
        running = self._running.pop(name)
        schedule.end(running.stack)
        document = self._folder.document(name)
        if code is None and not document:  # it was killed as well
            self._folder.set(name, JournalEntry())
            schedule.waiting.insert(0, running.stack)
            return
        if code is None:  # the exit code of a process that another process started
            exit_code: Any = document.get("exit")
            code = exit_code if isinstance(exit_code, int) else 1
        log = self._folder.log(name)
        result = create_result(
            running.stack,
            code,
            document,
            read_text(log).splitlines(),
            seconds=ended.at - running.started,
            log=str(log),
            is_interrupted=bool(self._interrupts),
        )
        self._has_failed = self._has_failed or result.status is StackStatus.FAILED
        self._results[name] = result
        entry = replace(
            self._folder.entries[name],
            status=result.status.value,
            exit=result.exit,
            seconds=result.seconds,
            error=result.error,
            state=compute_state_fingerprint(self._project, name) if result.status in DONE else "",
        )
        self._folder.set(name, entry)
        self._listener.show_result(result)

    def _take_over(self, stack: SelectedStack) -> bool:
        """Take the result of the resumed run if nothing changed since. Return whether a result was taken."""
        entry = self._folder.entries.get(stack.name)
        if entry is None or entry.status not in DONE:
            return False
        document = self._folder.document(stack.name)
        if not document or entry.inputs != compute_inputs_fingerprint(self._project, stack):
            return False
        if not entry.state or entry.state != compute_state_fingerprint(self._project, stack.name):
            return False
        self._results[stack.name] = StackResult(
            stack,
            StackStatus(entry.status),
            entry.seconds,
            entry.exit,
            log=str(self._folder.log(stack.name)),
            is_resumed=True,
            document=document,
        )
        return True

    def _explain_skip(self) -> str:
        return "not started: interrupted" if self._interrupts else "not started: another stack failed"

    def _count_interrupt(self, _number: int, _frame: object) -> None:
        self._interrupts += 1
        self._events.put(None)

    def _pass_on_interrupts(self) -> None:
        while self._handled_interrupts < self._interrupts:
            number = _STRENGTH[min(self._handled_interrupts, len(_STRENGTH) - 1)]
            self._handled_interrupts += 1
            self._listener.show_interrupt(self._handled_interrupts, len(self._running))
            for running in self._running.values():
                running.stop(number)
