"""Coverage: the share of the objects on servers that stacks manage, by kind. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lakewright.discovery.listing.managed_objects import (
    ManagedObjects,
    ObjectKey,
    grant_key,
    inside_key,
    project_key,
    server_key,
)
from lakewright.discovery.listing.project_objects import FoundGrant, ProjectObjects
from lakewright.lakekeeper.api.connection.privileges import OWNERS
from lakewright.terminal.escaping import escape_line
from lakewright.terminal.text_lines import format_table

KINDS = (
    "project",
    "warehouse",
    "namespace",
    "table",
    "role",
    "grant",
    "bucket",
    "aws role",
    "kubernetes namespace",
)
"""Kinds of objects that count, in the order of reports. Views and generic tables count as tables."""


@dataclass(frozen=True)
class SurveyedObject:
    """An object that exists."""

    kind: str
    place: str
    """Server, account or cluster."""
    name: str
    key: ObjectKey


@dataclass(frozen=True)
class KindCoverage:
    """Objects of one kind."""

    managed: int = 0
    total: int = 0

    @property
    def percentage(self) -> float | None:
        """Share of managed objects in percent, rounded down to a tenth; None if there are no objects."""
        return None if not self.total else (self.managed * 1000 // self.total) / 10

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return {"managed": self.managed, "all": self.total, "percentage": self.percentage}


@dataclass(frozen=True)
class Coverage:
    """The share of the objects in scope that stacks manage."""

    kinds: Mapping[str, KindCoverage] = field(default_factory=dict[str, KindCoverage])
    unmanaged: tuple[SurveyedObject, ...] = ()
    problems: tuple[str, ...] = ()
    """Kinds that could not be listed, so that the numbers are too low."""

    @property
    def total(self) -> KindCoverage:
        """Objects of all kinds together."""
        return KindCoverage(
            sum(kind.managed for kind in self.kinds.values()), sum(kind.total for kind in self.kinds.values())
        )

    @property
    def exit_code(self) -> int:
        """1 if anything could not be listed, else 0."""
        return 1 if self.problems else 0

    def to_json(self) -> dict[str, Any]:
        """Return the coverage as JSON."""
        return {
            "version": 1,
            "coverage": {"total": self.total.to_json()}
            | {"kinds": {kind: counts.to_json() for kind, counts in self.kinds.items()}},
            "unmanaged": [
                {key: value for key, value in asdict(entry).items() if key != "key"} for entry in self.unmanaged
            ],
            "problems": list(self.problems),
            "exit": self.exit_code,
        }


def measure_coverage(
    objects: Iterable[SurveyedObject], managed: ManagedObjects, problems: Iterable[str] = ()
) -> Coverage:
    """Return the coverage of objects by the stacks that manage some of them."""
    unique = {(entry.kind, entry.key): entry for entry in objects}
    counts = {kind: [0, 0] for kind in KINDS}
    unmanaged: list[SurveyedObject] = []
    for entry in unique.values():
        count = counts[entry.kind]
        count[1] += 1
        if managed.has(entry.kind, entry.key):
            count[0] += 1
        else:
            unmanaged.append(entry)
    order = {kind: position for position, kind in enumerate(KINDS)}
    unmanaged.sort(key=lambda entry: (entry.place, order[entry.kind], entry.name))
    kinds = {kind: KindCoverage(*count) for kind, count in counts.items() if count[1]}
    return Coverage(kinds, tuple(unmanaged), tuple(dict.fromkeys(problems)))


def list_project_objects(project: ProjectObjects) -> Iterator[SurveyedObject]:
    """Yield the objects of a project. Ownership that the server grants to creators does not count as an object."""
    endpoint, server = project.server.endpoint, server_key(project.server.endpoint)
    project_id = project.project_id
    label = project.name if project.name == project_id else f"{project.name} ({project_id})"
    yield SurveyedObject("project", endpoint, label, project_key(server, project_id))
    for warehouse in project.warehouses:
        name = f"{project_id}/{warehouse.name}"
        yield SurveyedObject("warehouse", endpoint, name, (server, warehouse.warehouse_id))
        for namespace in warehouse.namespaces:
            key = inside_key(server, warehouse.warehouse_id, namespace.path)
            yield SurveyedObject("namespace", endpoint, f"{name}.{namespace.name}", key)
        for tabular in warehouse.tabulars:
            if not tabular.dropped:
                key = inside_key(server, warehouse.warehouse_id, (*tabular.namespace, tabular.name))
                yield SurveyedObject("table", endpoint, f"{name}.{tabular}", key)
    for role_id, role in project.roles.items():
        yield SurveyedObject("role", endpoint, f"{project_id}/{role['name']}", (server, role_id))
    for grant in project.grants:
        if not is_made_by_server(grant, project.identity):
            yield SurveyedObject(
                "grant", endpoint, f"{project_id}: {_format_grant(project, grant)}", key_of_grant(server, grant)
            )


def key_of_grant(server: str, grant: FoundGrant) -> ObjectKey:
    """Return the key of a grant."""
    top = grant.on.project_id if grant.on.kind == "project" else grant.on.warehouse_id
    return grant_key(server, grant.on.kind, (str(top), *grant.inside), grant.entry)


def is_made_by_server(grant: FoundGrant, identity: str | None) -> bool:
    """Return whether the server makes such a grant for the creator of an object.

    Ownership of namespaces and tables follows from who makes them. An owner of a project or warehouse is reported
    unless it is the identity that reads.
    """
    if grant.entry.kind != "user" or grant.entry.privilege not in OWNERS[grant.on.kind]:
        return False
    return grant.on.kind not in {"project", "warehouse"} or grant.entry.principal == identity


def _format_grant(project: ProjectObjects, grant: FoundGrant) -> str:
    entry = grant.entry
    name = project.role_name(entry.principal) if entry.kind == "role" else None
    return f"{entry.privilege} of {entry.kind} {name or entry.principal} on {grant.target}"


def format_coverage(coverage: Coverage) -> str:
    """Return the coverage as text: the unmanaged objects, then a table by kind."""
    rows = [[kind, *_format_cells(counts)] for kind, counts in coverage.kinds.items()] + [
        ["total", *_format_cells(coverage.total)]
    ]
    lines = [escape_line(f"{entry.place}: {entry.kind} {entry.name}") for entry in coverage.unmanaged]
    table = format_table(["kind", "managed", "all", "coverage"], rows)
    return "\n".join([*lines, *([""] if lines else []), *table])


def _format_cells(counts: KindCoverage) -> list[str]:
    share = counts.percentage
    return [str(counts.managed), str(counts.total), "-" if share is None else f"{share:.1f} %"]
