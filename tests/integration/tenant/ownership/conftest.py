"""A sandbox that requires tokens and enforces grants, for the tests of this folder that need it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.conftest import Tenant


@pytest.fixture(scope="package")
def openfga_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox that requires tokens and enforces grants."""
    directory = tmp_path_factory.mktemp("openfga_sandbox")
    yield lifecycle.up(directory, auth="oauth2", authz="openfga")
    lifecycle.down(directory, purge=True)


def administrator(tenant: Tenant) -> httpx.Client:
    """Return a client with the rights of the stack."""
    tokens = tenant.sandbox.tokens
    assert tokens is not None
    secret = tokens.client_secret_file.read_text()
    form = {"grant_type": "client_credentials", "client_id": tokens.client_id, "client_secret": secret}
    issued = httpx.post(tokens.token_url, data=form).raise_for_status().json()["access_token"]
    headers = {"authorization": f"Bearer {issued}", "x-project-id": tenant.name}
    return httpx.Client(base_url=tenant.sandbox.lakekeeper.endpoint, headers=headers, timeout=60)


def find_role_id(tenant: Tenant, role: str) -> str:
    """Return the id of a role by its name."""
    roles = administrator(tenant).get("/management/v1/role").json()["roles"]
    (role_id,) = [role_entry["id"] for role_entry in roles if role_entry["name"] == role]
    return role_id
