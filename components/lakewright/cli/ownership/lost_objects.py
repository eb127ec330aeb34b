"""Refuse a run on a state whose project or buckets another stack owns, according to their marks.

The tenant's record and the deletion guard compare marks first in a whole `up` and `destroy`. A run with targets skips
them, an interrupted `destroy` has deleted the guard, and an imported state may have the names of another stack.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from lakewright.cli.ownership.refusals import OwnedElsewhereError, describe_object
from lakewright.environment.errors import PlatformUnreadableError
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import Claimant, format_stack
from lakewright.ownership.marked_object import MarkedObject

if TYPE_CHECKING:
    from lakewright.cli.ownership.server_access import ServerAccess
    from lakewright.cli.ownership.server_marks import ServerMarks
    from lakewright.project_files.state_objects import StateObjects


def refuse_lost_objects(access: ServerAccess, stack: str, consents: Collection[Consent]) -> None:
    """Check that no mark of a project, shared warehouse or bucket in the stack's state names another stack.

    Objects on servers other than the servers of the stack's environment are compared by their providers only.
    So are all objects of a stack whose file does not exist, as nothing else names its environment.

    Args:
        access: The project, and its environments and secrets.
        stack: The stack.
        consents: Objects that the operator permits this run to adopt.

    Raises:
        OwnedElsewhereError: A mark names another stack, or the tags of a bucket may not be read.
    """
    from lakewright.cli.ownership.server_marks import open_server_marks  # noqa: PLC0415 - slow to load
    from lakewright.credentials.references import UnresolvedCredentialError  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.errors import LakekeeperError  # noqa: PLC0415
    from lakewright.lakekeeper.provider.errors import BucketTagsDeniedError  # noqa: PLC0415
    from lakewright.spec import SpecError  # noqa: PLC0415

    objects = access.read_objects(stack)
    if objects is None or not (objects.projects or objects.shared_warehouses or objects.buckets):
        return
    file = access.project.stack_file(stack)
    if not file.is_file():
        print(
            f"warning: {file} does not exist, so the owner of each object is compared only when the run changes it",
            file=sys.stderr,
        )
        return
    try:
        marks = open_server_marks(access, stack)
    except (SpecError, PlatformUnreadableError):
        return  # the run reports it
    claimant = Claimant(format_stack(access.project.name, stack), objects.record_id)
    refusals: list[str] = []
    for consent in _list_objects(marks, objects):
        if consent in consents:
            continue
        try:
            marked = MarkedObject(describe_object(consent), marks.read(consent), (consent,))
        except BucketTagsDeniedError as denied:
            refusals.append(str(denied))
        except (LakekeeperError, UnresolvedCredentialError) as error:
            print(f"warning: could not compare the owner of {describe_object(consent)}: {error}", file=sys.stderr)
        else:
            refusals += [problem] if (problem := marked.find_change_problem(claimant)) else []
    if refusals:
        raise OwnedElsewhereError("\n".join(refusals))


def _list_objects(marks: ServerMarks, objects: StateObjects) -> Iterator[Consent]:
    """Yield the projects, shared warehouses and buckets of a state on the servers of the stack's environment."""
    from lakewright.project_files.servers import is_same_store, is_same_url  # noqa: PLC0415 - slow to load

    endpoint = marks.environment.lakekeeper.endpoint
    for candidate in sorted(objects.projects, key=lambda candidate: candidate.project_id):
        if is_same_url(candidate.endpoint, endpoint):
            yield Consent(ConsentKind.PROJECT, candidate.project_id)
    for warehouse in sorted(objects.shared_warehouses, key=lambda warehouse: (warehouse.project_id, warehouse.name)):
        if is_same_url(warehouse.endpoint, endpoint):
            yield Consent(ConsentKind.WAREHOUSE, f"{warehouse.project_id}/{warehouse.name}")
    for bucket in sorted(objects.buckets, key=lambda bucket: bucket.bucket):
        if is_same_store(marks.find_endpoint(bucket.bucket), bucket.endpoint):
            yield Consent(ConsentKind.BUCKET, bucket.bucket)
