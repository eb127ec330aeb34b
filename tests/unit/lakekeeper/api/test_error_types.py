"""Every error type of the server: the exception class, and whether the call is repeated."""

from __future__ import annotations

import pytest
from lakewright.lakekeeper.api.connection.errors import (
    AlreadyExistsError,
    BusyError,
    ConflictError,
    ForbiddenError,
    LakekeeperError,
    NotAuthenticatedError,
    NotEmptyError,
    NotFoundError,
    ProtectedError,
    RefusedError,
    ResponseTimeoutError,
    UnconfirmedError,
)

from tests.unit.lakekeeper.scripted_server import OK, Script, refusal

ACTIONS = ("Warehouse", "Project", "Namespace", "Table", "View", "GenericTable", "Role", "User", "Server")

ROWS: dict[str, tuple[int, type[LakekeeperError], tuple[str, ...]]] = {
    "missing": (
        404,
        NotFoundError,
        (
            "NoSuchWarehouseException",
            "WarehouseNotFound",
            "ProjectNotFound",
            "NoSuchNamespaceException",
            "NoSuchTableException",
            "NoSuchViewException",
            "NoSuchGenericTableException",
            "UserNotFound",
            "RoleNotFoundInProject",
            "GrantTargetNotFound",
            "TupleNotFoundError",
        ),
    ),
    "an action that is denied": (403, ForbiddenError, tuple(f"{kind}ActionForbidden" for kind in ACTIONS)),
    "a name or id that is taken": (
        409,
        AlreadyExistsError,
        (
            "WarehouseAlreadyExists",
            "WarehouseNameAlreadyExists",
            "ProjectIdAlreadyExists",
            "AlreadyExistsException",
            "UserAlreadyExists",
            "RoleNameAlreadyExists",
            "RoleSourceIdConflict",
            "EntityAlreadyExists",
        ),
    ),
    "a place that is taken": (400, AlreadyExistsError, ("CreateWarehouseStorageProfileOverlap",)),
    "something that is in the way": (
        409,
        NotEmptyError,
        ("WarehouseNotEmpty", "ProjectNotEmpty", "NamespaceNotEmptyException", "NamespaceNotEmpty"),
    ),
    "protection": (
        409,
        ProtectedError,
        (
            "WarehouseProtected",
            "NamespaceProtected",
            "ChildNamespaceProtected",
            "ChildTabularProtected",
            "ProtectedTabularDeletionWithoutForce",
        ),
    ),
    "tasks": (409, BusyError, ("WarehouseHasUnfinishedTasks", "NamespaceHasRunningTabularExpirations")),
    "a commit on what has changed": (409, ConflictError, ("CommitFailedException",)),
    "what is wrong with the request": (
        400,
        RefusedError,
        (
            "UpdateError",
            "ProjectIdMissing",
            "MissingProjectId",
            "MalformedProjectID",
            "NamespaceDeleteNotAllowed",
            "DuplicateMemberError",
            "SelfAssignment",
            "GrantRoleWithAssumedRole",
            "InvalidGetAccessQuery",
            "IdempotencyKeyReused",
        ),
    ),
    "a membership that cannot be": (409, RefusedError, ("RoleMembershipCycle", "RoleMembershipDepthExceeded")),
    "nobody known": (
        401,
        NotAuthenticatedError,
        ("MissingAuthorizationHeader", "AuthenticationFailed", "AuthenticationRequired"),
    ),
    "a grant that is denied": (401, ForbiddenError, ("Unauthorized",)),
}
PASSING = [
    (503, "CatalogBackendError", RefusedError),
    (503, "AuthorizationBackendError", RefusedError),
    (503, "MaintenanceModeError", RefusedError),
    (409, "CatalogBackendError", BusyError),
    (409, "ConcurrentUpdateError", BusyError),
    (409, "RequestInProgress", BusyError),
    (409, "GrantLockTimeout", BusyError),
    (409, "RoleMembershipLockTimeout", BusyError),
    (409, "TransactionFailed", BusyError),
    (408, "RequestTimeout", ResponseTimeoutError),
    (504, "GatewayTimeout", UnconfirmedError),
]


@pytest.mark.parametrize(
    ("status", "kind", "error"), [(status, kind, error) for status, error, kinds in ROWS.values() for kind in kinds]
)
def test_refusal_is_final_and_of_its_class(status: int, kind: str, error: type[LakekeeperError]) -> None:
    script = Script(refusal(status, kind), OK)
    with pytest.raises(LakekeeperError, match=f"responded with {status} {kind}: no") as refused:
        script.client().call("DELETE", "/x")
    assert type(refused.value) is error
    assert len(script.requests) == 1


@pytest.mark.parametrize(("status", "kind", "error"), PASSING)
def test_temporary_error_is_retried_and_then_reported(status: int, kind: str, error: type[LakekeeperError]) -> None:
    script = Script(refusal(status, kind), refusal(status, kind), OK)
    assert script.client().json("PUT", "/x") == {"ok": True}
    with pytest.raises(LakekeeperError, match=f"responded with {status} {kind}: no") as refused:
        Script(refusal(status, kind)).client().call("PUT", "/x")
    assert type(refused.value) is error
