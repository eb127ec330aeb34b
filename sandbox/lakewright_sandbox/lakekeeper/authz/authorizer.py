"""The authorizer, which enforces grants (OpenFGA) or allows everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.caller import actor
from lakewright_sandbox.lakekeeper.authz.rights import Rights
from lakewright_sandbox.lakekeeper.authz.store import (
    TABULAR_KINDS,
    Relation,
    Target,
    add_grant,
    grants_on,
    select_grants,
)
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow
from lakewright_sandbox.lakekeeper.database.server_context import ServerContext
from lakewright_sandbox.lakekeeper.protocol.errors import (
    ApiError,
    camel,
    namespace_missing,
    tabular_missing,
    warehouse_missing,
)
from lakewright_sandbox.lakekeeper.protocol.identities import Subject

Row = TypeVar("Row")


class Authorizer:
    """Decide what callers may do. Under allow-all every action is allowed, and objects have no owner."""

    def __init__(self, server: ServerContext) -> None:
        """Authorize calls of a server."""
        self._server = server
        self.enforces = server.settings.openfga

    def rights(self, session: Session, subject: Subject | None = None) -> Rights:
        """Return the rights of a subject, by default the caller. Requires enforced grants."""
        return Rights(self._server, session, subject or actor().subject)

    def may(self, session: Session, target: Target, action: str, subject: Subject | None = None) -> bool:
        """Return whether a subject, by default the caller, may do an action."""
        return not self.enforces or self.rights(session, subject).may(target, action)

    def add_owner(self, session: Session, target: Target) -> None:
        """Make the caller the owner of a new object, the admin of a project. Raises 409 if it has relations left."""
        if self.enforces:
            _check_unrelated(session, target)
        subject = actor().subject
        if self.enforces and subject is not None:
            relation = "project_admin" if target.kind == "project" else "ownership"
            add_grant(session, Relation(target, relation, subject), self._server.clock.now())

    def filter_visible(self, session: Session, rows: Sequence[Row], target: Callable[[Row], Target]) -> Sequence[Row]:
        """Return the rows that the caller may see in a list; `target` returns the object of a row."""
        if not self.enforces:
            return rows
        rights = self.rights(session)
        return [row for row in rows if rights.may(target(row), "include_in_list")]

    def require(self, session: Session, target: Target, action: str) -> None:
        """Raise 403 for an action that the caller may not do, 404 for an object that the caller may not see.

        Servers, projects, users and roles are never hidden.
        """
        if not self.enforces:
            return
        rights = self.rights(session)
        self._check_sees(session, rights, target)
        if not rights.may(target, action):
            raise build_forbidden_error(target, action)

    def check_visible(self, session: Session, target: Target) -> None:
        """Raise 404 for an object that the caller may not see."""
        if self.enforces:
            self._check_sees(session, self.rights(session), target)

    def _check_sees(self, session: Session, rights: Rights, target: Target) -> None:
        if target.kind in HIDDEN and not rights.sees(target):
            raise self._build_missing_error(session, target)

    def _build_missing_error(self, session: Session, target: Target) -> ApiError:
        match target.kind:
            case "warehouse":
                return warehouse_missing(target.id)
            case "namespace":
                namespace = session.get(NamespaceRow, target.id)
                warehouse = namespace.warehouse_id if namespace else ""
                return namespace_missing(".".join(namespace.path) if namespace else target.id, warehouse)
            case kind:
                return tabular_missing(kind)


def _check_unrelated(session: Session, target: Target) -> None:
    """Raise if tuples of a former object with the same id exist."""
    if session.scalars(grants_on(target).limit(1)).first():
        raise ApiError(409, "ObjectHasRelations", f"Object to create {target.kind}:{target.id} already has relations")
    if session.scalars(select_grants(Subject(target.kind, target.id)).limit(1)).first():
        message = f"Object to create {target.kind}:{target.id} is used as user"
        raise ApiError(409, "ObjectUsedInRelation", message)


HIDDEN = ("warehouse", "namespace", *TABULAR_KINDS)


def build_forbidden_error(target: Target, action: str) -> ApiError:
    """Return the 403, whose type names the kind of object: `WarehouseActionForbidden`."""
    kind = camel(target.kind)
    message = f"{kind} action `{action}` forbidden on {target.kind} `{target.object_id}`"
    return ApiError(403, f"{kind}ActionForbidden", message)
