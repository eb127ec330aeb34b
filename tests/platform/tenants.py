"""Tenants of the platform: their stacks, and requests to their catalog through the gateway."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
from lakewright_sandbox.runtime.state import Sandbox

from tests.platform.deployed import DeployedPlatform
from tests.platform.identity_provider import CLIENT, ISSUER, Issuer
from tests.platform.machines import trust
from tests.platform.store import ENDPOINT, Store
from tests.tenant_project import Tenant, create_project, new_name, tenant_spec

CATALOG = "https://lakekeeper-gateway.lakekeeper.svc:8443/catalog"


@dataclass(frozen=True)
class TenantFactory:
    """Makes tenants that take their addresses from the platform, with warehouses in MinIO."""

    platform: DeployedPlatform
    folder: Path
    trusted: Path
    issuer: Issuer
    store: Store

    def create(self, jobs_auth: dict[str, Any] | None = None, **changes: Any) -> Tenant:
        """Make a tenant, whose jobs use the stack's client by default. It is not deployed yet."""
        name = new_name()
        project = self.folder / name
        client = {"kind": "client-credentials", "client_id": CLIENT, "client_secret": f"file:{self.issuer.secret_file}"}
        client["token_url"] = f"{ISSUER}/token"
        environment = {
            "platform": {"stack": f"organization/lakewright-platform/{self.platform.stack.name}"},
            "lakekeeper": {
                "auth": client,
                "jobs_auth": jobs_auth or client,
                "trial": True,
                "ca_bundle": str(self.trusted),
                "jobs_ca_bundle": str(self.trusted),
            },
            "kubernetes": {"render_to": str(project / "rendered"), "trial": True},
            "tenant_specs": {"references": [f"file:{self.store.keys}/"], "endpoints": [ENDPOINT]},
        }
        create_project(project, environment)
        environ = {"PULUMI_BACKEND_URL": self.platform.stack.state.as_uri()}
        spec = tenant_spec(name, self.store.storage) | changes
        tenant = Tenant(project, cast(Sandbox, None), spec, environ=environ)
        tenant.write()
        tenant.output("stack", "init")
        return tenant


@dataclass(frozen=True)
class CatalogAccess:
    """Requests to a tenant's catalog through the gateway."""

    tenant: Tenant
    issuer: Issuer
    trusted: Path

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the stack's client."""
        return self.make_headers(self.issuer.read_token())

    @property
    def config(self) -> dict[str, Any]:
        """The tenant's catalog configuration."""
        return json.loads(self.tenant.catalog_config().model_dump_json())

    def make_headers(self, token: str) -> dict[str, str]:
        """Return the headers of the bearer of a token."""
        return {"authorization": f"Bearer {token}", "x-project-id": self.config["project_id"]}

    def send(self, method: str, path: str, *, token: str | None = None, **parts: Any) -> httpx.Response:
        """Send a request of the stack's client, or of the bearer of a token."""
        headers = self.make_headers(token or self.issuer.read_token()) | parts.pop("headers", {})
        url = f"{CATALOG}/v1/{path}"
        return httpx.request(method, url, headers=headers, verify=trust(self.trusted), timeout=70, **parts)

    def find_prefix(self) -> str:
        """Return the prefix of the tenant's warehouse."""
        response = self.send("GET", "config", params={"warehouse": "executions"})
        return response.raise_for_status().json()["defaults"]["prefix"]

    def load_table(self) -> httpx.Response:
        """Load the table `results.events` with credentials that the server gets from the store."""
        headers = {"x-iceberg-access-delegation": "vended-credentials"}
        return self.send("GET", f"{self.find_prefix()}/namespaces/results/tables/events", headers=headers)
