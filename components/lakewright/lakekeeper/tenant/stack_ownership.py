"""Compare the marks of a tenant's project and buckets with the running stack, and release objects that a stack keeps.

A run compares first, in previews too. Providers compare again before each change and deletion.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    ForbiddenError,
    LakekeeperError,
    NotAuthenticatedError,
    RefusedError,
    ResponseTimeoutError,
    UnreachableError,
)
from lakewright.lakekeeper.api.management import project_record, record_roles, roles, warehouses
from lakewright.lakekeeper.api.management.record_roles import RecordRole
from lakewright.lakekeeper.buckets import bucket_mark
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import BucketTagsDeniedError, CannotCountError, NotOwnedError
from lakewright.lakekeeper.tenant.record_args import TenantRecordArgs
from lakewright.lakekeeper.tenant.tenant_history import list_added, list_removed
from lakewright.ownership.mark import Claimant, Ownership, OwnershipMark
from lakewright.ownership.marked_object import MarkedObject

NEW_WAREHOUSE = "ID"
"""Stands for the id of a warehouse that does not exist yet, in the name of its record role."""
_UNCHECKED = (
    CannotCountError,
    NotAuthenticatedError,
    RefusedError,
    ResponseTimeoutError,
    UnreachableError,
    UnresolvedCredentialError,
)
"""Errors after which a preview continues. Deletions compare again, and fail with the error."""


def refuse_foreign(
    connect: Callable[[], Client], record_args: TenantRecordArgs, before: TenantRecordArgs | None, claimant: Claimant
) -> None:
    """Check that the project and the buckets of a tenant belong to no other stack.

    Args:
        connect: Returns a client of the server.
        record_args: The record of the spec.
        before: The record of the state, if there is one.
        claimant: The running stack.

    Raises:
        BucketTagsDeniedError: The owner of a bucket that the run keeps is not known.
        CannotCountError: The owner of a bucket cannot be read, and the run deletes or adopts something.
        ForbiddenError: The identity may not read the mark of the project, or may not write it.
        NotOwnedError: The project or a bucket belongs to another stack.
    """
    if not claimant.stack:
        return  # no engine runs the check
    if_unread = _warn if _keeps_all(record_args, before) else _refuse
    problems: list[str | None] = []
    if before is not None:
        problems += _check(lambda: _find_problems(connect(), before, claimant), if_unread)
    elif record_args.adopting:
        problems += _check(lambda: _find_adoption_rights(connect(), record_args, claimant), if_unread)
    if record_args.shares_project:
        problems += _check(lambda: _find_creation_right(connect(), record_args, before, claimant), if_unread)
    buckets = {bucket.bucket: bucket for bucket in (before.buckets if before else {}).values()}
    declared_names = {bucket.bucket for bucket in record_args.buckets.values()}
    staying = [bucket for name, bucket in buckets.items() if name in declared_names]
    problems += _check(lambda: _find_bucket_problems(staying, claimant), if_unread)
    for bucket in [bucket for name, bucket in buckets.items() if name not in declared_names]:
        problems += _check_readable(lambda bucket=bucket: _find_bucket_problems([bucket], claimant), if_unread)
    for bucket in [bucket for bucket in record_args.buckets.values() if bucket.bucket not in buckets]:
        problems += _check_readable(lambda bucket=bucket: _find_new_bucket_problem(bucket, claimant), if_unread)
    if refusals := [problem for problem in problems if problem]:
        raise NotOwnedError(" ".join(refusals))


def _find_problems(client: Client, record_args: TenantRecordArgs, claimant: Claimant) -> list[str | None]:
    """Return why a stack must not change the project or warehouses in its state, or cannot mark them."""
    mark = OwnershipMark(claimant.stack, claimant.record)
    if record_args.shares_project:
        marked_warehouses = list(_list_marked_warehouses(client, record_args.project, record_args.warehouses))
        problems = [marked.find_change_problem(claimant) for _, marked in marked_warehouses]
        missing = (record_roles.find_missing_right(client, record, mark) for record, _ in marked_warehouses)
        return problems if any(problems) else [next(filter(None, missing), None)]
    marked = project_record.find_marked_project(client, record_args.project)
    return [
        marked.find_change_problem(claimant) or project_record.find_missing_right(client, record_args.project, mark),
    ]


def _find_adoption_rights(client: Client, record_args: TenantRecordArgs, claimant: Claimant) -> list[str | None]:
    """Return why a stack cannot mark what it may adopt. The checks of the objects report other problems."""
    mark = OwnershipMark(claimant.stack, claimant.record)
    if record_args.shares_project:
        return [
            record_roles.find_missing_right(client, record, mark)
            for record, marked in _list_marked_warehouses(client, record_args.project, record_args.warehouses)
            if not marked.find_adoption_problem(claimant)
        ]
    if project_record.find_marked_project(client, record_args.project).find_adoption_problem(claimant):
        return []
    return [project_record.find_missing_right(client, record_args.project, mark)]


def _find_creation_right(
    client: Client, record_args: TenantRecordArgs, before: TenantRecordArgs | None, claimant: Claimant
) -> list[str | None]:
    """Return why a stack cannot mark a warehouse that it is going to create in a shared project.

    A refused call is reported by the resources.
    """
    added = list_added(record_args.warehouses, before.warehouses if before else {})
    new_record = RecordRole(record_args.project, NEW_WAREHOUSE)
    try:
        if all(warehouses.find_by_name(client, record_args.project, name) for name in added):
            return []
        return [record_roles.find_missing_right(client, new_record, OwnershipMark(claimant.stack, claimant.record))]
    except RefusedError:
        return []


def _list_marked_warehouses(
    client: Client, project_id: str, names: Iterable[str]
) -> Iterator[tuple[RecordRole, MarkedObject]]:
    """Yield the record role of each warehouse of a tenant that exists in its shared project, with its mark."""
    for name in sorted(names):
        warehouse = warehouses.find_by_name(client, project_id, name)
        if warehouse is not None:
            record = RecordRole(project_id, warehouses.read_id(warehouse))
            yield record, project_record.find_shared_warehouse(client, warehouse)


def _find_bucket_problems(buckets: Sequence[OwnBucket], claimant: Claimant) -> list[str | None]:
    return [marked.find_change_problem(claimant) for marked in bucket_mark.find_marked_buckets(buckets)]


def _find_new_bucket_problem(bucket: OwnBucket, claimant: Claimant) -> list[str | None]:
    marked = bucket_mark.find_marked_bucket(bucket)
    return [marked.find_adoption_problem(claimant)] if marked.mark.names_owner else []


def _keeps_all(record_args: TenantRecordArgs, before: TenantRecordArgs | None) -> bool:
    """Return whether a run deletes no warehouse or bucket, and adopts nothing."""
    if record_args.adopting:
        return False
    if before is None:
        return True
    names = {bucket.bucket for bucket in record_args.buckets.values()}
    return all(bucket.bucket in names for bucket in before.buckets.values()) and not list_removed(
        record_args.warehouses, before.warehouses
    )


def _warn(error: Exception) -> None:
    warn(f"could not compare the owner of the tenant's objects: {error}")


def _refuse(error: Exception) -> None:
    if isinstance(error, LakekeeperError):
        error.add("Nothing was changed, since this run deletes or adopts objects whose owner is not known.")
    raise error


def _check(find_problems: Callable[[], list[str | None]], if_unread: Callable[[Exception], None]) -> list[str | None]:
    try:
        return find_problems()
    except (BucketTagsDeniedError, ForbiddenError):
        raise  # the aws plugin changes a bucket without asking for its owner
    except _UNCHECKED as error:
        if_unread(error)
        return []


def _check_readable(
    find_problems: Callable[[], list[str | None]], if_unread: Callable[[Exception], None]
) -> list[str | None]:
    """Compare the owner of a bucket that this run creates, adopts or deletes.

    A bucket whose tags may not be read is perhaps one of another account, for which an `up` was refused. Creating,
    adopting or deleting it fails with the reason.
    """
    try:
        return _check(find_problems, if_unread)
    except BucketTagsDeniedError:
        return []


def release(client: Client, record_args: TenantRecordArgs, claimant: Claimant) -> None:
    """Permit a later stack of the same name to adopt objects that a destroyed stack keeps.

    Its record id is lost with its state, so the mark alone would not permit it.
    """
    if not claimant.stack:
        return
    records = [RecordRole(record_args.project)]
    if record_args.shares_project:
        names = {*record_args.warehouses, *(data.name for data in record_args.kept)}
        records = [record for record, _ in _list_marked_warehouses(client, record_args.project, names)]
        _release_roles(client, record_args.project, claimant, claimant.stack)
    for record in records:
        mark = record_roles.read_mark(client, record)
        if mark.names_owner and mark.compare(claimant) is Ownership.OWN:
            record_roles.write_mark(client, record, mark.permit(claimant.stack))
    for bucket in record_args.buckets.values():
        try:
            kept_mark = bucket_mark.find_marked_bucket(bucket).mark
        except BucketTagsDeniedError as denied:
            warn(f"{bucket.where} keeps its mark if it exists: {denied}")
            continue
        if kept_mark.names_owner and kept_mark.compare(claimant) is Ownership.OWN:
            bucket_mark.write_mark(bucket, kept_mark.permit(claimant.stack))


def _release_roles(client: Client, project_id: str, claimant: Claimant, stack: str) -> None:
    """Permit a stack to adopt the roles of a shared project whose descriptions are marks of the claimant."""
    for role in roles.list_all(client, project_id):
        marked = project_record.find_marked_role(client, project_id, lambda role=role: role)
        if marked.mark.names_owner and marked.mark.compare(claimant) is Ownership.OWN:
            description = marked.mark.permit(stack).to_description()
            roles.replace(client, project_id, str(role["id"]), str(role["name"]), description)
