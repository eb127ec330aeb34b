"""The traceback of the Pulumi CLI's Python launcher is left out, and nothing else."""

from __future__ import annotations

from lakewright.cli.engines.launcher_tracebacks import LauncherTracebacks
from pulumi.automation.events import EngineEvent

INTERRUPTED = (
    "Traceback (most recent call last):",
    '  File "/usr/bin/pulumi-language-python-exec", line 232, in <module>',
    "    loop.run_until_complete(coro)",
    '  File "/usr/lib/python3.11/selectors.py", line 468, in select',
    "    fd_event_list = self._selector.poll(timeout, max_ev)",
    "                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    "KeyboardInterrupt",
)
BETWEEN = "During handling of the above exception, another exception occurred:"
DEFECT = (*INTERRUPTED[:-1], "ValueError: not enough values to unpack")
PROGRAM = ("Traceback (most recent call last):", '  File "__main__.py", line 3, in <module>', "KeyboardInterrupt")


def diagnostic(line: str, severity: str = "info#err") -> EngineEvent:
    body = {"message": f"{line}\n\n", "color": "never", "severity": severity}
    return EngineEvent.from_json({"sequence": 0, "timestamp": 0, "diagnosticEvent": body})


def filter_lines(*lines: str) -> list[str]:
    """Return the lines that remain of the launcher's output."""
    events: list[EngineEvent] = []
    tracebacks = LauncherTracebacks(events.append)
    for line in lines:
        tracebacks(diagnostic(line))
    tracebacks.flush()
    return [event.diagnostic_event.message.strip("\n") for event in events if event.diagnostic_event is not None]


def test_tracebacks_of_an_interrupted_launcher_are_left_out() -> None:
    assert filter_lines("before", *INTERRUPTED, BETWEEN, *INTERRUPTED, "after") == ["before", "after"]


def test_other_tracebacks_are_printed_in_full() -> None:
    for lines in (DEFECT, PROGRAM, (*DEFECT, BETWEEN, *PROGRAM), INTERRUPTED[:3]):
        assert filter_lines(*lines) == list(lines)


def test_errors_between_lines_are_printed_at_once() -> None:
    events: list[EngineEvent] = []
    tracebacks = LauncherTracebacks(events.append)

    tracebacks(diagnostic(INTERRUPTED[0]))
    tracebacks(diagnostic("the disk is full", severity="error"))

    assert [event.diagnostic_event.severity for event in events if event.diagnostic_event is not None] == ["error"]
