"""Check whether actions are allowed: a batch of the catalog's actions, or a single action of the authorizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter
from pydantic import AliasChoices, Field, model_validator
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS
from lakewright_sandbox.lakekeeper.authz.authorizer_actions import DEPRECATED_ACTIONS
from lakewright_sandbox.lakekeeper.authz.caller import actor
from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.database.lookups import (
    find_namespace,
    find_tabular_by_id,
    find_tabular_by_name,
    find_warehouse,
)
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, ProjectRow, TabularRow, WarehouseRow
from lakewright_sandbox.lakekeeper.management.access import assignments
from lakewright_sandbox.lakekeeper.management.access.actions import check_inspectable
from lakewright_sandbox.lakekeeper.protocol.errors import (
    ApiError,
    RequestRejectedError,
    namespace_missing,
    tabular_missing,
)
from lakewright_sandbox.lakekeeper.protocol.identities import Subject, UserOrRole
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import select_actions
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, ProjectId, Server

KINDS = ("server", "project", "warehouse", "namespace", "table", "view")
MAX_CHECKS = 1000

router = APIRouter(prefix="/management/v1")


class CheckedOperation(Body):
    """An action on an object, which is named by id, or by names within a warehouse."""

    action: str
    project_id: str | None = None
    warehouse_id: Annotated[UUID | None, Field(strict=False)] = None
    namespace_id: Annotated[UUID | None, Field(strict=False)] = None
    namespace: list[str] | None = None
    tabular_id: Annotated[
        UUID | None, Field(strict=False, validation_alias=AliasChoices("table-id", "view-id", "view_id"))
    ] = None
    tabular: Annotated[str | None, Field(validation_alias=AliasChoices("table", "view"))] = None

    def target(self, server: Lakekeeper, session: Session, kind: str, project: str) -> Target | None:
        """Return the object, None if it does not exist."""
        if kind == "server":
            return Target("server", server.server_id)
        if kind == "project":
            row: Any = session.get(ProjectRow, self.project_id or project)
        elif kind == "warehouse":
            row = session.get(WarehouseRow, str(self.warehouse_id))
        elif kind == "namespace":
            row = self._namespace(session, self.namespace_id)
        else:
            tabular = self._tabular(session, kind)
            return Target.from_tabular(tabular) if tabular is not None else None
        return Target(kind, row.id) if row is not None else None

    def _namespace(self, session: Session, namespace_id: UUID | None) -> NamespaceRow | None:
        if namespace_id is not None:
            row = session.get(NamespaceRow, str(namespace_id))
            return row if row is not None and row.warehouse_id == str(self.warehouse_id) else None
        try:
            return find_namespace(session, str(self.warehouse_id), self.namespace or [])
        except ApiError:
            return None

    def _tabular(self, session: Session, kind: str) -> TabularRow | None:
        if self.tabular_id is not None:
            row = find_tabular_by_id(session, self.warehouse_id, self.tabular_id)
        else:
            namespace = self._namespace(session, None)
            row = find_tabular_by_name(session, namespace, self.tabular or "") if namespace else None
        return row if row is not None and row.kind == kind and row.warehouse_id == str(self.warehouse_id) else None

    def build_missing_error(self, session: Session, kind: str) -> ApiError:
        """Return the 404 of the missing object."""
        if kind == "project":
            return ApiError(404, "ProjectNotFound", f"Project with id {self.project_id} not found.")
        find_warehouse(session, str(self.warehouse_id))
        if kind == "namespace":
            return namespace_missing(str(self.namespace_id or ".".join(self.namespace or [])), str(self.warehouse_id))
        return tabular_missing(kind)


class AuthorizationCheck(Body):
    """A check of one action. `operation` has one key, the kind of the object."""

    id: str | None = None
    identity: UserOrRole | None = None
    operation: dict[str, CheckedOperation]

    @model_validator(mode="after")
    def _one_operation(self) -> Self:
        if len(self.operation) != 1 or self.kind not in KINDS:
            raise ValueError(f"expected one of {', '.join(KINDS)} as the only key of `operation`")
        return self

    @property
    def kind(self) -> str:
        """Return the kind of the object."""
        return next(iter(self.operation))

    @property
    def requested(self) -> CheckedOperation:
        """Return the operation to check."""
        return self.operation[self.kind]

    def subject(self) -> Subject | None:
        """Return the user or role to check, None for the caller."""
        identity_subject = self.identity.subject if self.identity else None
        return identity_subject if identity_subject != actor().subject else None

    def relation(self, settings: Settings, vocabulary: Mapping[str, Mapping[str, str]]) -> str:
        """Return the relation that the action requires. Raises 422 in plain text for an unknown action."""
        actions = select_actions(settings.version, self.kind, vocabulary[self.kind])
        if self.requested.action not in actions:
            action_names = ", ".join(f"`{name}`" for name in actions)
            raise RequestRejectedError(
                422, f"unknown variant `{self.requested.action}`, expected one of {action_names}"
            )
        return vocabulary[self.kind][self.requested.action]


class CatalogActionCheck(AuthorizationCheck):
    """A check of one catalog action: `{"action": {"action": NAME}, ...}`, in all versions. A name alone is refused."""

    @model_validator(mode="before")
    @classmethod
    def _untag(cls, raw: Any) -> Any:
        operations: dict[str, dict[str, Any]] = raw.get("operation") or {}
        for kind, operation in operations.items():
            action: Any = operation.get("action")
            if not isinstance(action, dict):
                raise ValueError(f"{kind}.action: invalid type: {action!r}, expected internally tagged enum")  # noqa: TRY004
        untagged = {
            kind: operation | {"action": operation["action"].get("action")} for kind, operation in operations.items()
        }
        return raw | {"operation": untagged}


class BatchCheck(Body):
    """Request to check several actions."""

    checks: list[CatalogActionCheck]
    error_on_not_found: bool = False


@router.post("/action/batch-check")
def batch_check(server: Server, project: ProjectId, body: Annotated[BatchCheck, read_body(BatchCheck)]) -> Response:
    """Check actions in order. An action on a missing object is denied, or an error with `error_on_not_found`."""
    if len(body.checks) > MAX_CHECKS:
        raise ApiError(400, "TooManyChecks", f"A batch may have {MAX_CHECKS} checks at most, got {len(body.checks)}")
    results: list[dict[str, Any]] = []
    with server.database.read() as session:
        for check in body.checks:
            relation = check.relation(server.settings, ACTIONS)
            target = check.requested.target(server, session, check.kind, project)
            if target is None and body.error_on_not_found:
                raise check.requested.build_missing_error(session, check.kind)
            allowed = target is not None and _is_allowed(server, session, target, relation, check.subject())
            results.append({"allowed": allowed} | ({"id": check.id} if check.id is not None else {}))
    return json_response({"results": results})


def _is_allowed(server: Lakekeeper, session: Session, target: Target, relation: str, subject: Subject | None) -> bool:
    check_inspectable(server, session, target, subject)
    return not server.authorizer.enforces or server.authorizer.rights(session, subject).has(target, relation)


@router.post("/permissions/check")
def check_permission(
    server: Server, project: ProjectId, body: Annotated[AuthorizationCheck, read_body(AuthorizationCheck)]
) -> Response:
    """Check one action. Checking another user requires permission to read assignments; otherwise 401."""
    relation, subject = body.relation(server.settings, DEPRECATED_ACTIONS), body.subject()
    with server.database.read() as session:
        target = body.requested.target(server, session, body.kind, project)
        if target is None:
            raise ApiError(401, "Unauthorized", f"Unauthorized for the {body.kind} in question")
        if subject is not None:
            assignments.require(server, session, target, "read_assignments")
        elif body.kind != "server":
            assignments.require(server, session, target, "visible")
        allowed = server.authorizer.rights(session, subject).has(target, relation)
    return json_response({"allowed": allowed})
