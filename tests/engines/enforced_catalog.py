"""A sandbox that enforces grants, and a warehouse in which the client of jobs may write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow as pa
from lakewright.config_formats.config_format import ConfigRequest
from lakewright.config_formats.registry import load_format
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth
from pyiceberg.catalog import Catalog, load_catalog

from tests.spark.projects import Project, post

VARIABLE = "ENGINE_CLIENT_SECRET"
GRANTED = "granted-data"
"""Warehouse in which the client of jobs may write. Engines have to quote the name."""
FOREIGN = "foreign"
NAMESPACE = "operator-port-result"


@dataclass(frozen=True)
class EnforcedCatalog:
    """A catalog that enforces grants: the client of jobs may write in one of two warehouses."""

    config: CatalogConfig
    secret: str
    """Secret of the client of jobs."""

    def write_files(self, name: str, directory: Path) -> None:
        """Write what `lakewright config --format NAME --warehouse granted-data --out DIRECTORY` writes."""
        config_format = load_format(name)
        assert config_format.engine
        request = ConfigRequest(self.config.select_warehouses([GRANTED]), config_format.engine.version)
        directory.mkdir(parents=True, exist_ok=True)
        for file, text in config_format.render(request).items():
            (directory / file).write_text(text)

    def environment(self, home: Path) -> dict[str, str]:
        """Return the variables of an engine's process: the secret, and a home folder of its own."""
        credential = f"{self.config.auth.model_dump()['client_id']}:{self.secret}"
        secrets = {VARIABLE: self.secret, "ENGINE_CREDENTIAL": credential}
        return {**os.environ, **secrets, "HOME": str(home)}

    def create_table(self, name: str) -> None:
        """Create a table with the rows 1, 2 and 3 with PyIceberg, as the client of jobs."""
        rows = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
        self._load_catalog().create_table((NAMESPACE, name), rows.schema).append(rows)

    def read_table(self, name: str) -> list[int]:
        """Return the column `n` of a table that an engine wrote, sorted, read with PyIceberg."""
        return sorted(self._load_catalog().load_table((NAMESPACE, name)).scan().to_arrow()["n"].to_pylist())

    def _load_catalog(self) -> Catalog:
        properties = {**self.config.pyiceberg(GRANTED)}
        properties.pop("auth")
        auth = self.config.auth.model_dump()
        properties |= {"credential": f"{auth['client_id']}:{self.secret}", "oauth2-server-uri": auth["token_url"]}
        return load_catalog(GRANTED, **properties, scope=auth["scope"])


@contextmanager
def start_catalog(directory: Path) -> Iterator[EnforcedCatalog]:
    """Start a sandbox with OAuth2 and OpenFGA's rules, and create the warehouses `granted-data` and `foreign`."""
    sandbox = lifecycle.up(directory, authz="openfga")
    assert sandbox.tokens
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as server:
        stack = request_token(sandbox, sandbox.tokens.client_id, sandbox.tokens.client_secret_file)
        server.headers["Authorization"] = f"Bearer {stack}"
        post(server, "/management/v1/bootstrap", {"accept-terms-of-use": True}, tolerate="CatalogAlreadyBootstrapped")
        project = Project(server, sandbox)
        granted, foreign = project.warehouse(GRANTED), project.warehouse(FOREIGN)
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
