"""Waves of `fleet up`: which stacks they take, and when the next wave begins."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from lakewright.fleet.results import FleetReport, StackResult, StackStatus
from lakewright.fleet.selection import SelectedStack, SelectionError
from lakewright.fleet.waves import Wave, run_in_waves, split_into_waves


def stack(name: str, **labels: str) -> SelectedStack:
    return SelectedStack(name, {"name": name, "labels": labels})


TEN = [
    stack(f"s{number}", **({"canary": "yes"} if number in {4, 7} else {"tier": f"t{number}"})) for number in range(10)
]


def names(waves: Sequence[Wave]) -> dict[str, str]:
    return {wave.name: " ".join(stack.name for stack in wave.stacks) for wave in waves}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("canary,10%,rest", {"canary": "s4 s7", "10%": "s0", "rest": "s1 s2 s3 s5 s6 s8 s9"}),
        ("canary=y*, 25%, rest", {"canary=y*": "s4 s7", "25%": "s0 s1 s2", "rest": "s3 s5 s6 s8 s9"}),
        ("tier=t[01],3,rest", {"tier=t[01]": "s0 s1", "3": "s2 s3 s4", "rest": "s5 s6 s7 s8 s9"}),
        ("100%,rest", {"100%": " ".join(f"s{number}" for number in range(10))}),
        ("rest", {"rest": " ".join(f"s{number}" for number in range(10))}),
    ],
)
def test_each_stack_is_in_its_first_wave(text: str, expected: dict[str, str]) -> None:
    assert names(split_into_waves(text, list(reversed(TEN)))) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("canary,10%", "7 stacks in no wave: s1, s2, s3, s5, s6, and 2 more; add `rest` at the end"),
        ("rest,10%", "`rest` takes all other stacks, so it must be the last wave"),
        ("canry,rest", "'canry' takes none of the 10 selected stacks"),
        ("canary,canary,rest", "'canary' takes none of the 10 selected stacks that are in no earlier wave"),
        ("0%,rest", "from 1% to 100%, found '0%'"),
        ("101%,rest", "from 1% to 100%, found '101%'"),
        ("0,rest", "found '0'"),
        (
            "canary,,rest",
            "expected LABEL, LABEL=VALUE, a number, a percentage such as 10%, or `rest` at the end, found ''",
        ),
        ("canary=,rest", "found 'canary='"),
    ],
)
def test_a_mistake_is_explained(text: str, message: str) -> None:
    with pytest.raises(SelectionError) as error:
        split_into_waves(text, TEN)
    assert message in str(error.value)


class Runner:
    """Updates stacks, some of which fail."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.results: list[StackResult] = []
        self.calls: list[str] = []

    def run(self, stacks: Sequence[SelectedStack]) -> FleetReport:
        self.calls.append(" ".join(stack.name for stack in stacks))
        for one in stacks:
            failed = one.name in self.failing
            status = StackStatus.FAILED if failed else StackStatus.CHANGED
            self.results.append(StackResult(one, status, error="no access" if failed else ""))
        return FleetReport("up", list(self.results), 0.0)

    def skip(self, stacks: Sequence[SelectedStack], reason: str) -> FleetReport:
        self.results += [StackResult(stack, StackStatus.SKIPPED, error=reason) for stack in stacks]
        return FleetReport("up", list(self.results), 0.0)


WAVES = split_into_waves("canary,10%,rest", TEN)


def run(runner: Runner, faults: dict[str, str] | None = None) -> tuple[FleetReport, list[str]]:
    """Run the waves; stacks with faults differ when they are checked."""
    checked: list[str] = []

    def find_faults(stacks: Sequence[SelectedStack]) -> list[str]:
        checked.append(" ".join(stack.name for stack in stacks))
        return [faults[stack.name] for stack in stacks if faults and stack.name in faults]

    return run_in_waves(runner, WAVES, find_faults, lambda _text: None), checked


def test_each_wave_but_the_last_is_checked() -> None:
    report, checked = run(Runner())

    assert checked == ["s4 s7", "s0"]
    assert [(wave.name, wave.status.value) for wave in report.waves] == [
        ("canary", "passed"),
        ("10%", "passed"),
        ("rest", "updated"),
    ]
    assert report.exit_code == 0


def test_a_failed_stack_stops_later_waves() -> None:
    runner = Runner("s7")

    report, checked = run(runner)

    assert runner.calls == ["s4 s7"]
    assert checked == []
    assert [wave.status.value for wave in report.waves] == ["failed", "skipped", "skipped"]
    assert report.waves[0].faults == ("s7: no access",)
    assert report.counts == {"changed": 1, "failed": 1, "skipped": 8}
    assert report.exit_code == 1


def test_a_difference_stops_later_waves() -> None:
    report, checked = run(Runner(), {"s0": "s0: 1 difference"})

    assert checked == ["s4 s7", "s0"]
    assert [wave.status.value for wave in report.waves] == ["passed", "failed", "skipped"]
    assert report.waves[1].faults == ("s0: 1 difference",)
    skipped = [result for result in report.results if result.status is StackStatus.SKIPPED]
    assert {result.error for result in skipped} == {"not started: wave 10% failed"}
    assert report.exit_code == 1


def test_an_interrupt_while_a_wave_is_checked_ends_the_run() -> None:
    def interrupt(_stacks: Sequence[SelectedStack]) -> list[str]:
        raise KeyboardInterrupt

    report = run_in_waves(Runner(), WAVES, interrupt, lambda _text: None)

    assert report.exit_code == 130
    assert report.counts == {"changed": 2, "skipped": 8}
