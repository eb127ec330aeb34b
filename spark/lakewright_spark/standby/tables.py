"""One table of a standby: copy its last changes, or promote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import uuid5

from pyiceberg.table import Table

from lakewright_spark.errors import LakewrightSparkError, MigrationError, StandbyError
from lakewright_spark.migration.copy import (
    LOCATION_PROPERTIES,
    copy_table,
    find_copy_obstacles,
    list_copied_files,
    name_metadata,
)
from lakewright_spark.migration.copy_stores import CopyStore
from lakewright_spark.migration.fence import FINISHED, describe_holder, release
from lakewright_spark.migration.verify import Depth, find_snapshot, verify
from lakewright_spark.pyiceberg_client.table_metadata import is_readable_only
from lakewright_spark.standby.mark import OWN_PROPERTIES, StandbyMark, build_mark, read_mark
from lakewright_spark.standby.standby_object import StandbyObject

_DIFFERENT = (*OWN_PROPERTIES, *LOCATION_PROPERTIES)
"""Properties that may differ between a table and its copy."""
UNCHANGED = "unchanged"
"""Result of a copy that had nothing to do, and that compared nothing."""
CLOCK_DIFFERENCE_MS = 60_000
"""Clocks of writers differ by less, as Iceberg assumes."""


class CopyResult(NamedTuple):
    """A table that the standby has in the source's current state."""

    compared: str
    """The parts that were compared; "unchanged" if the standby lacked nothing and nothing was compared."""
    copied_at: datetime


