"""The error of a stack in one line, and the summary of a run's changes."""

from __future__ import annotations

from lakewright.cli.commands.fleet.change_summary import group_changes, summarize_changes
from lakewright.fleet.results import FleetReport, StackResult, StackStatus, find_first_error
from lakewright.fleet.selection import SelectedStack


def test_an_interrupted_stack_says_what_remains_not_the_advice() -> None:
    lines = [
        "Stopped at once. The state of stack 'a' is whole; no operation was in progress.",
        "Continue with: lakewright up --stack a",
    ]

    assert find_first_error(130, {}, lines) == lines[0]


def result_with_changes(name: str, *steps: tuple[str, str, str]) -> StackResult:
    document = {"steps": [{"op": op, "type": kind, "name": resource, "keys": []} for op, kind, resource in steps]}
    return StackResult(SelectedStack(name, {}), StackStatus.CHANGED, document=document)


def test_equal_changes_of_many_stacks_are_one_group() -> None:
    results = [result_with_changes(f"t{number}", ("update", "x:Warehouse", f"t{number}-main")) for number in range(300)]
    report = FleetReport("up", [*results, result_with_changes("other", ("create", "x:Role", "other-r"))], 1.0)

    first, second = group_changes(report)

    assert (len(first.stacks), first.lines) == (300, ("update x:Warehouse TENANT-main",))
    assert (second.stacks, second.lines) == (("other",), ("create x:Role other-r",))


def test_summary_counts_kinds_and_lists_every_deletion() -> None:
    results = [
        result_with_changes(f"t{number}", ("same", "x:Role", "r"), ("delete", "x:Table", f"t{number}-e"))
        for number in range(40)
    ]

    lines = summarize_changes(FleetReport("up", results, 1.0), "runs/changes.txt")

    assert lines[:2] == ["Changes:", "  delete  40 Table"]
    assert sum(line.startswith("  t") and "delete x:Table" in line for line in lines) == 40
    assert "40 stacks (t0, t1, t2, t3, t4 and 35 others):" in lines
    assert lines[-1] == "All changes: runs/changes.txt"
