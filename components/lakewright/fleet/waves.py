"""Waves of `fleet up --waves`: groups of stacks, of which each is updated and checked before the next begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import ceil
from typing import Protocol

from lakewright.fleet.results import FleetReport, WaveResult, WaveStatus
from lakewright.fleet.selection import SelectedStack, SelectionError
from lakewright.terminal.text_lines import plural

REST = "rest"
_SYNTAX = "LABEL, LABEL=VALUE, a number, a percentage such as 10%, or `rest` at the end"
_NAMED_STACKS = 5
"""Number of stacks that a message names."""


@dataclass(frozen=True)
class Wave:
    """Stacks that are updated together."""

    name: str
    """The text of the option, such as `canary` or `10%`."""
    stacks: tuple[SelectedStack, ...]


class RunsStacks(Protocol):
    """Runs the command of a fleet on stacks, and collects the results of all calls."""

    def run(self, stacks: Sequence[SelectedStack]) -> FleetReport:
        """Run the command on stacks. Return the results of all stacks so far."""
        ...

    def skip(self, stacks: Sequence[SelectedStack], reason: str) -> FleetReport:
        """Note that stacks are not started. Return the results of all stacks so far."""
        ...


FindFaults = Callable[[Sequence[SelectedStack]], Sequence[str]]
"""Returns a line for each reason for which no other stack may follow these stacks."""


def split_into_waves(text: str, stacks: Sequence[SelectedStack]) -> list[Wave]:
    """Return the waves of the option `--waves`; a stack is in the first wave that takes it.

    Numbers and percentages of all stacks take stacks in the order of their names.

    Raises:
        SelectionError: A wave is malformed or takes no stack, or a stack is in no wave.
    """
    waves: list[Wave] = []
    waiting = sorted(stacks, key=lambda stack: stack.name)
    names = [name.strip() for name in text.split(",")]
    for number, name in enumerate(names, start=1):
        if name == REST and number != len(names):
            raise SelectionError(f"--waves {text}: `rest` takes all other stacks, so it must be the last wave")
        taken = _take(name, waiting, len(stacks))
        if not taken and not _is_size(name):
            raise SelectionError(
                f"--waves: {name!r} takes none of the {plural(len(stacks), 'selected stack')} that are in no earlier"
                " wave; `lakewright fleet list` lists the labels"
            )
        waiting = [stack for stack in waiting if stack not in taken]
        if taken:
            waves.append(Wave(name, tuple(taken)))
    if waiting:
        raise SelectionError(
            f"--waves {text}: {plural(len(waiting), 'stack')} in no wave: {_name_stacks(waiting)};"
            " add `rest` at the end"
        )
    return waves


def _take(name: str, waiting: Sequence[SelectedStack], total: int) -> Sequence[SelectedStack]:
    """Return the stacks of a wave among the stacks that are in no earlier wave."""
    if name == REST:
        return waiting
    if _is_size(name):
        number = int(name.removesuffix("%"))
        if number == 0 or (name.endswith("%") and number > 100):
            raise SelectionError(f"--waves: expected a number from 1, or a percentage from 1% to 100%, found {name!r}")
        return waiting[: ceil(total * number / 100) if name.endswith("%") else number]
    label, separator, value = name.partition("=")
    if not label or (separator and not value):
        raise SelectionError(f"--waves: expected {_SYNTAX}, found {name!r}")
    pattern = value or "*"
    return [stack for stack in waiting if label in stack.labels and fnmatchcase(stack.labels[label], pattern)]


def _is_size(name: str) -> bool:
    """Return whether a wave is a number, a percentage or `rest`, which may have no stack left to take."""
    return name == REST or name.removesuffix("%").isdecimal()


def run_in_waves(
    runner: RunsStacks, waves: Sequence[Wave], find_faults: FindFaults, show: Callable[[str], object]
) -> FleetReport:
    """Run a command on one wave after another. A wave begins if nothing is wrong with the wave before it.

    Args:
        runner: Runs the command.
        waves: The waves.
        find_faults: Checks the stacks of a wave.
        show: Shows a line about the progress.
    """
    began = time.monotonic()
    results: list[WaveResult] = []
    report = runner.skip((), "")
    for number, wave in enumerate(waves, start=1):
        show(f"wave {number} of {len(waves)}, {wave.name}: {plural(len(wave.stacks), 'stack')}")
        report = runner.run(wave.stacks)
        faults = _list_failures(report, wave)
        status = WaveStatus.UPDATED
        if not faults and number < len(waves):
            show(f"wave {number} of {len(waves)}, {wave.name}: checking")
            try:
                faults = tuple(find_faults(wave.stacks))
            except KeyboardInterrupt:
                report, faults = replace(report, is_interrupted=True), ("interrupted while it was checked",)
            status = WaveStatus.PASSED
        results.append(_result(wave, WaveStatus.FAILED if faults else status, faults))
        if faults:
            results += [_result(later_wave, WaveStatus.SKIPPED) for later_wave in waves[number:]]
            later_stacks = [stack for later_wave in waves[number:] for stack in later_wave.stacks]
            is_interrupted = report.is_interrupted
            report = runner.skip(later_stacks, f"not started: wave {wave.name} failed")
            report = replace(report, is_interrupted=is_interrupted)
            break
    return replace(report, seconds=time.monotonic() - began, waves=results)


def _result(wave: Wave, status: WaveStatus, faults: tuple[str, ...] = ()) -> WaveResult:
    return WaveResult(wave.name, tuple(stack.name for stack in wave.stacks), status, faults)


def _list_failures(report: FleetReport, wave: Wave) -> tuple[str, ...]:
    """Return a line for each stack of a wave that is not updated."""
    names = {stack.name for stack in wave.stacks}
    return tuple(
        f"{result.stack.name}: {result.error or result.status.value}"
        for result in report.remaining
        if result.stack.name in names
    )


def _name_stacks(stacks: Sequence[SelectedStack]) -> str:
    names = [stack.name for stack in stacks[:_NAMED_STACKS]]
    return ", ".join(names + ([f"and {len(stacks) - len(names)} more"] if len(stacks) > len(names) else []))
