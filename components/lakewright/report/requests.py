"""The request for a report: a project, the selected stacks, files and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.report.assembly import build_report
from lakewright.report.collection import DEFAULT_KINDS, Progress, collect_sources, read_files
from lakewright.report.sources import ReportSource, SourceKind
from lakewright.validation.documents import as_list, as_mapping

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import Selection


@dataclass(frozen=True)
class ReportRequest:
    """A report that a user asked for."""

    project: PulumiProject
    selection: Selection
    files: Sequence[Path] = ()
    """Files and folders with the JSON of commands."""
    collect: Sequence[SourceKind] | None = None
    """Commands to run. Default: DEFAULT_KINDS, or none if there are files."""

    @property
    def kinds(self) -> list[SourceKind]:
        """The commands that run, in the order of the page."""
        selected_kinds = self.collect if self.collect else () if self.files else DEFAULT_KINDS
        return [kind for kind in SourceKind if kind in selected_kinds]

    def collect_sources(self, kinds: Sequence[SourceKind], progress: Progress) -> list[ReportSource]:
        """Run some commands, and return their documents."""
        options = [
            *(word for pattern in self.selection.patterns for word in ("--stack", pattern)),
            *(word for name, value in self.selection.labels.items() for word in ("--label", f"{name}={value}")),
        ]
        return collect_sources(kinds, options or ["--all"], self.project.root, progress)

    def read_files(self) -> list[ReportSource]:
        """Return the documents in the files, limited to the selected stacks if a filter names them."""
        if not self.files:
            return []
        sources = read_files(self.files)
        if not self.selection.is_filter:
            return sources
        from lakewright.fleet.selection import select  # noqa: PLC0415 - reads all stack files

        names = {stack.name for stack in select(self.project, self.selection)}
        return [_limit_stacks(source, names) for source in sources]

    def build(self, progress: Progress) -> dict[str, Any]:
        """Return the model of the report."""
        return self.build_model([*self.read_files(), *self.collect_sources(self.kinds, progress)])

    def build_model(self, sources: Sequence[ReportSource]) -> dict[str, Any]:
        """Return the model of a report on sources."""
        return build_report(sources, now=datetime.now(UTC), title=self.project.name)


def _limit_stacks(source: ReportSource, names: set[str]) -> ReportSource:
    """Return a source with the entries of some stacks.

    A cause of drift that also concerns another stack is left out: its text counts all tenants and may name them.
    """
    entries = [entry for name, entry in source.stacks.items() if name in names]
    groups = [
        group
        for group in as_list(source.document.get("groups"))
        if (stacks := as_list(as_mapping(group).get("stacks"))) and names.issuperset(map(str, stacks))
    ]
    return replace(source, document={**source.document, "stacks": entries, "groups": groups})
