"""Calls about OpenFGA tuples: the relations of users and roles to an object. Requires a server with OpenFGA."""

from collections.abc import Iterable
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
