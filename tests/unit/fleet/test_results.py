"""The error of a stack in one line."""

from __future__ import annotations

from lakewright.fleet.results import first_error


def test_an_interrupted_stack_says_what_remains_not_the_advice() -> None:
    lines = [
        "Stopped at once. The state of stack 'a' is whole; no operation was in progress.",
        "Continue with: lakewright up --stack a",
    ]

    assert first_error(130, {}, lines) == lines[0]
