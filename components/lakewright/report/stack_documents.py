"""The documents of one command: the result of each stack in them, the age of results, and failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from lakewright_spark.times import parse_json_time

from lakewright.report.sources import ReportSource, SourceKind

RECENT = timedelta(days=1)
"""Documents within this time belong together, such as the documents of one night on parts of a fleet."""


def is_outdated(at: str, latest: str) -> bool:
    """Return whether a document of `latest` is later than a document of `at` by more than RECENT.

    A document without a time is never outdated.

    >>> is_outdated("2026-12-30T01:00:00Z", "2026-12-31T02:00:00Z")
    True
    """
    moment, latest_moment = parse_json_time(at), parse_json_time(latest)
    return moment is not None and latest_moment is not None and latest_moment - moment > RECENT


@dataclass(frozen=True)
class StackEntry:
    """The entry of a stack in one document."""

    at: str
    """Time of the document; empty if it has none."""
    entry: Mapping[str, Any]


@dataclass(frozen=True)
class CommandDocuments:
    """The documents of one command, and the failures to get one."""

    kind: SourceKind
    sources: Sequence[ReportSource]
    """The earliest first."""

    @cached_property
    def documents(self) -> list[ReportSource]:
        """Sources without an error, the earliest first."""
        return [source for source in self.sources if not source.error]

    @cached_property
    def latest_time(self) -> str:
        """Time of the latest document without an error; empty if there is none."""
        return self.documents[-1].at if self.documents else ""

    @cached_property
    def failures(self) -> list[ReportSource]:
        """Sources with an error. A document that is later by more than RECENT replaces a failed document."""
        return [source for source in self.sources if source.error and not is_outdated(source.at, self.latest_time)]

    @cached_property
    def entries(self) -> dict[str, list[StackEntry]]:
        """The entries of each stack, the earliest first."""
        entries: dict[str, list[StackEntry]] = {}
        for source in self.documents:
            for name, entry in source.stacks.items():
                entries.setdefault(name, []).append(StackEntry(source.at, entry))
        return entries

    def get_entry(self, name: str) -> Mapping[str, Any] | None:
        """Return the latest entry of a stack; None if it has none."""
        return self.entries[name][-1].entry if name in self.entries else None

    def get_time(self, name: str) -> str:
        """Return the time of the latest entry of a stack; empty if it has none."""
        return self.entries[name][-1].at if name in self.entries else ""

    def get_age_note(self, name: str) -> str:
        """Return the time of the latest entry of a stack if the page must show it: a later run failed or lacks it."""
        at = self.get_time(name)
        return at if self.failures or is_outdated(at, self.latest_time) else ""


def group_sources(sources: Iterable[ReportSource]) -> dict[SourceKind, CommandDocuments]:
    """Return the documents of each command."""
    ordered = sorted(sources, key=lambda source: source.at)
    return {kind: CommandDocuments(kind, [source for source in ordered if source.kind is kind]) for kind in SourceKind}


def find_stacks(by_kind: Mapping[SourceKind, CommandDocuments]) -> dict[str, str]:
    """Return the names of the stacks of a report, and for each since when it is missing; empty if it is not.

    A `list` that was collected for the report has all its stacks, so a stack that it lacks does not exist. A file does
    not say whether it has all stacks. A stack is then missing if no document has it that is as recent as the latest
    `list`.
    """
    listing = by_kind[SourceKind.LIST]
    collected = [source for source in listing.documents if source.is_collected]
    if collected:
        return dict.fromkeys(sorted(collected[-1].stacks), "")
    names = sorted({name for documents in by_kind.values() for name in documents.entries})
    times = {name: max(documents.get_time(name) for documents in by_kind.values()) for name in names}
    return {name: at if is_outdated(at, listing.latest_time) else "" for name, at in times.items()}
