"""Calls that check catalog actions of users and roles. The authorizer of the server decides (0.11 and newer)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client

BATCH = 1000
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
    for start in range(0, len(operations), BATCH):
        checks = [{"identity": identity, "operation": operation} for operation in operations[start : start + BATCH]]
        body = {"checks": checks, "error-on-not-found": False}
        response = client.json("POST", "/management/v1/action/batch-check", project=project_id, body=body)
        allowed += [bool(result["allowed"]) for result in cast(list[dict[str, Any]], response["results"])]
    return allowed
