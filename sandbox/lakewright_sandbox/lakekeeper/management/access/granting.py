"""Change grants: who may grant what to whom, and the change itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.store import Relation, Target, add_grant, remove_grant
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, RoleRow
from lakewright_sandbox.lakekeeper.database.users import find_user
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import Subject
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper

ERROR_CONTEXT = "Error applying grants in catalog"


def list_grantable_privileges(
    server: Lakekeeper, session: Session, target: Target, privileges: Iterable[str], subject: Subject | None = None
) -> set[str]:
    """Return the privileges that a subject, by default the caller, may grant on the object."""
    if not server.authorizer.enforces:
        return set(privileges)
    rights = server.authorizer.rights(session, subject)
    return {name for name in privileges if rights.has(target, f"grant_{name}")}


def check_authority(
    server: Lakekeeper, session: Session, target: Target, writes: Collection[str], deletes: Collection[str]
) -> None:
    """Raise 403 `GrantActionForbidden` with all privileges that the caller may not grant or revoke."""
    granted = list_grantable_privileges(server, session, target, [*writes, *deletes])
    sides = [("granting", writes), ("revoking", deletes)]
    refused = [f"{verb} `{name}`" for verb, names in sides for name in dict.fromkeys(names) if name not in granted]
    if refused:
        refusals = " and ".join(refused)
        message = f"{refusals[0].upper()}{refusals[1:]} on this {target.kind} is forbidden"
        raise ApiError(403, "GrantActionForbidden", message)


def check_roles(session: Session, project: str, subjects: Iterable[Subject]) -> None:
    """Raise 400 for a role of another project."""
    for subject in subjects:
        if subject.kind == "role":
            role = session.get(RoleRow, subject.id)
            if role is None or role.project_id != project:
                message = f"Role `{subject.id}` does not exist in this project"
                raise ApiError(400, "GrantRoleNotInProject", message)


def apply(server: Lakekeeper, session: Session, writes: Collection[Relation], deletes: Collection[Relation]) -> None:
    """Add and remove grants; existing grants are not added, and missing grants not removed.

    Raises:
        ApiError: 400 for a user that does not exist; OpenFGA accepts any.
    """
    for relation in writes:
        subject = relation.subject
        if subject.kind == "user" and not server.authorizer.enforces and find_user(session, subject.id) is None:
            raise ApiError(400, "GrantUserNotFound", f"User `{subject.id}` does not exist", ERROR_CONTEXT)
        add_grant(session, relation, server.clock.now())
    for relation in deletes:
        remove_grant(session, relation)


def resource(session: Session, target: Target) -> dict[str, str]:
    """Return the object of a grant by its kind and ids."""
    document = {"type": target.kind}
    if target.kind == "server":
        return document
    if target.kind == "tag-definition":
        return document | {"tag-definition-id": target.id}
    if target.is_tabular:
        document["warehouse-id"] = target.warehouse_id
    elif target.kind == "namespace" and (namespace := session.get(NamespaceRow, target.id)) is not None:
        document["warehouse-id"] = namespace.warehouse_id
    return document | {f"{target.kind}-id": target.object_id}
