"""A drift report as text."""

import io

from lakewright.drift.detection.text import LOG_WIDTH, print_report
from lakewright.drift.model import Difference, DifferenceKind, DriftReport, StackDrift
from rich.console import Console


def render(report: DriftReport) -> str:
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=LOG_WIDTH))
    return stream.getvalue()


def difference(declared_value: object, live_value: object) -> Difference:
    return Difference(
        "acme", "acme", "urn:x", "a:b:Table", "orders", "columns", declared_value, live_value, DifferenceKind.CHANGED
    )


def test_same_problem_is_printed_once_with_its_stacks() -> None:
    stacks = [StackDrift(f"t{number:02}", "x", problems=["the server is down"]) for number in range(12)]
    alone = StackDrift("other", "other", problems=["the state is damaged"])

    text = render(DriftReport([*stacks, alone]))

    assert text.count("the server is down") == 1
    assert "t00, t01" in text
    assert "t09 and 2 more: not checked: the server is down" in text
    assert "other: not checked: the state is damaged" in text
    assert "13 tenants could not be checked completely" in text


def test_lists_show_only_entries_that_differ() -> None:
    stack = StackDrift(
        "acme", "acme", resources=1, total_resources=4, differences=[difference(["a", "b"], ["a", "c[/]"])]
    )

    text = render(DriftReport([stack]))

    assert '["b"]' in text
    assert '["c[/]"]' in text
    assert '"a"' not in text
    assert "1 tenant, 1 of 4 resources compared; 1 difference on 1 tenant." in text
