"""Publish a check to all requested targets, even if a target fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakewright.ci.errors import PublishError, SettingError
from lakewright.ci.publishing.check import DriftCheck
from lakewright.ci.publishing.cluster import DriftEvents, EventSource
from lakewright.ci.publishing.gauges import write_textfile
from lakewright.ci.publishing.pushgateway import Pushgateway, read_credentials
from lakewright.terminal.escaping import escape_line

_LABEL = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)=(.*)", re.DOTALL)
_OBJECT = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_PLACE = re.compile(rf"(?P<namespace>{_OBJECT})/(?P<cron_job>{_OBJECT})")


@dataclass(frozen=True)
class Targets:
    """The targets of gauges and Events."""

    textfile: Path | None = None
    pushgateway: str | None = None
    grouping: Mapping[str, str] | None = None
    events: EventSource | None = None


def publish_check(check: DriftCheck, targets: Targets, environ: Mapping[str, str]) -> None:
    """Publish a check.

    Raises:
        SettingError: There is no target, or a target is malformed.
        PublishError: A target failed; all others have the check.
    """
    calls: list[Callable[[], object]] = []
    if file := targets.textfile:
        calls.append(lambda: write_textfile(check, file))
    if targets.pushgateway:
        gateway = Pushgateway(targets.pushgateway, targets.grouping or {}, read_credentials(environ))
        calls.append(lambda: gateway.push(check))
    if source := targets.events:
        calls.append(lambda: DriftEvents(source).publish(check))
    if not calls:
        raise SettingError("expected --textfile, --pushgateway or --events, found none of them")
    failures: list[PublishError] = []
    for call in calls:
        try:
            call()
        except PublishError as error:
            failures.append(error)
    for failure in failures[1:]:
        print(f"error: {escape_line(failure)}", file=sys.stderr)
    if failures:
        raise failures[0]


def parse_grouping(texts: Sequence[str]) -> dict[str, str]:
    """Return the labels of `NAME=VALUE`. Raises SettingError."""
    labels: dict[str, str] = {}
    for text in texts:
        match = _LABEL.fullmatch(text)
        if match is None or match[1] == "job":
            raise SettingError(
                f"--grouping: expected NAME=VALUE with the name of a label other than `job`, found {text!r}"
            )
        labels[match[1]] = match[2]
    return labels


def parse_event_source(events: str | None, memory: str | None, environ: Mapping[str, str]) -> EventSource | None:
    """Return the CronJob of `NAMESPACE/CRONJOB`. The pod's host name is the reporting instance. Raises SettingError."""
    if events is None:
        if memory is not None:
            raise SettingError("--memory: expected with --events only")
        return None
    match = _PLACE.fullmatch(events)
    if match is None:
        raise SettingError(f"--events: expected NAMESPACE/CRONJOB, found {events!r}")
    return EventSource(match["namespace"], match["cron_job"], memory or "", environ.get("HOSTNAME", ""))
