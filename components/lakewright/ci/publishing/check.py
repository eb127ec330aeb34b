"""A check of the fleet as a child process, and its report or the reason why it gave none.

A killed process or a missing report is published, too, and so is the end of a check at the deadline of its job.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakewright_engine.processes.prompt_signals import handle_signals

from lakewright.ci.documents import FleetDrift, StackDriftReport, read_drift
from lakewright.ci.errors import DocumentError


@dataclass(frozen=True)
class DriftCheck:
    """The result of one check."""

    report: FleetDrift | None
    ended: float
    """Seconds since 1970, UTC."""
    seconds: float = 0.0
    """Duration. The report's own duration is preferred."""
    failure: str = ""
    """Why the check gave no report, on one line; empty with a report."""

    @property
    def duration(self) -> float:
        """Duration in seconds."""
        measured = self.report.seconds if self.report else None
        return self.seconds if measured is None else measured

    @property
    def stacks(self) -> list[StackDriftReport]:
        """The checked stacks; empty if the check failed as a whole."""
        return self.report.stacks if self.report and not self.report.error else []

    @property
    def is_complete(self) -> bool:
        """Whether everything could be checked."""
        return self.report is not None and not self.report.unchecked and not self.report.problems


_LONGEST = 500
STOP_SECONDS = 10
"""Seconds that a check may take to end after SIGTERM. The rest of the pod's grace period is for the publication."""


def run_check(arguments: Sequence[str], *, clock: Callable[[], float] = time.time) -> DriftCheck:
    """Run `lakewright ARGUMENTS --json` and return its result. Its errors and progress go to standard error.

    SIGTERM, which Kubernetes sends at the deadline of a job, ends the check. Its result is a failure, unless it prints
    its report before it ends.
    """
    command = [sys.executable, "-P", "-m", "lakewright.cli", *arguments]
    command += [] if "--json" in arguments else ["--json"]
    begun = time.monotonic()
    is_stopped = False
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        kill = threading.Timer(STOP_SECONDS, child.kill)

        def stop(*_: object) -> None:
            nonlocal is_stopped
            if not is_stopped:
                is_stopped = True
                child.terminate()
                kill.start()

        with handle_signals((signal.SIGTERM,), stop):
            printed, errors = child.communicate()
        kill.cancel()
    sys.stderr.write(errors)
    seconds = time.monotonic() - begun
    try:
        report = read_drift(printed)
    except DocumentError as error:
        if is_stopped:
            failure = f"`lakewright {arguments[0]}` was stopped by SIGTERM after {seconds:.0f} s, as at a deadline"
            return DriftCheck(None, clock(), seconds, failure)
        last = [line for line in errors.splitlines() if line.strip()][-1:] or [str(error)]
        ended = f"signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        return DriftCheck(
            None, clock(), seconds, f"`lakewright {arguments[0]}` ended with {ended}: {last[0][:_LONGEST]}"
        )
    return DriftCheck(report, clock(), seconds)
