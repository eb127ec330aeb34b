"""Announce and purge the archived warehouses of a stack. Everything is compared with the servers just before a purge.

Lakekeeper gives the times: the creation of the archive's record and of the announcement, and the present time, which
the server writes when a role changes. This machine's clock must agree, so that neither clock alone can purge early.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from lakewright_engine.model.errors import EngineError

from lakewright.errors import LakewrightError
from lakewright.lakekeeper.api.catalog import contents, tables, tabulars
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import BusyError
from lakewright.lakekeeper.api.management import project_record, warehouses
from lakewright.lakekeeper.archive import archive_records, read_only_roles
from lakewright.lakekeeper.archive.archive_records import Announcement, ArchiveRecord
from lakewright.lakekeeper.buckets import bucket_mark, handed_over_files, unexplained_objects
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.preflight import surroundings, warehouse_contents
from lakewright.lakekeeper.provider.errors import ArchiveRefusedError
from lakewright.lakekeeper.warehouse import emptying
from lakewright.ownership.archive_mark import ANNOUNCED_FOR, ArchiveMark, compute_purge_time
from lakewright.ownership.mark import Claimant
from lakewright.validation.moment import format_moment

_NOTHING_DELETED = "This run deleted nothing of it"
_TABLES_DELETED = "Its tables were deleted, and its other files were kept"


class ArchiveState(StrEnum):
    """States of an archived warehouse."""

    ARCHIVED = "archived"
    """Its purge is not announced yet, or never happens."""
    ANNOUNCED = "announced"
    """Its purge is announced."""
    PURGED = "purged"
    """This run deleted its data."""
    REFUSED = "refused"
    """Its purge was refused or has failed. The problem says whether this run deleted something."""


@dataclass(frozen=True)
class ArchiveStatus:
    """An archived warehouse after a run."""

    warehouse: str
    warehouse_id: str
    state: ArchiveState
    archived_at: datetime
    purge_at: datetime | None = None
    """Earliest time of the purge; None if it never happens."""
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "warehouse": self.warehouse,
            "warehouse_id": self.warehouse_id,
            "state": self.state.value,
            "archived_at": format_moment(self.archived_at),
            "purge_at": None if self.purge_at is None else format_moment(self.purge_at),
            "problem": self.problem,
        }


@dataclass(frozen=True)
class ArchivePurger:
    """Announces and purges the archives of one stack in one project."""

    client: Client
    project_id: str
    claimant: Claimant
    """The stack, with the id of its tenant's record if its state has one."""
    read_live_ids: Callable[[], Collection[str]]
    """Returns the ids of the warehouses in the stack's state, read now.

    Raises an ArchiveRefusedError if the stack is being updated, and an EngineError if the state cannot be read.
    """
    reports_locks: bool
    """Whether the backend of states reports that the stack is being updated."""
    kept_places: Collection[tuple[str, str]] | None
    """Bucket and key prefix of each removed warehouse that the stack's state keeps; None if it has no record."""
    find_bucket: Callable[[str, str], OwnBucket]
    """Returns a bucket of the stack's account by name and region."""
    now: datetime
    """Time of this machine."""
    backend: str
    """Identity of the backend of this run."""
    permitted: Collection[str] = ()
    """Names of warehouses whose archives a user lets this run purge, although their backend is another or unknown, or
    reports no updates."""

    def run(self) -> list[ArchiveStatus]:
        """Announce the purges that come within seven days, and make the purges whose time has come.

        Archives of other stacks are left out.
        """
        archives = archive_records.list_archives(self.client, self.project_id)
        archive_records.delete_left_announcements(self.client, self.project_id)
        return [status for archive in archives if (status := self._process(archive)) is not None]

    def _process(self, archive: ArchiveRecord) -> ArchiveStatus | None:
        mark = archive.mark
        if mark is None:
            status = ArchiveStatus(
                archive.warehouse_id, archive.warehouse_id, ArchiveState.REFUSED, archive.archived_at
            )
            return replace(status, problem=archive.problem)
        if mark.stack != self.claimant.stack:
            return None
        status = ArchiveStatus(mark.warehouse, archive.warehouse_id, ArchiveState.ARCHIVED, archive.archived_at)
        due = mark.compute_due_time(archive.archived_at)
        if due is None:
            return status
        try:
            return self._announce_or_purge(replace(status, purge_at=due), archive, mark, due)
        except LakewrightError as error:
            return replace(status, purge_at=due, state=ArchiveState.REFUSED, problem=str(error))

    def _announce_or_purge(
        self, status: ArchiveStatus, archive: ArchiveRecord, mark: ArchiveMark, due: datetime
    ) -> ArchiveStatus:
        if archive.problem:
            raise ArchiveRefusedError(
                f"{archive.problem}. {_NOTHING_DELETED}. Declare the warehouse again with `adopt: true` and archive it"
                " again."
            )
        if self.now < due - ANNOUNCED_FOR:
            return status
        self._refuse_foreign(mark)
        text = _format_announcement(mark, due)
        announcement = archive_records.announce(self.client, self.project_id, archive.warehouse_id, text)
        purge_at = compute_purge_time(due, announcement.announced_at)
        status = replace(status, purge_at=purge_at, state=ArchiveState.ANNOUNCED)
        if self.now < purge_at:
            return status
        try:
            self._purge(archive, mark, announcement, purge_at)
        except LakewrightError as error:
            return replace(status, state=ArchiveState.REFUSED, problem=str(error))
        return replace(status, state=ArchiveState.PURGED)

    def _purge(self, archive: ArchiveRecord, mark: ArchiveMark, announcement: Announcement, purge_at: datetime) -> None:
        client, warehouse_id = self.client, archive.warehouse_id
        self._refuse_unknown_updates(mark)
        client.lists.forget()
        client.lists.forget_run()
        bucket = self._check_warehouse(archive, mark)
        server_time = archive_records.read_server_time(client, self.project_id, warehouse_id, announcement)
        if server_time < purge_at:
            raise ArchiveRefusedError(
                f"warehouse `{mark.warehouse}` is not purged: the server's time is {format_moment(server_time)}, this"
                f" machine's {format_moment(self.now)}, and the purge is allowed from {format_moment(purge_at)}."
            )
        self._refuse_used(archive, mark)
        with self._note_begin(archive, mark, announcement, purge_at):
            # An update reads the note after it has locked the stack, and this run reads the lock after it wrote the
            # note: at least one of them refuses.
            self._refuse_used(archive, mark)
            with self._limit_roles_after_error(bucket, mark):
                read_only_roles.restore_roles(bucket, mark.roles, Claimant(mark.stack, mark.record))
        with self._limit_roles_after_error(bucket, mark):
            warehouse_contents.remove(client, warehouse_id, mark.warehouse, "purge")
            self._refuse_used(archive, mark, _TABLES_DELETED)
            self._refuse_neighbours(archive, mark, bucket, _TABLES_DELETED)
            emptying.empty(client, warehouse_id, bucket, mark.key_prefix)
        archive_records.delete_purged_archive(client, self.project_id, warehouse_id)

    @contextmanager
    def _note_begin(
        self, archive: ArchiveRecord, mark: ArchiveMark, announcement: Announcement, purge_at: datetime
    ) -> Generator[None]:
        """Record that the purge begins, before the block. After an error in the block, nothing was deleted.

        The note is then replaced by the announcement, unless an earlier run wrote it: `up` can use the warehouse again.
        """
        client, warehouse_id = self.client, archive.warehouse_id
        has_begun_before = archive_records.has_begun(client, self.project_id, warehouse_id)
        archive_records.note_begin(client, self.project_id, warehouse_id, announcement)

        def withdraw(_: BaseException) -> None:
            if not has_begun_before:
                text = _format_announcement(mark, purge_at)
                archive_records.withdraw_begin(client, self.project_id, warehouse_id, announcement, text)

        with _undo_after_error(withdraw, f"`up` refuses warehouse `{mark.warehouse}` until it is purged"):
            yield

    @contextmanager
    def _limit_roles_after_error(self, bucket: OwnBucket, mark: ArchiveMark) -> Generator[None]:
        """After an error in the block, limit the roles to reading, except while the server still deletes with them."""
        claimant = Claimant(mark.stack, mark.record)

        def limit(error: BaseException) -> None:
            if isinstance(error, BusyError):
                raise ArchiveRefusedError("the server has not yet deleted the files of all tables.")
            existing_roles = read_only_roles.list_existing(bucket, mark.roles, claimant)
            read_only_roles.limit_roles(bucket, existing_roles, claimant)

        consequence = f"The roles of warehouse `{mark.warehouse}` can write until the next `lakewright expire`"
        with _undo_after_error(limit, consequence):
            yield

    def _refuse_used(self, archive: ArchiveRecord, mark: ArchiveMark, deleted: str = _NOTHING_DELETED) -> None:
        """Raise if the warehouse may be in use again: by an update, another record, or another owner."""
        self._refuse_live(archive, f"warehouse `{mark.warehouse}`", deleted)
        self._refuse_changed(archive, deleted)
        self._refuse_foreign(mark, deleted)

    def _refuse_unknown_updates(self, mark: ArchiveMark) -> None:
        """Raise if an update of the stack could run unseen, and the user has not said that none does."""
        if not self.reports_locks and mark.warehouse not in self.permitted:
            raise ArchiveRefusedError(
                f"warehouse `{mark.warehouse}` is not purged: the backend of states does not report whether stack"
                f" `{mark.stack}` is being updated. {_NOTHING_DELETED}. Let no update of the stack run, and permit the"
                f" purge with `lakewright expire --stack {mark.stack.rpartition('/')[2]} --purge {mark.warehouse}`."
            )

    def _refuse_live(self, archive: ArchiveRecord, title: str, deleted: str = _NOTHING_DELETED) -> None:
        """Raise if the stack has the warehouse in its state or is being updated, or if its state cannot be read."""
        try:
            live_ids = {str(live_id).casefold() for live_id in self.read_live_ids()}
        except EngineError as error:
            raise ArchiveRefusedError(
                f"{title} is not purged: the state of its stack cannot be read: {str(error).rstrip('.')}. {deleted}."
                " The next run continues."
            ) from error
        if archive.warehouse_id in live_ids:
            raise ArchiveRefusedError(f"{title} is in the state of its stack. {deleted}. Run `up`.")

    def _refuse_changed(self, archive: ArchiveRecord, deleted: str = _NOTHING_DELETED) -> None:
        """Raise if the record of the archive is not the record that this run began with."""
        if archive_records.find_archive(self.client, self.project_id, archive.warehouse_id) != archive:
            raise ArchiveRefusedError(
                f"the record of archived warehouse {archive.warehouse_id} changed during this run. {deleted}."
            )

    def _refuse_foreign(self, mark: ArchiveMark, deleted: str = _NOTHING_DELETED) -> None:
        """Raise if the project, or the stack of this state, is not that of the archive."""
        owner = project_record.read_mark(self.client, self.project_id)
        is_owner = (owner.stack, owner.record) == (mark.stack, mark.record)
        if not is_owner or owner.adopt not in {None, mark.stack}:
            raise ArchiveRefusedError(
                f"project {self.project_id} at {self.client.endpoint} has not the mark of the stack that archived"
                f" warehouse `{mark.warehouse}` ({mark.stack}, record {mark.record}). {deleted}."
            )
        if self.claimant.record not in {None, mark.record}:
            raise ArchiveRefusedError(
                f"warehouse `{mark.warehouse}` was archived by an earlier stack `{mark.stack}` (record {mark.record});"
                f" this stack has record {self.claimant.record}. {deleted}. Declare the warehouse again with"
                " `adopt: true`."
            )
        # A destroyed stack has no record id, and its name is not unique.
        is_bound = self.claimant.record == mark.record or self.backend == mark.backend
        if not is_bound and mark.warehouse not in self.permitted:
            raise ArchiveRefusedError(
                f"warehouse `{mark.warehouse}` was archived from {'another' if mark.backend else 'an unknown'} backend"
                f" of states, and this backend has no record of stack `{mark.stack}`. {deleted}. Run"
                " `lakewright expire` with the backend of the stack, or permit the purge with"
                f" `lakewright expire --stack {mark.stack.rpartition('/')[2]} --purge {mark.warehouse}`."
            )

    def _check_warehouse(self, archive: ArchiveRecord, mark: ArchiveMark) -> OwnBucket:
        """Return the bucket to empty. Raise if the warehouse or its bucket may not be purged."""
        client, warehouse_id, title = self.client, archive.warehouse_id, f"warehouse `{mark.warehouse}`"
        self._refuse_live(archive, title)
        if self.kept_places is not None and (mark.bucket, mark.key_prefix) not in self.kept_places:
            raise ArchiveRefusedError(
                f"{title} at {mark.key_prefix}/ of bucket `{mark.bucket}` is not among the warehouses that the state of"
                f" the stack keeps. {_NOTHING_DELETED}."
            )
        self._refuse_changed(archive)
        self._refuse_foreign(mark)
        warehouse = warehouses.get(client, warehouse_id)
        if warehouse is None:
            if not archive_records.has_begun(client, self.project_id, warehouse_id):
                raise ArchiveRefusedError(
                    f"{title} ({warehouse_id}) no longer exists at {client.endpoint}, and this stack did not delete it."
                    f" {_NOTHING_DELETED}. Check its files under {mark.key_prefix}/ of bucket `{mark.bucket}`."
                )
            region = None
        else:
            region = self._check_place(warehouse, mark, title)
            self._check_contents(warehouse_id, mark, title)
        bucket = self.find_bucket(mark.bucket, region or "")
        bucket_owner = bucket_mark.find_marked_bucket(bucket).mark
        if (bucket_owner.stack, bucket_owner.record) != (mark.stack, mark.record):
            raise ArchiveRefusedError(
                f"{bucket.where} has not the mark of stack `{mark.stack}` (record {mark.record}), so the files of"
                f" {title} were not deleted."
            )
        self._refuse_neighbours(archive, mark, bucket)
        if problem := handed_over_files.describe_problem(bucket, mark.key_prefix, [warehouse_id]):
            raise ArchiveRefusedError(f"this run deleted nothing of {title}: {problem}.")
        if mark.is_adopted and warehouse is not None:
            problem = unexplained_objects.describe_problem(
                client, warehouse_id, mark.warehouse, bucket, mark.key_prefix
            )
            if problem:
                raise ArchiveRefusedError(f"this run deleted nothing of {title}: {problem}.")
        return bucket

    def _refuse_neighbours(
        self, archive: ArchiveRecord, mark: ArchiveMark, bucket: OwnBucket, deleted: str = _NOTHING_DELETED
    ) -> None:
        """Raise if another warehouse, as the server lists it now, overlaps with the place of the archive."""
        self.client.lists.forget()
        self.client.lists.forget_run()
        around = surroundings.look_around(self.client)
        if neighbours := around.find_overlapping(bucket, mark.key_prefix, [archive.warehouse_id]):
            raise ArchiveRefusedError(
                f"warehouse `{mark.warehouse}` shares its place with {neighbours[0]}, under {mark.key_prefix}/ of"
                f" {bucket.where}. {deleted}."
            )

    def _check_place(self, warehouse: warehouses.WarehouseResponse, mark: ArchiveMark, title: str) -> str:
        """Return the region of the warehouse. Raise if it is in another project or place than its record says."""
        profile = warehouse["storage-profile"]
        live_place = (profile.get("bucket"), str(profile.get("key-prefix") or "").strip("/"))
        if str(warehouse["project-id"]) != self.project_id or live_place != (mark.bucket, mark.key_prefix):
            raise ArchiveRefusedError(
                f"{title} is not at the place that its record says: {mark.key_prefix}/ of bucket `{mark.bucket}` in"
                f" project {self.project_id}. {_NOTHING_DELETED}."
            )
        return str(profile["region"])

    def _check_contents(self, warehouse_id: str, mark: ArchiveMark, title: str) -> None:
        if protected := warehouse_contents.find_protected(self.client, warehouse_id, mark.warehouse):
            raise ArchiveRefusedError(f"this run deleted nothing of {title}: {'; '.join(protected)}.")
        if problem := _describe_soft_deleted(tabulars.list_deleted(self.client, warehouse_id)):
            raise ArchiveRefusedError(f"this run deleted nothing of {title}: {problem}.")
        for tabular in contents.read_warehouse(self.client, warehouse_id).tabulars:
            if tabular.kind != "table":
                continue
            metadata = tables.load(self.client, warehouse_id, tabular.namespace, tabular.name)
            if metadata is None:
                raise ArchiveRefusedError(
                    f"table {tabular} of {title} cannot be loaded, so it is not known whether another catalog uses its"
                    f" files. {_NOTHING_DELETED}. Let the identity load the table."
                )
            if str(metadata.get("properties", {}).get("gc.enabled", "true")).casefold() == "false":
                raise ArchiveRefusedError(
                    f"table {tabular} of {title} has `gc.enabled=false`: a migration or another catalog uses its files."
                    f" {_NOTHING_DELETED}."
                )


