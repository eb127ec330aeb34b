"""The permissions API of the OpenFGA authorizer: assignments, managed access and who may do what.

It exists where grants are enforced, see `app.py`. It does not check whether an object exists: no one has a right
on a missing object.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.authorizer_actions import AUTHORIZER_ACTIONS, DEPRECATED_ACTIONS
from lakewright_sandbox.lakekeeper.authz.caller import actor
from lakewright_sandbox.lakekeeper.authz.enforcement.management_targets import NamedObject, NamedTarget
from lakewright_sandbox.lakekeeper.authz.privileges import list_relations
from lakewright_sandbox.lakekeeper.authz.rights import EVERYONE
from lakewright_sandbox.lakekeeper.authz.store import Relation, Target, add_grant, find_grant, grants_on, remove_grant
from lakewright_sandbox.lakekeeper.management.access import assignments as assigning
from lakewright_sandbox.lakekeeper.protocol.errors import RequestRejectedError
from lakewright_sandbox.lakekeeper.protocol.identities import Subject, UserOrRole, principal_parameters
from lakewright_sandbox.lakekeeper.protocol.requests import Body, RawBody, read_body, unknown_variant
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.protocol.versions import select_actions
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, Server

router = APIRouter(prefix="/management/v1/permissions")

PATHS = {
    "server": ["/server"],
    "project": ["/project", "/project/{project_id}"],
    "warehouse": ["/warehouse/{warehouse_id}"],
    "namespace": ["/namespace/{namespace_id}"],
    "table": ["/warehouse/{warehouse_id}/table/{table_id}"],
    "view": ["/warehouse/{warehouse_id}/view/{view_id}"],
    "role": ["/role/{role_id}"],
}


class Assignment(UserOrRole):
    """An assignment, `{"type": relation, "user" or "role": id}`."""

    type: str

    def to_relation(self, target: Target) -> Relation:
        """Return the assignment on an object."""
        return Relation(target, self.type, self.subject)


class UpdateAssignments(Body):
    """Assignments to add and to remove."""

    writes: list[Assignment] = Field(default_factory=list[Assignment])
    deletes: list[Assignment] = Field(default_factory=list[Assignment])


class ManagedAccess(Body):
    """Request to enable or disable managed access."""

    managed_access: bool


def get_assignments(
    server: Server, named_object: NamedObject, relations: Annotated[list[str] | None, Query()] = None
) -> Response:
    """List the direct assignments on an object, unpaged."""
    kind = named_object.kind
    relation_names = list_relations(server.settings, kind)
    for name in relations or []:
        _check_relation(relation_names, name)
    with server.database.read() as session:
        target = named_object.target(server)
        assigning.require(server, session, target, "read_assignments")
        grants = session.scalars(grants_on(target, relations or relation_names)).all()
    assignments = [
        {"type": name, **Subject(grant.subject_kind, grant.subject_id).to_json()}
        for name in relation_names
        for grant in grants
        if grant.relation == name
    ]
    body: dict[str, Any] = {"assignments": assignments}
    return json_response(body | ({"project-id": target.id} if kind == "project" else {}))


def update_assignments(
    server: Server,
    named_object: NamedObject,
    raw: RawBody,
    body: Annotated[UpdateAssignments, read_body(UpdateAssignments)],
) -> Response:
    """Change the assignments on an object, all or none. Existing and missing tuples are errors."""
    relation_names = list_relations(server.settings, named_object.kind)
    for side in ("writes", "deletes"):
        for index, assignment in enumerate(getattr(body, side)):
            if assignment.type not in relation_names:
                raise unknown_variant(raw, assignment.type, f"{side}[{index}].type", relation_names)
    target = named_object.target(server)
    writes, deletes = ([assignment.to_relation(target) for assignment in side] for side in (body.writes, body.deletes))
    with server.database.write() as session:
        assigning.check_allowed(server, session, target, writes, deletes)
        assigning.apply(server, session, writes, deletes)
    return empty()


def _check_relation(relation_names: list[str], name: str) -> None:
    if name not in relation_names:
        names = ", ".join(f"`{relation}`" for relation in relation_names)
        raise RequestRejectedError(400, f"unknown variant `{name}`, expected one of {names}")


RequestedSubject = Annotated[Subject | None, principal_parameters("InvalidGetAccessQuery")]


def get_authorizer_actions(server: Server, named_object: NamedObject, subject: RequestedSubject) -> Response:
    """List the authorizer's actions that a subject may do."""
    return _list_allowed(server, named_object, subject, AUTHORIZER_ACTIONS)


