"""The plan of a migration: tables by pattern, their bytes, the expected time, and what the target will lack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

from lakewright_spark.errors import LakewrightSparkError, MigrationError
from lakewright_spark.migration.copy import find_copy_obstacles
from lakewright_spark.migration.endpoint import (
    COPYING,
    MOVED,
    Endpoint,
    find_original_name,
    rename_copying,
    rename_moved,
)
from lakewright_spark.migration.fence import FENCE, FinishedCopy, read_fence, read_finished_copy
from lakewright_spark.migration.ledger import Entry, Method, Step
from lakewright_spark.migration.registration_rules import find_registration_obstacles
from lakewright_spark.migration.view_catalog import ViewCatalog
from lakewright_spark.pyiceberg_client.hadoop_catalog import HadoopCatalog
from lakewright_spark.pyiceberg_client.table_metadata import is_readable_only

PARALLEL = 4
"""Tables that are migrated at the same time."""
REGISTER_SECONDS = 0.16
"""Time to fence, register and compare a table, measured with 1,000 tables in the sandbox."""
COPIED_BYTES_PER_SECOND = 100_000_000
"""Copies within a store. An estimate: stores differ."""
READ_BYTES_PER_SECOND = 50_000_000
"""Rows that a full verification reads, of both tables."""
KEPT_PARTS = 20_000
"""Tables, snapshots and earlier metadata files in the metadata that a plan keeps in memory."""


@dataclass(frozen=True)
class Patterns:
    """Selection of tables by NAMESPACE.TABLE, where `*` stands for any text. No pattern selects every table."""

    texts: tuple[str, ...] = ()

    def select(self, identifier: Identifier) -> bool:
        """Return whether a table is selected.

        >>> Patterns(("sales.*",)).select(("sales", "orders")), Patterns(("sales.*",)).select(("ops", "runs"))
        (True, False)
        """
        name = ".".join(identifier)
        return not self.texts or any(fnmatchcase(name, _escape(text)) for text in self.texts)

    def select_by_ending(self, identifier: Identifier) -> bool:
        """Return whether a pattern selects a table of a finished copy on purpose: by the ending of its name.

        >>> [Patterns((text,)).select_by_ending(("sales", "orders__moved")) for text in ("sales.*", "sales.*__moved")]
        [False, True]
        """
        return any(Patterns((text,)).select(identifier) for text in self.texts if text.endswith(MOVED))


def _escape(text: str) -> str:
    """Return a pattern in which `*` alone is special, since names of results have brackets."""
    return "".join(f"[{letter}]" if letter in "?[" else letter for letter in text)


@dataclass(frozen=True)
class Plan:
    """Tables to migrate, and facts about them."""

    entries: tuple[Entry, ...]
    blocked: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tables that cannot be migrated, and why."""
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tables that do not belong to this migration, or not yet, and why."""
    losses: tuple[str, ...] = ()
    """Sentences about properties and objects that the target will not have."""
    grants: tuple[str, ...] = ()
    """Grants that the target gets at the cut-over, as text."""
    tables: Mapping[Identifier, Table] = field(default_factory=dict[Identifier, Table], repr=False)
    """Tables as they were loaded, if the source refuses to change a table that is no longer so."""

    @property
    def bytes(self) -> int:
        """Bytes of the tables' current rows."""
        return sum(entry.bytes for entry in self.entries)

    @property
    def seconds(self) -> float:
        """Expected time of the migration, with a full verification."""
        copied = sum(entry.bytes for entry in self.entries if entry.method is Method.COPY)
        working_seconds = len(self.entries) * REGISTER_SECONDS / PARALLEL
        return working_seconds + copied / COPIED_BYTES_PER_SECOND + 2 * self.bytes / READ_BYTES_PER_SECOND