@dataclass(frozen=True)
class StandbyTable(StandbyObject):
    """A table in the source, and its copy in the standby."""

    kind = "table"

    def copy(self, store: CopyStore, depth: Depth, now: datetime) -> CopyResult:
        """Copy what the standby lacks of the source's current state.

        Files that neither this state nor the state before needs are deleted from the standby, so that readers of the
        state before can end.

        Raises:
            StandbyError: The table in the standby is no copy of the source, or has commits of other writers.
            MigrationError: The table cannot be copied, or its copy differs.
        """
        source_table = self._load_source()
        try:
            return self._copy_state(source_table, store, depth, now)
        except MigrationError:
            newer_table = self._load_source()
            if newer_table.metadata_location == source_table.metadata_location:
                raise
            # The source may have deleted files of the state before.
            return self._copy_state(newer_table, store, depth, now)

    def promote(self, store: CopyStore, now: datetime) -> StandbyMark:
        """Stop the source's writers, copy their last commits, and let the standby have writers. Return its mark.

        Raises:
            StandbyError: The table in the standby is no copy of the source.
            MigrationError: The table cannot be copied. The source's writers continue.
        """
        if mark := self.find_promotion():
            return mark
        source_table = self._require_source().find_table(self.identifier)
        compared_snapshot, is_stopped = None, source_table is None
        if source_table is None:
            self._check_without_holder(self._load_stopped().properties)
        else:
            if FINISHED in source_table.properties:  # its owner gave it another name since
                self._require_source().change_properties(source_table, lambda _: ({}, (FINISHED,)))
            # Most files, while the writers continue.
            self._compare_unchanged(source_table, self._copy_state(source_table, store, Depth.METADATA, now))
            compared_snapshot = find_snapshot(source_table)
            self.check_claim()
        try:
            if source_table is not None:
                self._require_source().mover.stop_writers(self.identifier)
                is_stopped = True
            stopped = self._load_stopped()
            # Files of earlier states are left to the maintenance of the promoted table: the writers wait.
            result = self._advance(self.find_copy(), stopped, store, Depth.METADATA, now, since=compared_snapshot)
            if source_table is None:
                self._compare_unchanged(stopped, result)
            return self._release(now)
        except BaseException as error:
            # Without the claim, another process may promote the table: the source must remain as it is.
            if self.has_lost_claim(error) or not self._resume_writers(is_stopped=is_stopped):
                raise self._describe_moved(error) from None
            raise

    def _resume_writers(self, *, is_stopped: bool) -> bool:
        """Let the source's writers continue unless the standby has the table. Return whether that is certain.

        Args:
            is_stopped: Whether a promotion has stopped them. Otherwise, a migration may have done it in this moment.
        """
        source = self._require_source()
        try:
            stopped = None if source.find_table(self.identifier) else source.mover.load_stopped(self.identifier)
            is_free = stopped is not None and (is_stopped or describe_holder(stopped.properties) is None)
            if is_free and self.find_promotion() is None:
                source.mover.resume_writers(self.identifier)
        except Exception:  # noqa: BLE001  # any error: the first error is reported
            return False
        return True

    def _find_stopped_properties(self) -> Mapping[str, str] | None:
        stopped = self._require_source().mover.load_stopped(self.identifier)
        return None if stopped is None else stopped.properties

    def _mark_source(self, properties: dict[str, str]) -> None:
        self._require_source().mover.mark_stopped(self.identifier, properties)

    def _compare_unchanged(self, source_table: Table, result: CopyResult) -> None:
        """Compare a state that the standby had already: a run that was killed may not have compared it."""
        if result.compared == UNCHANGED:
            verify(source_table, self.require_copy()[0], Depth.METADATA, _DIFFERENT)

    def find_copy(self) -> tuple[Table, StandbyMark] | None:
        """Return the table in the standby and its mark; None if the standby has no table of the name.

        Raises:
            StandbyError: The table is no copy of the source.
        """
        table = self.standby.find_table(self.identifier)
        if table is None:
            return None
        mark = read_mark(table.properties)
        if mark is None or mark.source != self.source_name:
            owner = f"a copy of {mark.source}" if mark else "a table that is no standby"
            raise StandbyError(f"{self}: expected a copy of {self.source_name} in {self.standby}, found {owner}")
        return table, mark

    def is_written(self, table: Table, mark: StandbyMark) -> bool:
        """Return whether other writers have changed the table in the standby since its last copy."""
        return table.metadata_location != name_metadata(mark.metadata, table.metadata.location)

    def _copy_state(self, source_table: Table, store: CopyStore, depth: Depth, now: datetime) -> CopyResult:
        """Copy what the standby lacks, and delete files that it no longer needs."""
        before = self.find_copy()
        result = self._advance(before, source_table, store, depth, now)
        if before is None or before[1].metadata != source_table.metadata_location:
            table, _ = self.require_copy()
            states = {table.metadata_location, *([before[0].metadata_location] if before else [])}
            self._delete_old_files(table.metadata.location, states, store)
        return result

    def _advance(
        self,
        copy: tuple[Table, StandbyMark] | None,
        source_table: Table,
        store: CopyStore,
        depth: Depth,
        now: datetime,
        *,
        since: int | None = None,
    ) -> CopyResult:
        """Copy what the standby lacks. With `since`, only files of snapshots after this snapshot are compared."""
        if copy is None:
            self.standby.create_namespace(self.identifier[:-1])
            location, replaced = self._choose_location(source_table), None
        else:
            table, mark = copy
            self._check_unwritten(table, mark)
            if mark.metadata == source_table.metadata_location:
                self.standby.protect(table, is_protected=True)  # an earlier run may have been killed
                is_compared = depth is not Depth.METADATA
                compared = verify(source_table, table, depth, _DIFFERENT) if is_compared else UNCHANGED
                return CopyResult(compared, mark.copied_at)
            self._check_successor(source_table, table)
            location, replaced = table.metadata.location, table
        self._check_source(source_table)
        properties = build_mark(self.source_name, source_table.metadata_location, source_table.properties, now)
        metadata_location = copy_table(source_table, location, store, properties)
        self.check_claim()
        if replaced is None:
            new_table = self.standby.register(self.identifier, metadata_location)
        else:
            self.standby.repoint(replaced, self.identifier, metadata_location)
            new_table = self.require_copy()[0]
        self.standby.protect(new_table, is_protected=True)
        try:
            compared = verify(source_table, new_table, depth, _DIFFERENT, since)
        except LakewrightSparkError:
            self._withdraw(new_table, replaced)
            raise
        return CopyResult(compared, now)

    def _delete_old_files(self, location: str, metadata_locations: set[str], store: CopyStore) -> None:
        existing = store.list_files(location).keys()
        needed = set[str]().union(*(list_copied_files(path, store) for path in metadata_locations))
        self.check_claim()
        old_files = existing - needed
        lists = {path for path in old_files if path.endswith(".metadata.json") or "/snap-" in path}
        manifests = {path for path in old_files - lists if path.endswith(".avro")}
        # A list that remains after a kill has its manifests, and a manifest has its files.
        for paths in (lists, manifests, old_files - lists - manifests):
            store.delete(paths)

    def _choose_location(self, source_table: Table) -> str:
        """Return the same location at each call, so that a killed copy is continued.

        A table that is copied back does not get its earlier location, whose files may be about to be deleted.
        """
        suggested_location = self.standby.choose_location(self.identifier, source_table.schema())
        folder = uuid5(source_table.metadata.table_uuid, source_table.metadata.location)
        return f"{suggested_location.rstrip('/').rpartition('/')[0]}/{folder}"

    def _check_source(self, table: Table) -> None:
        self._check_without_fence(table.properties)
        obstacles = find_copy_obstacles(table)
        if is_readable_only(table):
            obstacles.append("a type that PyIceberg cannot write, such as variant")
        if not self.standby.can_write(table):
            obstacles.append(
                f"format version {table.metadata.format_version}, which catalogs in a database do not write"
            )
        if obstacles:
            raise StandbyError(f"{self}: it cannot be copied: it has {'; '.join(obstacles)}")

    def _check_successor(self, source_table: Table, table: Table) -> None:
        """Raise StandbyError unless the source's state is a later state of the table that was copied."""
        if source_table.metadata.table_uuid != table.metadata.table_uuid:
            raise StandbyError(
                f"{self}: {self.source_name} has another table of this name. The copy was not changed. Promote it with "
                "--source-lost, or drop it and copy the new table"
            )
        source, copy = source_table.metadata, table.metadata
        # Format version 1 has no sequence numbers.
        numbers = [int(getattr(metadata, "last_sequence_number", 0)) for metadata in (source, copy)]
        is_older = numbers[0] < numbers[1]
        if is_older or source.last_updated_ms < copy.last_updated_ms - CLOCK_DIFFERENCE_MS:
            raise StandbyError(
                f"{self}: {self.source_name} has an older state than the copy, as after a restore from a backup. The "
                "copy was not changed. Promote it with --source-lost, or drop it and copy again"
            )

    def _check_unwritten(self, table: Table, mark: StandbyMark) -> None:
        if mark.promoted_at:
            raise StandbyError(
                f"{self}: {self.standby} was promoted and is no longer a standby; copy in the other direction"
            )
        if self.is_written(table, mark):
            raise StandbyError(
                f"{self}: {self.standby} has commits of other writers. Nothing was changed. Promote the table with "
                "--source-lost, which gives up later commits of the source, or drop it without its files and copy it "
                "again"
            )

    def _withdraw(self, new_table: Table, replaced: Table | None) -> None:
        """Let the standby have the state before, since the new state differs from the source."""
        if replaced is None:
            self.standby.drop(self.identifier)
        else:
            self.standby.repoint(new_table, self.identifier, replaced.metadata_location)

    def _load_stopped(self) -> Table:
        stopped = self._require_source().mover.load_stopped(self.identifier)
        if stopped is None:
            raise StandbyError(
                f"{self}: expected the table in {self.source_name}, found none. Use --source-lost to promote its copy, "
                "or drop the copy if a migration has the table"
            )
        return stopped

    def _load_source(self) -> Table:
        table = self._require_source().find_table(self.identifier)
        if table is None:
            raise StandbyError(f"{self}: expected the table in {self.source_name}, found none")
        return table

    def require_copy(self) -> tuple[Table, StandbyMark]:
        """Return the table in the standby and its mark.

        Raises:
            StandbyError: The standby has no table of the name, or the table is no copy of the source.
        """
        copy = self.find_copy()
        if copy is None:
            raise StandbyError(f"{self}: expected the table in {self.standby}, found none")
        return copy

    def _release(self, now: datetime) -> StandbyMark:
        self.check_claim()
        table, mark = self.require_copy()
        values, removed = release(mark.previous)
        promoted = replace(mark, promoted_at=now)
        self.standby.change_properties(table, lambda _: ({**values, **promoted.to_property()}, removed))
        self.standby.protect(table, is_protected=False)
        return promoted
