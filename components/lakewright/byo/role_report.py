"""The report of `lakewright byo check`: the rights of the roles in a stack's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright_engine.model.properties import plaintext

from lakewright.credentials import references as credentials
from lakewright.credentials.aws_session import open_aws_session
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.preflight.report import Check, Report
from lakewright.lakekeeper.warehouse.role_checks import role_checks
from lakewright.lakekeeper.warehouse.role_listing import check_listings
from lakewright.lakekeeper.warehouse.role_proof import RoleProofArgs, describe_use

if TYPE_CHECKING:
    from lakewright_engine.model.resources import StackSnapshot

_TYPE = "pulumi-python:dynamic/lakekeeper:RoleProof"


def report_roles(
    snapshot: StackSnapshot | None, config: Callable[[str], str | None], profile: str | None
) -> list[Report]:
    """Return a report for each warehouse whose role the tenant made.

    Args:
        snapshot: The stack's state.
        config: Returns a value of the stack's configuration.
        profile: AWS profile to try listings with; None for the default identity.
    """
    clients = ClientPool()
    reports: list[Report] = []
    for resource in snapshot.resources if snapshot else []:
        if resource.type != _TYPE or resource.delete:
            continue
        proof = RoleProofArgs.from_state({key: plaintext(value) for key, value in resource.outputs.items()})
        client = clients.get(proof.server, lambda reference: credentials.resolve(reference, config))
        try:
            checks = role_checks(describe_use(client, proof))
        except LakekeeperError as error:
            checks = [Check(name="role", status="failed", reason=str(error))]
        session = open_aws_session(profile, proof.storage.region, None)
        checks += check_listings(session, proof.storage, proof.credential.external_id, proof.storage.endpoint)
        reports.append(
            Report(
                warehouse=proof.warehouse,
                project_id=proof.project_id,
                endpoint=proof.server.endpoint,
                checks=checks,
            )
        )
    return reports