def build_plan(
    source: Endpoint,
    patterns: Patterns,
    method: Method,
    choose_target: Callable[[Identifier], Endpoint | str],
    existing: Collection[Entry] = (),
) -> Plan:
    """Plan the migration of the selected tables.

    Args:
        source: The source.
        patterns: Which tables to migrate.
        method: How tables get into the target.
        choose_target: Returns the target of a table, or why the table is left out.
        existing: Entries of the ledger. Their tables are planned as they were, except undone tables.
    """
    started = {entry.identifier: entry for entry in existing if entry.step is not Step.UNDONE}
    entries: dict[Identifier, Entry] = {i: e for i, e in started.items() if patterns.select(i)}
    losses: list[str] = []
    kept_tables: dict[Identifier, Table] = {}
    kept_parts = 0
    all_tables, all_views = list(source.list_all_tables()), source.list_views()
    blocked, skipped = _sort_reserved_names(source, patterns, (*all_tables, *all_views), existing)
    tables_to_load = [i for i in all_tables if _is_new(i, patterns, started)]
    tables = _load_tables(source, tables_to_load)
    source_names = {*all_tables, *all_views}
    target_names: dict[str, set[Identifier]] = {}
    for identifier, table in tables:
        name = ".".join(identifier)
        if isinstance(table, str):
            blocked[name] = table
            continue
        target = table.describe() if isinstance(table, FinishedCopy) else choose_target(identifier)
        if isinstance(target, str):
            skipped[name] = target
            continue
        if not isinstance(table, Table):
            continue
        conflict = _find_name_conflict(identifier, source, source_names, target, target_names)
        if reason := _find_obstacle(table, method, source, target) or conflict:
            blocked[name] = reason
            continue
        entries[identifier] = measure(
            table, Entry(namespace=identifier[:-1], name=identifier[-1], warehouse=target.warehouse, method=method)
        )
        kept_parts += 1 + len(table.metadata.snapshots) + len(table.metadata.metadata_log)
        if source.refuses_stale_changes and kept_parts <= KEPT_PARTS:
            kept_tables[identifier] = table
        if method is Method.COPY and table.metadata.metadata_log:
            losses.append(f"{name}: {len(table.metadata.metadata_log)} earlier metadata files")
    for identifier in (i for i in all_views if _is_new(i, patterns, started)):
        name, target = ".".join(identifier), choose_target(identifier)
        if isinstance(target, str):
            skipped[name] = target
            continue
        losses.extend(_list_view_losses(source, target, identifier))
        if not (source.has_views and target.has_views):
            continue
        if conflict := _find_name_conflict(identifier, source, source_names, target, target_names):
            blocked[name] = conflict
        else:
            entries[identifier] = Entry(
                namespace=identifier[:-1], name=identifier[-1], warehouse=target.warehouse, method=Method.CREATE
            )
    losses.extend(_list_common_losses(source))
    ordered = tuple(entries[identifier] for identifier in sorted(entries))
    return Plan(ordered, blocked, skipped, tuple(losses), tables=kept_tables)


def measure(table: Table, entry: Entry) -> Entry:
    """Return the entry with the rows and bytes of the table's current snapshot."""
    snapshot = table.current_snapshot()
    summary = snapshot.summary if snapshot else None
    rows, size = (int(summary[key] or 0) if summary else 0 for key in ("total-records", "total-files-size"))
    return replace(entry, rows=rows, bytes=size)


def _load_tables(
    source: Endpoint, identifiers: Collection[Identifier]
) -> Iterator[tuple[Identifier, Table | FinishedCopy | str | None]]:
    """Yield for each name its table, the mark of a table that a Hadoop catalog has stopped, or why the name blocks."""

    def load(identifier: Identifier) -> Table | FinishedCopy | str | None:
        try:
            return source.find_table(identifier) or _find_stopped(source, identifier)
        except LakewrightSparkError as error:
            return str(error)

    with ThreadPoolExecutor(PARALLEL) as pool:
        yield from zip(identifiers, pool.map(load, identifiers), strict=True)


def _find_obstacle(table: Table, method: Method, source: Endpoint, target: Endpoint) -> str | None:
    if is_readable_only(table):
        return "a column has a type that PyIceberg cannot write, such as variant"
    for side in (source, target):
        if not side.can_write(table):
            return f"it has format version {table.metadata.format_version}, which PyIceberg does not write in {side}"
    fence = read_fence(table.properties)
    if fence is not None:
        return f"it belongs to migration {fence.run}, whose ledger is another file"
    if method is Method.COPY and (obstacles := find_copy_obstacles(table)):
        return f"it cannot be copied: it has {'; '.join(obstacles)}"
    if target.config.kind == "lakekeeper" and (obstacles := find_registration_obstacles(table, method)):
        return f"{target} would refuse or change it: it has {'; '.join(obstacles)}"
    return None


