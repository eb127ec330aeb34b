"""Archive a warehouse when its stack no longer declares it, and reactivate it when a stack declares it again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from lakewright.errors import LakewrightError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.archive import archive_records, read_only_roles
from lakewright.lakekeeper.archive.archive_records import ArchiveRecord
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import ArchiveRefusedError
from lakewright.ownership.archive_mark import ArchiveMark
from lakewright.ownership.mark import Claimant
from lakewright.ownership.record_role import format_announcement, format_archive_record


def archive_warehouse(client: Client, project_id: str, warehouse_id: str, bucket: OwnBucket, mark: ArchiveMark) -> None:
    """Record that a warehouse is archived, and make it read-only. The engine revokes the grants that write.

    The record comes first: if the run is killed before the roles are limited, the record lets `up` restore the roles of
    a warehouse that is declared again. A record that an interrupted run left is deleted first, after its roles are
    restored, so that its time counts from this run. Roles of the warehouse that left the spec earlier are limited too.

    Args:
        client: Client of the server.
        project_id: Id of the project.
        warehouse_id: Id of the warehouse.
        bucket: Bucket of the warehouse, which the stack made.
        mark: The record to write.

    Raises:
        ArchiveRefusedError: The warehouse has no role, or a role belongs to another stack. The roles can write.
    """
    if not mark.roles:
        raise ArchiveRefusedError(
            f"warehouse `{mark.warehouse}` cannot become read-only: the state names no IAM role of it. Run `up` first."
        )
    claimant = Claimant(mark.stack, mark.record)
    read_only_roles.refuse_missing(bucket, mark.roles, claimant)
    former_roles = read_only_roles.list_former_roles(bucket, mark.roles, claimant)
    mark = replace(mark, roles=(*mark.roles, *former_roles))
    reactivate(client, project_id, warehouse_id, bucket, claimant, declared_roles=mark.roles)
    # A record may have been deleted by hand: its announcement would let `expire` purge this archive without notice.
    archive_records.delete_archive(client, project_id, warehouse_id)
    archive_records.write_archive(client, project_id, warehouse_id, mark)
    try:
        read_only_roles.limit_roles(bucket, mark.roles, claimant)
    except LakewrightError:
        # If this fails as well, the record remains, and the next `up` continues.
        with suppress(LakewrightError):
            read_only_roles.restore_roles(bucket, mark.roles, claimant)
            archive_records.delete_archive(client, project_id, warehouse_id)
        raise


def find_cached_archive(client: Client, project_id: str, warehouse_id: str) -> ArchiveRecord | None:
    """Return the record of an archived warehouse, read once in a run; None if the warehouse is not archived."""
    archives = archive_records.list_cached_archives(client, project_id)
    return next((archive for archive in archives if archive.warehouse_id == warehouse_id.casefold()), None)


def refuse_begun_purges(client: Client, project_id: str, places: Collection[tuple[str, str]]) -> None:
    """Raise if `lakewright expire` has begun to delete a warehouse at one of some places.

    Whether a purge has begun is read now. The list of archives is read once in a run: an archive is older than its
    purge by days.

    Args:
        client: Client of the server.
        project_id: Id of the project.
        places: Bucket and key prefix of each warehouse.

    Raises:
        ArchiveRefusedError: A purge has begun.
    """
    for archive in archive_records.list_cached_archives(client, project_id):
        if archive.mark is not None and (archive.mark.bucket, archive.mark.key_prefix) in places:
            _refuse_begun_purge(client, project_id, archive)


def _refuse_begun_purge(client: Client, project_id: str, archive: ArchiveRecord) -> None:
    if archive_records.has_begun(client, project_id, archive.warehouse_id):
        name = archive.mark.warehouse if archive.mark else archive.warehouse_id
        raise ArchiveRefusedError(
            f"warehouse `{name}` cannot be used: `lakewright expire` has begun to delete its data in project"
            f" {project_id} at {client.endpoint}. Run `lakewright expire` until it has deleted the warehouse, then run"
            " `up`, which creates an empty warehouse."
        )


def reactivate(
    client: Client,
    project_id: str,
    warehouse_id: str,
    bucket: OwnBucket | None,
    claimant: Claimant,
    *,
    declared_roles: Sequence[str],
) -> bool:
    """Let a warehouse be written again, and delete the record of its archiving. Its owner has been compared.

    Args:
        client: Client of the server.
        project_id: Id of the project.
        warehouse_id: Id of the warehouse.
        bucket: Bucket of the warehouse; None if the stack did not make it.
        claimant: The running stack, whose mark the roles have.
        declared_roles: Names of the roles that the stack declares, the catalog's first. They are restored if the record
            cannot be read.

    Returns:
        Whether it was archived.

    Raises:
        ArchiveRefusedError: Its purge has begun, or the rights of a role cannot be restored.
    """
    archive = archive_records.find_archive(client, project_id, warehouse_id)
    if archive is None:
        return False
    _refuse_begun_purge(client, project_id, archive)
    role_names = declared_roles if archive.mark is None else archive.mark.roles
    is_in_store = bucket is not None and bucket.is_in_store
    if role_names and not is_in_store:
        if bucket is None:
            raise ArchiveRefusedError(
                f"warehouse {warehouse_id} in project {project_id} at {client.endpoint} is archived, and cannot be"
                " reactivated without a bucket of the stack. Declare it with `backend: aws`. Or delete the policy"
                f" `{read_only_roles.READ_ONLY_POLICY}` of its roles ({', '.join(role_names)}) in IAM, then the roles"
                f" `{format_announcement(warehouse_id)}` and `{format_archive_record(warehouse_id)}` of the project, if"
                " they exist, and run `up` again."
            )
        if archive.mark is None:
            former_roles = read_only_roles.list_former_roles(bucket, role_names, claimant)
            role_names = [*role_names, *former_roles]
        read_only_roles.restore_roles(bucket, role_names, claimant)
    archive_records.delete_archive(client, project_id, warehouse_id)
    return True
