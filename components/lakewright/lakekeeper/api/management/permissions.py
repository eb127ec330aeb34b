"""Calls about OpenFGA's tuples: who was given which relation to an object. Only servers with OpenFGA have them."""

from collections.abc import Iterable
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.privileges import GrantEntry, Object

ROOT = "/management/v1/permissions"

CONFLICTS = frozenset({"TupleAlreadyExistsError", "TupleNotFoundError"})
"""Types of the refusals that say: a tuple is there already, or not there. Either rejects the whole batch."""


def path(on: Object) -> str:
    """Where the permissions of an object are."""
    match on.kind:
        case "server" | "project":
            return f"{ROOT}/{on.kind}"
        case "warehouse":
            return f"{ROOT}/warehouse/{on.warehouse_id}"
        case "namespace" | "role" | "tag":
            return f"{ROOT}/{on.kind}/{on.object_id}"
        case "table" | "view" | "generic-table":
            return f"{ROOT}/warehouse/{on.warehouse_id}/{on.kind}/{on.object_id}"


def held(client: Client, on: Object) -> frozenset[GrantEntry]:
    """What was given on an object itself; nothing that comes from elsewhere."""
    answer = client.json("GET", f"{path(on)}/assignments", project=on.project_id)
    found = cast(list[dict[str, str]], answer["assignments"])
    return frozenset(
        GrantEntry(one["type"], "user", one["user"]) if "user" in one else GrantEntry(one["type"], "role", one["role"])
        for one in found
    )


def write(client: Client, on: Object, writes: Iterable[GrantEntry], deletes: Iterable[GrantEntry]) -> None:
    """Add and remove tuples, all or none. Not idempotent: refuses as CONFLICTS says.

    Sent again all the same when an answer got lost: a batch that was applied is then refused, not applied twice.
    """
    body: dict[str, Any] = {"writes": [_entry(one) for one in writes], "deletes": [_entry(one) for one in deletes]}
    client.call("POST", f"{path(on)}/assignments", project=on.project_id, body=body)


def _entry(one: GrantEntry) -> dict[str, str]:
    return {"type": one.privilege, one.kind: one.principal}