def get_access(server: Server, named_object: NamedObject, subject: RequestedSubject) -> Response:
    """List the authorizer's and the catalog's actions that a subject may do (deprecated)."""
    return _list_allowed(server, named_object, subject, DEPRECATED_ACTIONS)


def _list_allowed(
    server: Lakekeeper, named_object: NamedTarget, subject: Subject | None, vocabulary: dict[str, dict[str, str]]
) -> Response:
    with server.database.read() as session:
        target = named_object.target(server)
        if subject is not None or actor().subject is None:
            assigning.require(server, session, target, "read_assignments")
        rights = server.authorizer.rights(session, subject)
        needed = vocabulary[target.kind]
        relation_names = select_actions(server.settings.version, target.kind, needed)
        names = [name for name in relation_names if rights.has(target, needed[name])]
    return json_response({"allowed-actions": names})


for _kind, _paths in PATHS.items():
    for _path in _paths:
        router.add_api_route(f"{_path}/assignments", get_assignments, methods=["GET"])
        router.add_api_route(f"{_path}/assignments", update_assignments, methods=["POST"])
        router.add_api_route(f"{_path}/access", get_access, methods=["GET"])
        if _path != "/project/{project_id}":
            router.add_api_route(f"{_path}/authorizer-actions", get_authorizer_actions, methods=["GET"])


# Added after `access` was deprecated.
_GENERIC_TABLE = "/warehouse/{warehouse_id}/generic-table/{generic_table_id}"
for _path in (_GENERIC_TABLE, "/tag/{tag_definition_id}"):
    router.add_api_route(f"{_path}/assignments", get_assignments, methods=["GET"])
    router.add_api_route(f"{_path}/assignments", update_assignments, methods=["POST"])
router.add_api_route(f"{_GENERIC_TABLE}/authorizer-actions", get_authorizer_actions, methods=["GET"])


@router.get("/warehouse/{warehouse_id}")
def get_warehouse(server: Server, named_object: NamedObject) -> Response:
    """Return whether access to a warehouse is managed."""
    with server.database.read() as session:
        target = named_object.target(server)
        assigning.require(server, session, target, "visible")
        return json_response({"managed-access": _is_managed(session, target)})


@router.get("/namespace/{namespace_id}")
def get_namespace(server: Server, named_object: NamedObject) -> Response:
    """Return whether access to a namespace is managed; `managed-access-inherited` includes its ancestors."""
    with server.database.read() as session:
        target = named_object.target(server)
        assigning.require(server, session, target, "visible")
        inherited = server.authorizer.rights(session, EVERYONE).has(target, "managed")
        return json_response({"managed-access": _is_managed(session, target), "managed-access-inherited": inherited})


@router.post("/warehouse/{warehouse_id}/managed-access")
@router.post("/namespace/{namespace_id}/managed-access")
def set_managed_access(
    server: Server, named_object: NamedObject, body: Annotated[ManagedAccess, read_body(ManagedAccess)]
) -> Response:
    """Set whether access to a warehouse or namespace is managed."""
    with server.database.write() as session:
        target = named_object.target(server)
        assigning.require(server, session, target, "set_managed_access")
        relation = Relation(target, "managed_access", EVERYONE)
        if body.managed_access:
            add_grant(session, relation, server.clock.now())
        else:
            remove_grant(session, relation)
    return empty(200)


def _is_managed(session: Session, target: Target) -> bool:
    return find_grant(session, Relation(target, "managed_access", EVERYONE)) is not None