@contextmanager
def _undo_after_error(undo: Callable[[BaseException], None], consequence: str) -> Generator[None]:
    """Undo a change after an error in the block. If that fails, the error names the consequence, too.

    An interrupt of the user remains an interrupt, so that no further purge begins.
    """
    try:
        yield
    except LakewrightError as error:
        try:
            undo(error)
        except LakewrightError as refused:
            raise ArchiveRefusedError(f"{str(error).rstrip('.')}. {consequence}: {refused}") from error
        raise
    except BaseException as error:
        with suppress(LakewrightError):
            undo(error)
        raise


def _format_announcement(mark: ArchiveMark, due: datetime) -> str:
    return f"the data of warehouse {mark.warehouse} is purged, not before {format_moment(due)}"


def _describe_soft_deleted(deleted: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why soft-deleted tables and views stop a purge; None if there are none.

    Lakekeeper deletes no warehouse with them. A purge would have to restore and drop them, although the server promised
    to keep them and their properties, such as `gc.enabled`, cannot be read.
    """
    if not deleted:
        return None
    names = [".".join((*tabular["namespace"], tabular["name"])) for tabular in deleted]
    last = max(_parse_time(tabular["expiration-date"]) for tabular in deleted)
    more = f" and {len(names) - contents.MAX_NAMED_TABLES} more" if len(names) > contents.MAX_NAMED_TABLES else ""
    return (
        f"it holds soft-deleted tables or views, which can be restored until {format_moment(last)}:"
        f" {', '.join(sorted(names)[: contents.MAX_NAMED_TABLES])}{more}. A run after this time continues, when the"
        " server has removed them. For an earlier purge, restore them and drop them again"
    )


def _parse_time(text: object) -> datetime:
    return datetime.fromisoformat(str(text))
