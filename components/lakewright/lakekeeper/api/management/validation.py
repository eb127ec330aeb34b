"""The server's dry runs: every check of a create or an update of a warehouse, reported and nothing changed."""

from collections.abc import Mapping
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NoSuchPathError
from lakewright.lakekeeper.api.management.warehouses import ROOT

Reported = dict[str, Any]
"""One check: `name`, `status` (passed, failed or skipped), and `reason` or `error`."""


def of_creation(client: Client, project_id: str, body: Mapping[str, Any]) -> list[Reported] | None:
    """What a create with this body would meet; None where the server has no dry run."""
    return _report(client, f"{ROOT}-creation-validation", body, project_id)


def of_storage(client: Client, warehouse_id: str, body: Mapping[str, Any]) -> list[Reported] | None:
    """What a change of storage profile and credential would meet; None where the server has no dry run."""
    return _report(client, f"{ROOT}/{warehouse_id}/storage/validate-profile", body, None)


def _report(client: Client, path: str, body: Mapping[str, Any], project_id: str | None) -> list[Reported] | None:
    if not client.server().has_dry_runs:
        return None
    try:
        answer = client.json("POST", path, project=project_id, body=body, probes=True)
    except NoSuchPathError:
        return None  # a build between the releases that reports the newer version already
    return cast(list[Reported], answer["checks"])
