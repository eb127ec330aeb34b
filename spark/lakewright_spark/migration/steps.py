"""The steps of one table: fence, register, verify, cut over, and then undo or finish. Each can be repeated."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.typedef import EMPTY_DICT

from lakewright_spark.errors import LakewrightSparkError, MigrationError
from lakewright_spark.migration.copy import LOCATION_PROPERTIES, copy_table
from lakewright_spark.migration.copy_stores import CopyStore
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.fence import (
    FINISHED,
    FinishedCopy,
    build_fence,
    read_fence,
    refuse_taken,
    remove_fence,
)
from lakewright_spark.migration.hand_over import forget_owner, record_owner
from lakewright_spark.migration.ledger import Entry, Ledger, Method, Step
from lakewright_spark.migration.verify import Depth, find_snapshot, list_later_snapshots, verify
from lakewright_spark.pyiceberg_client.hadoop_catalog import HadoopCatalog
from lakewright_spark.pyiceberg_client.table_metadata import is_readable_only


@dataclass
class TableMigration:
    """The migration of one table between two catalogs."""

    source: Endpoint
    target: Endpoint
    ledger: Ledger
    entry: Entry
    store: CopyStore | None = None
    """Copies files. Needed for tables of method `copy`."""
    loaded_table: Table | None = None
    """The source's table as the plan loaded it."""

    def register(self, depth: Depth) -> None:
        """Fence the table in the source, register it in the target and compare both.

        A table that other writers have changed since an earlier call gets its current metadata in the target.
        """
        source_table = self.loaded_table or self._require_source()
        self._fence(source_table)
        self.entry = replace(self.entry, step=Step.FENCED)  # written with the registration
        self.target.create_namespace(self.entry.namespace)
        location = self._prepare(source_table)
        target_table = self._point_target(location)
        self.entry = replace(self.entry, step=Step.REGISTERED)  # written with the comparison's end
        try:
            compared = verify(source_table, target_table, depth, self._own_properties)
        except LakewrightSparkError:
            self._record(Step.REGISTERED, verified_snapshot=None)
            raise
        self._record(Step.VERIFIED, verified=compared, verified_snapshot=find_snapshot(source_table))

    def cut_over(self, depth: Depth) -> None:
        """Take the table from the source's writers, give the target the last state, and leave the target writable.

        Writers of the source fail from then on, and can write to the target as soon as this returns. Most commits since
        the last comparison are copied, registered and compared while the writers continue.

        Args:
            depth: How many rows of files are read that were added since the last comparison.
        """
        identifier, mover = self.entry.identifier, self.source.mover
        source_table = self.source.find_table(identifier)
        if source_table is not None:
            self._check_fence(source_table)
            target_table = self._point_target(self._prepare(source_table))
            self._compare(source_table, target_table, depth)
            self._record_owner(target_table)
        else:
            self._load_stopped()  # the table of a run that was killed; another table remains as it is
        stopped_at = time.monotonic()
        location = None
        try:
            if source_table is not None:
                mover.stop_writers(identifier)
            stopped = self._load_stopped()
            location = self._prepare(stopped)
            if not self._is_continued(location):
                self._point_target(location)
                self._check_unchanged(stopped)
            target_table = self._require_target()
            self._compare(stopped, _load_state(target_table, location), self._limit_depth(stopped, depth))
            self._record_owner(target_table)  # an earlier version may have stopped the writers
        except BaseException:
            with suppress(Exception):
                if not self._has_moved_writers(location, was_stopped=source_table is None):
                    mover.resume_writers(identifier)
            raise
        seconds = round(time.monotonic() - stopped_at, 3)
        self._record(Step.CUT_OVER, stopped_seconds=None if source_table is None else seconds)

    def _compare(self, source_table: Table, target_table: Table, depth: Depth) -> None:
        """Compare the files that were added since the last comparison."""
        snapshot = find_snapshot(source_table)
        compared = verify(source_table, target_table, depth, self._own_properties, self.entry.verified_snapshot)
        changes = (
            {}
            if snapshot == self.entry.verified_snapshot
            else {"verified": f"{self.entry.verified}; since then {compared}"}
        )
        self.entry = replace(self.entry, verified_snapshot=snapshot, **changes)  # written with the step's end

    def _load_stopped(self) -> Table:
        stopped = self.source.mover.load_stopped(self.entry.identifier)
        if stopped is None:
            raise MigrationError(f"{self.entry}: expected the table in {self.source}, found none")
        self._check_fence(stopped)
        return stopped

    def _has_moved_writers(self, location: str | None, *, was_stopped: bool) -> bool:
        """Return whether writers may have continued in the target, so that the source's writers must wait.

        Args:
            location: The metadata file of the source's last state, for the target; None if it is not known.
            was_stopped: Whether an earlier run had stopped the source's writers. That run may have moved them.
        """
        try:
            if was_stopped:
                return self._has_writes()
            return location is not None and self._is_continued(location)
        except Exception:  # noqa: BLE001  # any error: no writer has moved, unless an earlier run moved the writers
            return was_stopped

    def _check_unchanged(self, stopped: Table) -> None:
        """Raise MigrationError if a writer changed a stopped table, as in a store that ignores `If-None-Match`."""
        if self._load_stopped().metadata_location != stopped.metadata_location:
            raise MigrationError(
                f"{self.entry}: another writer changed the table in {self.source} after its writers were stopped. Stop "
                "its writers, and run --cut-over again"
            )

    def _limit_depth(self, stopped: Table, depth: Depth) -> Depth:
        """Return a depth that reads no rows if all rows of a stopped table would be read."""
        since = self.entry.verified_snapshot
        has_all_files = since is None or list_later_snapshots(stopped, since) is None
        return Depth.METADATA if has_all_files else depth

    @property
    def _own_properties(self) -> Collection[str]:
        """Properties that a copy has with other values."""
        return LOCATION_PROPERTIES if self.entry.method is Method.COPY else ()

    def undo(self) -> None:
        """Give the table back to the source, with all commits that the target got since the cut-over."""
        identifier, source_mover, target_mover = self.entry.identifier, self.source.mover, self.target.mover
        if (stopped := source_mover.load_stopped(identifier)) is not None:
            refuse_taken(str(self.entry), stopped.properties, self.ledger.run)
            if (target_table := self.target.find_table(identifier)) is not None:
                self._check_fence(target_table)
                self._check_copy_unwritten(target_table)
            else:
                self._check_target_has_table(stopped)
            try:
                if target_table is not None:
                    target_mover.stop_writers(identifier)
                self._return_commits(stopped)
                source_mover.resume_writers(identifier)
            except BaseException:
                with suppress(Exception):
                    if all(mover.load_stopped(identifier) is not None for mover in (source_mover, target_mover)):
                        target_mover.resume_writers(identifier)
                raise
        else:
            self._restore_registration()
            self._check_source_has_table()
            if (target_table := self.target.find_table(identifier)) is not None:
                self._check_fence(target_table)
                self._check_unwritten(target_table)
                self._forget_owner(target_table)
                self.target.drop(identifier)
        if (stopped_target := target_mover.load_stopped(identifier)) is not None:
            self._check_fence(stopped_target)
            self._forget_owner(stopped_target)
            target_mover.forget_stopped(identifier)
        source_table = self._require_source()
        if target_table is None and stopped_target is None:
            self._forget_owner(source_table)
        self._remove_fence(self.source, source_table)
        if FINISHED in source_table.properties:  # a finish was killed after it set this mark
            self.source.change_properties(source_table, lambda _: ({}, (FINISHED,)))
        self._record(Step.UNDONE, registered=(), verified_snapshot=None, stopped_seconds=None, previous_owner=None)

    def _restore_registration(self) -> None:
        """Register the table in the source, if an undo was killed between the drop and the registration of `repoint`.

        Only an undo gives the target's table its other name, while the source has the table under its other name.
        """
        identifier, stopped_target = self.entry.identifier, self.target.mover.load_stopped(self.entry.identifier)
        is_shared = self.entry.method is Method.REGISTER
        if is_shared and stopped_target is not None and self.source.find_table(identifier) is None:
            self._check_fence(stopped_target)
            self.source.register(identifier, stopped_target.metadata_location)

    def _return_commits(self, stopped: Table) -> None:
        """Let the source's stopped table have the commits of the target's stopped table.

        A killed cut-over stops the source's table before the target has its last state: the target has no commits of
        its own then, and the source keeps its state.

        Raises:
            MigrationError: The target's commits do not continue the source's last state, or its files are copies.
        """
        stopped_target = self.target.mover.load_stopped(self.entry.identifier)
        if stopped_target is None or not self._is_written(stopped_target):
            return
        self._check_copy_unwritten(stopped_target)
        location = stopped_target.metadata_location
        if location == stopped.metadata_location or stopped_target.metadata == stopped.metadata:
            return  # a killed undo returned them; a Hadoop catalog has a copy of the metadata file
        # A recorded cut-over compared the states, and the log of many commits does not have the file.
        if self.entry.step is not Step.CUT_OVER and not _has_earlier_state(stopped_target, stopped.metadata_location):
            raise MigrationError(
                f"{self.entry}: a killed cut-over stopped the table in {self.source}, and {self.target} has commits of "
                "other writers on an earlier state. Nothing was changed. Drop that table in the target without its "
                "files, which gives up these commits, and run --undo again"
            )
        self.source.mover.repoint_stopped(stopped, self.entry.identifier, location)

    def _check_target_has_table(self, stopped: Table) -> None:
        """Raise MigrationError if a table that is cut over has neither of its names in the target.

        The target may have commits, which the source would not get. A killed undo drops the table only after the
        source has it again. A copy whose files were deleted, too, has no commits that can be lost.
        """
        identifier = self.entry.identifier
        if self.entry.step is Step.CUT_OVER and self.target.mover.load_stopped(identifier) is None:
            location = self.entry.registered[-1]
            if self.store is not None and self.entry.method is Method.COPY and not self.store.list_files(location):
                self._add_note(f"{self.target} has lost the copy and its files: the source's state is the cut-over's")
                return
            raise MigrationError(
                f"{self.entry}: expected the table in {self.target}, found none. Nothing was changed: its commits "
                "since the cut-over would be lost. If it was renamed, or this identity may not see it, restore its "
                f"name or the rights. To give up these commits, register {location} there under its name, or "
                f"{self.source.mover.explain_resumption(identifier, stopped)}. Then run --undo again"
            )

    def _check_copy_unwritten(self, target_table: Table) -> None:
        """Raise MigrationError if a copy has commits, whose files the source does not have."""
        if self.entry.method is Method.COPY and self._is_written(target_table):
            raise MigrationError(
                f"{self.entry}: the target has commits since the cut-over, and its files are copies: the source cannot "
                "continue from them. Migrate the table back as a new migration"
            )

    def finish(self) -> None:
        """Remove the source's table without its files, then the fence. The target alone has the table from then on.

        The source keeps a copied table under its other name, with its files and a mark in place of the fence. An object
        records the files of a table in place as the target's, so that no purge of the source's warehouse deletes them.
        """
        if self.entry.step not in {Step.CUT_OVER, Step.FINISHED}:
            raise MigrationError(
                f"{self.entry}: expected a table that is cut over, found {self.entry.step.value}; "
                f"{self.entry.step.explain_cut_over()}"
            )
        identifier, mover = self.entry.identifier, self.source.mover
        target_table = self._require_target()
        if read_fence(target_table.properties) is not None:
            self._check_fence(target_table)
        self._record_owner(target_table)  # the cut-over of an earlier version may not have recorded it
        if (stopped := mover.load_stopped(identifier)) is not None:
            mark = FinishedCopy(self.ledger.run, str(self.target)).to_property()
            if isinstance(self.source.catalog, HadoopCatalog):
                mover.mark_stopped(identifier, mark)
            elif self.entry.method is Method.REGISTER:
                mover.forget_stopped(identifier)
            else:
                self._remove_fence(self.source, stopped, mark)
        self._remove_fence(self.target, target_table)
        self._record(Step.FINISHED)

    def _record_owner(self, target_table: Table) -> None:
        """Let an object name the target as owner of the files, before the source can use the name for another table."""
        if self.entry.method is Method.REGISTER:
            record_owner(target_table, self.target, self.ledger.run, self._save_previous_owner)

    def _save_previous_owner(self, document: str) -> None:
        self._record(self.entry.step, previous_owner=document)

    def _forget_owner(self, table: Table) -> None:
        """Restore the state before the object of the cut-over. A refusal does not hold up the undo."""
        previous = self.entry.previous_owner
        was_attempted = previous is not None or self.entry.step is Step.CUT_OVER  # an earlier version saved none
        if self.entry.method is not Method.REGISTER or not was_attempted:
            return
        try:
            forget_owner(table, self.ledger.run, previous or "")
        except MigrationError as error:
            self.entry = replace(self.entry, note=str(error))  # written with the step's end

    def _fence(self, table: Table) -> None:
        fence = read_fence(table.properties)
        if fence is not None:
            self._check_fence(table)
            self.source.protect(table, is_protected=True)
            return
        if is_readable_only(table):
            raise MigrationError(
                f"{self.entry}: expected column types that PyIceberg can write, found a type such as variant"
            )
        was_protected = self.source.is_protected(table)
        now = datetime.now(UTC)
        self.source.change_properties(
            table, lambda old: (build_fence(old, self.ledger.run, now, was_protected=was_protected), (FINISHED,))
        )
        self.source.protect(table, is_protected=True)

    def _remove_fence(self, endpoint: Endpoint, table: Table, mark: Mapping[str, str] = EMPTY_DICT) -> None:
        fence = read_fence(table.properties)
        if fence is None:
            return
        self._check_fence(table)
        if not fence.was_protected:
            self._release(endpoint, table)
        values, removed = remove_fence(fence)
        endpoint.change_properties(table, lambda _: ({**values, **mark}, removed))

    def _release(self, endpoint: Endpoint, table: Table) -> None:
        """Remove the protection of a table, or note that it remains."""
        if endpoint.protect(table, is_protected=False) or not endpoint.is_protected(table):
            return
        self._add_note(f"{endpoint} still protects the table from drops: remove the protection there")

    def _add_note(self, note: str) -> None:
        notes = (self.entry.note, note) if self.entry.note else (note,)
        self.entry = replace(self.entry, note="; ".join(notes))  # written with the step's end

    def _check_fence(self, table: Table) -> None:
        fence = read_fence(table.properties)
        if fence is None or fence.run != self.ledger.run:
            owner = f"of migration {fence.run}, which has another ledger" if fence else "without the migration's fence"
            raise MigrationError(
                f"{self.entry}: expected a table of migration {self.ledger.run}, found a table {owner}"
            )

    def _prepare(self, table: Table) -> str:
        """Return the metadata file to register for a state of the source, after its files are where it needs them."""
        if self.entry.method is Method.REGISTER:
            return table.metadata_location
        if self.store is None:
            raise MigrationError(f"{self.entry}: expected keys of a store that copies files")
        if self.entry.target_location is None:
            location = self.target.choose_location(self.entry.identifier, table.schema())
            self._record(self.entry.step, target_location=location)
        assert self.entry.target_location is not None
        return copy_table(table, self.entry.target_location, self.store)

    def _point_target(self, location: str) -> Table:
        """Let the target have a metadata file, and return its table.

        A table that other writers changed in the target is left alone.
        """
        identifier = self.entry.identifier
        # A first registration is refused by the target if it has a table of this name.
        target_table = self.target.find_table(identifier) if self.entry.registered else None
        if target_table is not None:
            self._check_fence(target_table)
            self._check_unwritten(target_table)
        if location not in self.entry.registered:
            # Written before the call, so that a killed run knows the file as its own.
            self._record(self.entry.step, registered=(*self.entry.registered, location))
        if target_table is None:
            target_table = self.target.register(identifier, location)
        elif target_table.metadata_location != location:
            self.target.repoint(target_table, identifier, location)
            target_table = self._require_target()
        is_protected = self.target.protect(target_table, is_protected=True)
        self.entry = replace(self.entry, is_protected=is_protected)  # written with the step's end
        return target_table

    def _check_unwritten(self, target_table: Table | None) -> None:
        if self._is_written(target_table):
            raise MigrationError(
                f"{self.entry}: the target's table has commits of other writers before the cut-over. Nothing was "
                "changed. Remove the protection of that table, drop it without its files, and run the migration again"
            )

    def _has_writes(self) -> bool:
        return self._is_written(self.target.find_table(self.entry.identifier))

    def _is_written(self, target_table: Table | None) -> bool:
        return target_table is not None and target_table.metadata_location not in self.entry.registered

    def _is_continued(self, location: str) -> bool:
        """Return whether the target has commits after this metadata file: it was cut over by a run that was killed."""
        target_table = self.target.find_table(self.entry.identifier)
        return target_table is not None and _has_earlier_state(target_table, location)

    def _check_source_has_table(self) -> None:
        """Raise MigrationError if an undo could drop the only table that is left."""
        if (source_table := self.source.find_table(self.entry.identifier)) is None:
            raise MigrationError(
                f"{self.entry}: expected the table in {self.source}, found none. Nothing was changed: only "
                f"{self.target} can have the table. A killed --finish removed the table of the source; run --finish "
                "again"
            )
        if self.entry.step is Step.CUT_OVER and self.target.find_table(self.entry.identifier) is not None:
            self._check_fence(source_table)  # a table that another program created since then has none

    def _require_source(self) -> Table:
        table = self.source.find_table(self.entry.identifier)
        if table is None:
            raise MigrationError(f"{self.entry}: expected the table in {self.source}, found none")
        return table

    def _require_target(self) -> Table:
        table = self.target.find_table(self.entry.identifier)
        if table is None:
            raise MigrationError(f"{self.entry}: expected the table in {self.target}, found none")
        return table

    def _record(self, step: Step, **changes: Any) -> None:
        self.entry = replace(self.entry, step=step, error="", **changes)
        self.ledger.record(self.entry)


def _has_earlier_state(table: Table, location: str) -> bool:
    """Return whether a metadata file is in the log of a table's earlier metadata files."""
    return any(entry.metadata_file == location for entry in table.metadata.metadata_log)


def _load_state(table: Table, location: str) -> Table:
    """Return a table at a metadata file, which may be an earlier file: a writer may have committed since then."""
    if table.metadata_location == location:
        return table
    metadata = FromInputFile.table_metadata(table.io.new_input(location))
    return Table(table.name(), metadata, location, table.io, table.catalog)
