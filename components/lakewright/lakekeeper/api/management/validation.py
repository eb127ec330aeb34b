"""The server's dry runs: all checks of a create or update of a warehouse, without a change."""

from collections.abc import Mapping
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NoSuchPathError
from lakewright.lakekeeper.api.management.warehouses import ROOT

Reported = dict[str, Any]
"""A check: `name`, `status` (passed, failed or skipped), and `reason` or `error`."""


def validate_creation(client: Client, project_id: str, body: Mapping[str, Any]) -> list[Reported] | None:
    """Return the checks of a create with this body; None if the server has no dry run."""
    return _report(client, f"{ROOT}-creation-validation", body, project_id)


def validate_storage(client: Client, warehouse_id: str, body: Mapping[str, Any]) -> list[Reported] | None:
    """Return the checks of a change of storage profile and credential; None if the server has no dry run."""
    return _report(client, f"{ROOT}/{warehouse_id}/storage/validate-profile", body, None)


def _report(client: Client, path: str, body: Mapping[str, Any], project_id: str | None) -> list[Reported] | None:
    if not client.server().has_dry_runs:
        return None
    try:
        response = client.json("POST", path, project=project_id, body=body, probes=True)
    except NoSuchPathError:
        return None  # a development build that already reports the newer version
    return cast(list[Reported], response["checks"])
