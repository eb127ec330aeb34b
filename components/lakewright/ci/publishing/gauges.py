"""Prometheus gauges of a check. Pure functions, except for the library's registry, which each call makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.ci.documents import StackDriftReport
from lakewright.ci.errors import PublishError, SettingError
from lakewright.ci.publishing.check import DriftCheck

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


KINDS = ("changed", "gone", "unmanaged", "unreachable", "check")
"""Kinds of differences. Each stack has a gauge of each, so that an alert ends when the number is 0 again."""
LAST_SUCCESS = "lakewright_drift_last_success_timestamp_seconds"
_STACK_LABELS = ("tenant", "stack", "environment")

StackLabels = tuple[str, str, str]
"""Tenant, stack and environment."""


def make_gauges(check: DriftCheck, earlier: Mapping[StackLabels, float]) -> CollectorRegistry:
    """Return the gauges of a check.

    Args:
        check: The check. If it failed as a whole, the stacks of the earlier check keep their time of success.
        earlier: Times of the last success by stack, from what was published before.
    """
    from prometheus_client import CollectorRegistry, Gauge  # noqa: PLC0415 - slow to load

    registry = CollectorRegistry()

    def add_gauge(name: str, text: str, labels: Iterable[str] = ()) -> Gauge:
        return Gauge(f"lakewright_drift_{name}", text, tuple(labels), registry=registry)

    resources = add_gauge("resources", "Resources with drift that no rule ignores, by kind.", (*_STACK_LABELS, "kind"))
    ignored = add_gauge("ignored_resources", "Resources whose drift is ignored by rules.", _STACK_LABELS)
    problems = add_gauge("problems", "Problems because of which something could not be checked.", _STACK_LABELS)
    success = add_gauge(
        "last_success_timestamp_seconds",
        "When the stack was last checked completely, in seconds since 1970.",
        _STACK_LABELS,
    )
    add_gauge("duration_seconds", "Duration of the last check, in seconds.").set(check.duration)
    failed = add_gauge("check_failed", "1 if the last check gave no report, or could not check the whole fleet.")
    failed.set(0 if check.report and not check.report.problems else 1)
    stacks = {list_labels(stack): stack for stack in check.stacks}
    for labels, stack in stacks.items():
        counts = Counter({kind: len({*names}) for kind, names in _group_names_by_kind(stack).items()})
        for kind in (*KINDS, *sorted(set(counts) - set(KINDS))):
            resources.labels(*labels, kind).set(counts[kind])
        ignored.labels(*labels).set(len({(difference.type, difference.resource) for difference in stack.ignored}))
        problems.labels(*labels).set(len(stack.problems))
    for labels in stacks or earlier:
        is_checked = labels in stacks and not stacks[labels].unchecked
        time = check.ended if is_checked else earlier.get(labels)
        if time is not None:
            success.labels(*labels).set(time)
    return registry


def parse_last_successes(exposition: str, grouping: Mapping[str, str] | None = None) -> dict[StackLabels, float]:
    """Return the times of the last success in a text of Prometheus; empty for another text.

    Args:
        exposition: Text in Prometheus's format, of a file or of a pushgateway.
        grouping: Labels that the series must have, which a pushgateway adds.
    """
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - slow to load

    successes: dict[StackLabels, float] = {}
    try:
        for family in text_string_to_metric_families(exposition):
            for sample in family.samples if family.name == LAST_SUCCESS else ():
                if all(sample.labels.get(name) == value for name, value in (grouping or {}).items()):
                    tenant, stack, environment = (sample.labels.get(name, "") for name in _STACK_LABELS)
                    successes[tenant, stack, environment] = float(sample.value)
    except ValueError:
        return {}
    return successes


def list_labels(stack: StackDriftReport) -> StackLabels:
    """Return the labels of a stack."""
    return (stack.tenant, stack.stack, stack.environment)


def _group_names_by_kind(stack: StackDriftReport) -> dict[str, list[tuple[str, str]]]:
    names_by_kind: dict[str, list[tuple[str, str]]] = {}
    for difference in (*stack.active_differences, *stack.unreachable):
        names_by_kind.setdefault(difference.kind, []).append((difference.type, difference.resource))
    return names_by_kind


def write_textfile(check: DriftCheck, file: Path) -> None:
    """Write the gauges of a check to a file, which may have the gauges of an earlier check.

    Raises the errors of `write_registry`.
    """
    try:
        earlier = file.read_text(encoding="utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise PublishError(f"textfile {file}: expected a file that can be written ({error})") from None
    write_registry(make_gauges(check, parse_last_successes(earlier)), file)


def check_textfile(file: Path) -> None:
    """Raise SettingError if the collector would not read a file of that name."""
    if file.suffix != ".prom":
        raise SettingError(f"textfile {file}: expected a name that ends in .prom, as node_exporter reads no other")


def write_registry(registry: CollectorRegistry, file: Path) -> None:
    """Write gauges to a file, which is replaced at once, so that no reader sees a part of it.

    Raises:
        SettingError: The collector would not read a file of that name.
        PublishError: The file cannot be written.
    """
    from prometheus_client import write_to_textfile  # noqa: PLC0415 - slow to load

    check_textfile(file)
    try:
        write_to_textfile(str(file), registry)
    except OSError as error:
        raise PublishError(f"textfile {file}: expected a file that can be written ({error})") from None
