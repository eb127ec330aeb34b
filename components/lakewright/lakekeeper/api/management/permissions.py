"""Calls about rights: OpenFGA tuples, managed access, and checks of actions.

Managed access reserves grants to users with `manage_grants`. Tuples are relations of users and roles to an object.
They and managed access require a server with OpenFGA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.privileges import GrantEntry, Object

ROOT = "/management/v1/permissions"

CONFLICTS = frozenset({"TupleAlreadyExistsError", "TupleNotFoundError"})
"""Types of refusals for a tuple that exists already, or does not exist. Either rejects the whole batch."""


def path(on: Object) -> str:
    """Return the URL path of an object's permissions."""
    match on.kind:
        case "server" | "project":
            return f"{ROOT}/{on.kind}"
        case "warehouse":
            return f"{ROOT}/warehouse/{on.warehouse_id}"
        case "namespace" | "role" | "tag":
            return f"{ROOT}/{on.kind}/{on.object_id}"
        case "table" | "view" | "generic-table":
            return f"{ROOT}/warehouse/{on.warehouse_id}/{on.kind}/{on.object_id}"


def list_grants(client: Client, on: Object) -> frozenset[GrantEntry]:
    """Return the direct grants on an object, without inherited grants."""
    response = client.json("GET", f"{path(on)}/assignments", project=on.project_id)
    assignments = cast(list[dict[str, str]], response["assignments"])
    return frozenset(
        GrantEntry(row["type"], "user", row["user"]) if "user" in row else GrantEntry(row["type"], "role", row["role"])
        for row in assignments
    )


def write(client: Client, on: Object, writes: Iterable[GrantEntry], deletes: Iterable[GrantEntry]) -> None:
    """Add and remove tuples, all or none. Refuses tuples as `CONFLICTS` says.

    Retried after a lost response although it is not idempotent: a batch that was applied is then refused.
    """
    body: dict[str, Any] = {
        "writes": [_entry(entry) for entry in writes],
        "deletes": [_entry(entry) for entry in deletes],
    }
    client.call("POST", f"{path(on)}/assignments", project=on.project_id, body=body)


def _entry(entry: GrantEntry) -> dict[str, str]:
    return {"type": entry.privilege, entry.kind: entry.principal}


def read_warehouse_access(client: Client, warehouse_id: str) -> bool:
    """Return whether a warehouse has managed access."""
    return bool(client.json("GET", f"{ROOT}/warehouse/{warehouse_id}")["managed-access"])


def read_namespace_access(client: Client, namespace_id: str) -> bool:
    """Return whether a namespace itself has managed access, regardless of inherited settings."""
    return bool(client.json("GET", f"{ROOT}/namespace/{namespace_id}")["managed-access"])


def set_warehouse_access(client: Client, warehouse_id: str, *, managed: bool) -> None:
    """Set or unset managed access of a warehouse."""
    client.call("POST", f"{ROOT}/warehouse/{warehouse_id}/managed-access", body={"managed-access": managed})


def set_namespace_access(client: Client, namespace_id: str, *, managed: bool) -> None:
    """Set or unset managed access of a namespace."""
    client.call("POST", f"{ROOT}/namespace/{namespace_id}/managed-access", body={"managed-access": managed})


BATCH_SIZE = 1000
"""Most checks of one call."""


def are_allowed(
    client: Client, project_id: str, identity: Mapping[str, str], operations: Sequence[Mapping[str, Any]]
) -> list[bool]:
    """Return for each operation whether an identity may do it. A missing object is an operation that is denied.

    Args:
        client: The client; its identity must be allowed to inspect the rights of others.
        project_id: Id of the project.
        identity: `{"user": ID}` or `{"role": ID}`.
        operations: Such as `{"table": {"action": {"action": "read_data"}, "warehouse-id": ID, "table-id": ID}}`.

    Raises:
        ForbiddenError: The caller may not inspect these rights.
    """
    allowed: list[bool] = []
    for start in range(0, len(operations), BATCH_SIZE):
        checks = [
            {"identity": identity, "operation": operation} for operation in operations[start : start + BATCH_SIZE]
        ]
        body = {"checks": checks, "error-on-not-found": False}
        response = client.json("POST", "/management/v1/action/batch-check", project=project_id, body=body)
        allowed += [bool(result["allowed"]) for result in cast(list[dict[str, Any]], response["results"])]
    return allowed