def _sort_reserved_names(
    source: Endpoint, patterns: Patterns, identifiers: Collection[Identifier], existing: Collection[Entry]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the selected tables and views whose names a migration would use for an object that the ledger lacks.

    Returns:
        Names that block, with reasons; and names that a finished copy or a promotion left in the source, with the
        target. Such a name blocks only if a pattern has its ending.
    """
    ledger_names = {entry.identifier for entry in existing}
    originals = {i: name for i in identifiers if patterns.select(i) and (name := find_original_name(i)) is not None}
    blocked: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for identifier, table in _load_tables(source, [i for i in originals if originals[i] not in ledger_names]):
        name = ".".join(identifier)
        try:
            mark = _find_finished_copy(_read_properties(source, identifier, table))
        except LakewrightSparkError as error:
            blocked[name] = str(error)
            continue
        if mark is None:
            blocked[name] = (
                f"expected a name without {MOVED} or {COPYING} at its end, which migrations use, and the ledger has no "
                f"{'.'.join(originals[identifier])}: rename it, use the ledger of its migration, or drop it if the "
                "original was promoted to a standby"
            )
            continue
        reason = mark.describe()
        if patterns.select_by_ending(identifier):
            blocked[name] = f"{reason}: rename it to migrate it to another warehouse"
        else:
            skipped[name] = reason
    return blocked, skipped


def _read_properties(
    source: Endpoint, identifier: Identifier, table: Table | FinishedCopy | str | None
) -> Mapping[str, str]:
    """Return the properties of a table, or of a view if the source has no table of the name.

    Raises:
        LakewrightSparkError: The table or view cannot be read.
    """
    if isinstance(table, Table):
        return table.properties
    if isinstance(table, str):
        raise MigrationError(table)
    view = ViewCatalog(source).find(identifier) if table is None and source.has_views else None
    return view.properties if view else {}


def _find_finished_copy(properties: Mapping[str, str]) -> FinishedCopy | None:
    """Return the mark of a finished copy or a promotion. A fence shows that a later migration has the table."""
    return None if FENCE in properties else read_finished_copy(properties)


def _find_stopped(source: Endpoint, identifier: Identifier) -> FinishedCopy | str | None:
    """Return why a table of a Hadoop catalog has neither readers nor writers. Such a table keeps its name."""
    if not isinstance(source.catalog, HadoopCatalog):
        return None
    stopped = source.mover.load_stopped(identifier)
    if stopped is None:
        return None
    if mark := read_finished_copy(stopped.properties):
        return mark
    if fence := read_fence(stopped.properties):
        return (
            f"migration {fence.run} has stopped it: finish or undo it with its ledger. If an earlier version finished "
            "it, select the other tables"
        )
    return "the promotion of a standby has stopped it: run `standby promote` again"


def _is_new(identifier: Identifier, patterns: Patterns, started: Collection[Identifier]) -> bool:
    return patterns.select(identifier) and identifier not in started and find_original_name(identifier) is None


def _find_name_conflict(
    identifier: Identifier,
    source: Endpoint,
    source_names: Collection[Identifier],
    target: Endpoint,
    target_names: dict[str, set[Identifier]],
) -> str | None:
    """Return which name that the migration needs is taken; None without such a name. Targets are listed once."""
    if target.warehouse not in target_names:
        target_names[target.warehouse] = {*target.list_all_tables(), *target.list_views()}
    moved = rename_moved(identifier)
    if identifier in target_names[target.warehouse]:
        return f"{target} has a table or view of this name"
    if moved in source_names:
        return f"{source} has a table or view named {'.'.join(moved)}: rename or drop it"
    for name in (moved, rename_copying(identifier)):
        if name in target_names[target.warehouse]:
            return f"{target} has a table or view named {'.'.join(name)}"
    return None


def _list_view_losses(source: Endpoint, target: Endpoint, identifier: Identifier) -> Iterator[str]:
    for side in (source, target):
        if not side.has_views:
            yield f"{'.'.join(identifier)}: a view, which is not migrated: views of {side} cannot be read and written"
            return
    yield from ViewCatalog(source).list_losses(identifier)


def _list_common_losses(source: Endpoint) -> Iterator[str]:
    if not source.lists_views:
        yield f"views of {source} cannot be listed, and are not migrated: the server does not support it"
    if isinstance(source.catalog, HadoopCatalog):
        yield (
            "before the cut-over, `DROP TABLE` in a Hadoop catalog deletes the table's folder in spite of the fence: "
            "drop no tables in the source"
        )
