"""Every error type of the server: the exception class, and whether the call is repeated."""

from __future__ import annotations

import pytest
from lakewright.lakekeeper.api.connection.errors import (
    AlreadyExists,
    Busy,
    Conflict,
    Forbidden,
    LakekeeperError,
    NotAuthenticated,
    NotEmpty,
    NotFound,
    Protected,
    Refused,
    TooSlow,
    Unconfirmed,
)

from ..scripted_server import OK, Script, refusal

ACTIONS = ("Warehouse", "Project", "Namespace", "Table", "View", "GenericTable", "Role", "User", "Server")

ROWS: dict[str, tuple[int, type[LakekeeperError], tuple[str, ...]]] = {
    "missing": (
        404,
        NotFound,
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
    "an action that is denied": (403, Forbidden, tuple(f"{kind}ActionForbidden" for kind in ACTIONS)),
    "a name or id that is taken": (
        409,
        AlreadyExists,
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
    "a place that is taken": (400, AlreadyExists, ("CreateWarehouseStorageProfileOverlap",)),
    "something that is in the way": (
        409,
        NotEmpty,
        ("WarehouseNotEmpty", "ProjectNotEmpty", "NamespaceNotEmptyException", "NamespaceNotEmpty"),
    ),
    "protection": (
        409,
        Protected,
        (
            "WarehouseProtected",
            "NamespaceProtected",
            "ChildNamespaceProtected",
            "ChildTabularProtected",
            "ProtectedTabularDeletionWithoutForce",
        ),
    ),
    "tasks": (409, Busy, ("WarehouseHasUnfinishedTasks", "NamespaceHasRunningTabularExpirations")),
    "a commit on what has changed": (409, Conflict, ("CommitFailedException",)),
    "what is wrong with the request": (
        400,
        Refused,
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
    "a membership that cannot be": (409, Refused, ("RoleMembershipCycle", "RoleMembershipDepthExceeded")),
    "nobody known": (
        401,
        NotAuthenticated,
        ("MissingAuthorizationHeader", "AuthenticationFailed", "AuthenticationRequired"),
    ),
    "a grant that is denied": (401, Forbidden, ("Unauthorized",)),
}
PASSING = [
    (503, "CatalogBackendError", Refused),
    (503, "AuthorizationBackendError", Refused),
    (503, "MaintenanceModeError", Refused),
    (409, "CatalogBackendError", Busy),
    (409, "ConcurrentUpdateError", Busy),
    (409, "RequestInProgress", Busy),
    (409, "GrantLockTimeout", Busy),
    (409, "RoleMembershipLockTimeout", Busy),
    (409, "TransactionFailed", Busy),
    (408, "RequestTimeout", TooSlow),
    (504, "GatewayTimeout", Unconfirmed),
]


@pytest.mark.parametrize(
    ("status", "kind", "error"), [(status, kind, error) for status, error, kinds in ROWS.values() for kind in kinds]
)
def test_refusal_is_final_and_of_its_class(status: int, kind: str, error: type[LakekeeperError]) -> None:
    script = Script(refusal(status, kind), OK)
    with pytest.raises(LakekeeperError, match=f"answered {status} {kind}: no") as refused:
        script.client().call("DELETE", "/x")
    assert type(refused.value) is error
    assert len(script.requests) == 1


@pytest.mark.parametrize(("status", "kind", "error"), PASSING)
def test_temporary_error_is_retried_and_then_reported(status: int, kind: str, error: type[LakekeeperError]) -> None:
    script = Script(refusal(status, kind), refusal(status, kind), OK)
    assert script.client().json("PUT", "/x") == {"ok": True}
    with pytest.raises(LakekeeperError, match=f"answered {status} {kind}: no") as refused:
        Script(refusal(status, kind)).client().call("PUT", "/x")
    assert type(refused.value) is error
