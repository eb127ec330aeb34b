"""Report what an earlier stack of the same name retained, before a run creates anything.

Providers refuse each existing object when they come to it, which names the project only. This check names all objects,
and the command that adopts them.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.ownership.consent import Consent
from lakewright.ownership.mark import format_stack
from lakewright.project_files.stack_files import raw_spec, shares_project

if TYPE_CHECKING:
    from lakewright.cli.ownership.server_access import ServerAccess
    from lakewright.cli.ownership.server_marks import ServerMarks
    from lakewright.ownership.marked_object import MarkedObject
    from lakewright.spec import TenantSpec


class RetainedObjectsError(LakewrightError):
    """An earlier stack of this name retained objects that the spec does not adopt. Nothing was created."""


@dataclass(frozen=True)
class RetainedObjects:
    """The objects of a tenant that exist, while the stack's state has no project."""

    project: MarkedObject
    warehouses: list[str]
    """Names of the warehouses in the project."""
    buckets: list[MarkedObject]
    roles: list[MarkedObject]

    @property
    def marked(self) -> list[MarkedObject]:
        """Project, buckets and roles."""
        return [self.project, *self.buckets, *self.roles]


def refuse_retained_objects(access: ServerAccess, stack: str, consents: Collection[Consent]) -> None:
    """Check that the spec adopts what an earlier stack of this name retained.

    Args:
        access: The project, and its environments and secrets.
        stack: The stack.
        consents: Objects that the operator permits this run to adopt.

    Raises:
        RetainedObjectsError: Objects with this stack's mark exist, and the spec does not adopt them.
    """
    from lakewright.spec import read_stack_file  # noqa: PLC0415 - slow to load
    from lakewright.spec.adoption import is_adopting  # noqa: PLC0415
    from lakewright.validation.moment import read_clock  # noqa: PLC0415

    if not _may_have_retained(access, stack):
        return
    file = access.project.stack_file(stack)
    try:
        from lakewright.cli.ownership.server_marks import open_server_marks  # noqa: PLC0415 - slow to load

        spec = read_stack_file(file)
        name = format_stack(access.project.name, stack)
        retained = find_retained_objects(open_server_marks(access, stack), spec, name)
    except LakewrightError:
        return  # the run reports it, and providers refuse existing objects
    if retained is None:
        return
    missing = [consent for consent in _find_needed_consents(retained, name) if consent not in consents]
    if missing or not is_adopting(spec.adopt, read_clock()):
        raise RetainedObjectsError(_format_refusal(retained, stack, name, spec, file.name))


def find_retained_objects(marks: ServerMarks, spec: TenantSpec, stack: str) -> RetainedObjects | None:
    """Return what exists of a tenant; None if its project does not exist, or its mark does not name the stack.

    Args:
        marks: The marks on the servers.
        spec: The spec.
        stack: The stack as `PROJECT/STACK`.

    Raises:
        LakekeeperError: The server or a store refused a call.
    """
    project = marks.find_project(spec.project_id)
    if project is None or project.mark.stack != stack:
        return None
    bucket_names = [storage.bucket for storage in spec.storage.values() if storage.makes_bucket]
    buckets = [bucket for bucket in map(marks.find_bucket, dict.fromkeys(bucket_names)) if bucket is not None]
    roles = [role for role in map(marks.find_role, _list_role_names(spec)) if role is not None]
    return RetainedObjects(
        project,
        marks.list_warehouses(spec.project_id),
        [bucket for bucket in buckets if bucket.mark.stack in (None, stack)],
        [role for role in roles if role.mark.stack in (None, stack)],
    )


def _may_have_retained(access: ServerAccess, stack: str) -> bool:
    """Return whether the stack's state has no project. A project on the server is then not the stack's own.

    Providers report each retained object in a shared project.
    """
    spec = raw_spec(access.project.stack_file(stack))
    if not spec or shares_project(spec):
        return False
    objects = access.read_objects(stack)
    return objects is not None and not objects.projects


def _list_role_names(spec: TenantSpec) -> Iterator[str]:
    """Yield the names of the IAM roles that the stack creates."""
    from lakewright.names.object_names import role_name, share_purpose  # noqa: PLC0415 - slow to load

    for warehouse in spec.warehouses:
        if not spec.storage[spec.find_storage_name(warehouse)].makes_role:
            continue
        yield role_name(spec.name, warehouse.name)
        purposes = [
            *(["vending"] if warehouse.vending_role else []),
            *(["maintenance"] if warehouse.maintenance_role else []),
            *map(share_purpose, warehouse.shares),
        ]
        yield from (role_name(spec.name, warehouse.name, purpose) for purpose in purposes)


def _find_needed_consents(retained: RetainedObjects, stack: str) -> list[Consent]:
    """Return the consents that `adopt: true` needs in addition.

    A stack that is destroyed leaves a consent on what it retains. Roles are compared by the stack's name only.
    """
    return [marked.consents[0] for marked in (retained.project, *retained.buckets) if marked.mark.adopt != stack]


def _format_refusal(retained: RetainedObjects, stack: str, name: str, spec: TenantSpec, file: str) -> str:
    needed = _find_needed_consents(retained, name)
    owner = (
        f"Their mark names this stack, `{name}`, whose state does not have them: an earlier stack of this name left"
        " them, or a stack of this name in another backend has them."
        if needed
        else f"An earlier stack `{name}` was destroyed and retained them."
    )
    condition = ", if no other stack has them" if needed else ""
    adopt = "" if spec.adopt else f"set `adopt: true` in {file} and "
    options = [word for consent in needed for word in ("--adopt", str(consent))]
    command = shlex.join(["lakewright", "up", "--stack", stack, *options])
    lines = [
        f"objects of tenant `{spec.name}` exist already. {owner} Nothing was created or changed.",
        *(f"  {line}" for line in _list_objects(retained, spec)),
        f"To adopt them with their data{condition}, {adopt}run `{command}`."
        + ("" if spec.adopt else " Then remove `adopt`."),
    ]
    return "\n".join(lines)


def _list_objects(retained: RetainedObjects, spec: TenantSpec) -> Iterator[str]:
    declared_names = {warehouse.name.casefold() for warehouse in spec.warehouses}
    yield retained.project.what
    for warehouse in retained.warehouses:
        is_declared = warehouse.casefold() in declared_names
        note = "" if is_declared else " (not in the spec: an adopting stack leaves it as it is)"
        yield f"warehouse `{warehouse}` with its namespaces and tables{note}"
    for bucket in retained.buckets:
        yield f"{bucket.what} with its objects"
    for role in retained.roles:
        yield role.what
