"""Compare the marks of a tenant's project and buckets with the running stack, and release what a stack keeps.

A run compares first, in previews too. Providers compare again before each change and deletion.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    NotAuthenticatedError,
    RefusedError,
    ResponseTimeoutError,
    UnreachableError,
)
from lakewright.lakekeeper.api.management import project_record
from lakewright.lakekeeper.buckets import bucket_mark
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import BucketTagsDeniedError, CannotCountError, NotOwnedError
from lakewright.lakekeeper.tenant.tenant_history import RecordedBucket
from lakewright.ownership.mark import Claimant, Ownership
from lakewright.ownership.marked_object import MarkedObject

_UNCHECKED = (
    CannotCountError,
    NotAuthenticatedError,
    RefusedError,
    ResponseTimeoutError,
    UnreachableError,
    UnresolvedCredentialError,
)
"""Errors after which a preview continues. Deletions compare again, and fail with the error."""


class OwnedPlaces(Protocol):
    """Fields of a tenant record that name what the stack owns."""

    @property
    def project(self) -> str:
        """Id of the tenant's project."""
        ...

    @property
    def buckets(self) -> dict[str, RecordedBucket]:
        """Buckets that the stack creates, by name of the storage."""
        ...


def refuse_foreign(
    connect: Callable[[], Client], declared: OwnedPlaces, before: OwnedPlaces | None, claimant: Claimant
) -> None:
    """Check that the project and the buckets of a tenant belong to no other stack.

    Args:
        connect: Returns a client of the server.
        declared: The record of the spec.
        before: The record of the state, if there is one.
        claimant: The running stack.

    Raises:
        BucketTagsDeniedError: The owner of a bucket that stays is not known.
        NotOwnedError: The project or a bucket belongs to another stack.
    """
    if not claimant.stack:
        return  # no engine runs the check
    problems: list[str | None] = []
    if before is not None:
        problems += _check(lambda: [project_record.find_marked_project(connect(), before.project)], claimant)
    buckets = {own.bucket: own for own in (before.buckets if before else {}).values()}
    declared_names = {own.bucket for own in declared.buckets.values()}
    staying = [own for name, own in buckets.items() if name in declared_names]
    problems += _check(lambda: bucket_mark.find_marked_buckets(staying), claimant)
    for own in [own for name, own in buckets.items() if name not in declared_names]:
        problems += _check_readable(own, claimant)
    for own in [own for own in declared.buckets.values() if own.bucket not in buckets]:
        problems += _check_readable(own, claimant, is_in_state=False)
    if refusals := [problem for problem in problems if problem]:
        raise NotOwnedError(" ".join(refusals))


def _check_readable(own: OwnBucket, claimant: Claimant, *, is_in_state: bool = True) -> list[str | None]:
    """Compare the owner of a bucket that this run creates, adopts or deletes.

    A bucket whose tags may not be read is perhaps one of another account, for which an `up` was refused. Creating,
    adopting or deleting it fails with the reason.
    """
    try:
        return _check(lambda: [bucket_mark.find_marked_bucket(own)], claimant, is_in_state=is_in_state)
    except BucketTagsDeniedError:
        return []


def _check(
    find_marked: Callable[[], list[MarkedObject]], claimant: Claimant, *, is_in_state: bool = True
) -> list[str | None]:
    try:
        found = find_marked()
    except BucketTagsDeniedError:
        raise  # the aws plugin changes a bucket without asking for its owner
    except _UNCHECKED as error:
        warn(f"could not compare the owner of the tenant's objects: {error}")
        return []
    if is_in_state:
        return [marked.find_change_problem(claimant) for marked in found]
    return [marked.find_adoption_problem(claimant) for marked in found if marked.mark.names_owner]


def release(client: Client, project_id: str, buckets: Sequence[OwnBucket], claimant: Claimant) -> None:
    """Permit a later stack of the same name to adopt what a destroyed stack keeps.

    Its record id is lost with its state, so the mark alone would not permit it.
    """
    if not claimant.stack:
        return
    mark = project_record.read_mark(client, project_id)
    if mark.names_owner and mark.compare(claimant) is Ownership.OWN:
        project_record.write_mark(client, project_id, mark.permit(claimant.stack))
    for own in buckets:
        try:
            kept_mark = bucket_mark.find_marked_bucket(own).mark
        except BucketTagsDeniedError as denied:
            warn(f"{own.where} keeps its mark if it exists: {denied}")
            continue
        if kept_mark.names_owner and kept_mark.compare(claimant) is Ownership.OWN:
            bucket_mark.write_mark(own, kept_mark.permit(claimant.stack))
