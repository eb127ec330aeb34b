"""A sandbox that enforces grants, and a warehouse in which the client `jobs` may write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth

from tests.spark.projects import Project, post

VARIABLE = "ENGINE_CLIENT_SECRET"


@dataclass(frozen=True)
class EnforcedCatalog:
    """A catalog that enforces grants: the client of jobs may write in one of two warehouses."""

    config: CatalogConfig
    secret: str
    """Secret of the client of jobs."""


@contextmanager
def start_catalog(directory: Path) -> Iterator[EnforcedCatalog]:
    """Start a sandbox with OAuth2 and OpenFGA's rules, and create the warehouses `granted` and `foreign`."""
    sandbox = lifecycle.up(directory, authz="openfga")
    assert sandbox.tokens
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as server:
        stack = request_token(sandbox, sandbox.tokens.client_id, sandbox.tokens.client_secret_file)
        server.headers["Authorization"] = f"Bearer {stack}"
        post(server, "/management/v1/bootstrap", {"accept-terms-of-use": True}, tolerate="CatalogAlreadyBootstrapped")
        project = Project(server, sandbox)
        granted, foreign = project.warehouse("granted"), project.warehouse("foreign")
        user = f"oidc~{sandbox.tokens.jobs_client_id}"
        body = {"id": user, "name": "jobs", "user-type": "application", "update-if-exists": True}
        post(server, "/management/v1/user", body)
        for privilege in ("create", "modify", "select", "describe"):
            project.grant(user, privilege, granted)
    auth = ClientCredentialsAuth(
        kind="client-credentials",
        token_url=sandbox.tokens.token_url,
        client_id=sandbox.tokens.jobs_client_id,
        client_secret=f"env:{VARIABLE}",
        scope="lakekeeper",
    )
    warehouses = [add_options(warehouse, sandbox) for warehouse in (granted, foreign)]
    config = project.config(*warehouses, auth=auth)
    yield EnforcedCatalog(config, sandbox.tokens.jobs_client_secret_file.read_text().strip())
    lifecycle.down(directory, purge=True)


def add_options(warehouse: CatalogWarehouse, sandbox: Sandbox) -> CatalogWarehouse:
    """Return a warehouse with the S3 options that a stack writes."""
    region = sandbox.aws.region
    options = {"s3.region": region, "client.region": region, "s3.endpoint": sandbox.aws.endpoint}
    return warehouse.model_copy(update={"s3": options | {"s3.path-style-access": "true"}})


def request_token(sandbox: Sandbox, client_id: str, secret_file: Path) -> str:
    """Return an access token of a client."""
    assert sandbox.tokens
    form = {"grant_type": "client_credentials", "client_id": client_id, "scope": "lakekeeper"}
    form["client_secret"] = secret_file.read_text().strip()
    response = httpx.post(sandbox.tokens.token_url, data=form)
    response.raise_for_status()
    return response.json()["access_token"]
