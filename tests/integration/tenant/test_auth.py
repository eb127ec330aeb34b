"""A tenant whose catalog requires tokens, from the first `up` to `destroy`, with a client of the identity provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.conftest import MakeTenant


@pytest.fixture
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of this test only, which requires tokens."""
    directory = tmp_path_factory.mktemp("guarded")
    yield lifecycle.up(directory, auth="oauth2")
    lifecycle.down(directory, purge=True)


def operations(result: dict[str, Any]) -> set[str]:
    return {step["op"] for step in result["steps"]}


def test_up_preview_and_destroy_with_tokens(sandbox: Sandbox, make_tenant: MakeTenant) -> None:
    tenant = make_tenant()
    assert "create" in operations(tenant.up())
    config = tenant.catalog_config()
    assert config.auth.kind == "client-credentials"

    assert httpx.get(f"{sandbox.lakekeeper.endpoint}/management/v1/info").status_code == 401
    assert tenant.catalog("executions").list_namespaces() == [("results",)]
    assert operations(tenant.verb("preview", "--refresh", "--expect-no-changes")) <= {"same", "refresh"}

    assert operations(tenant.verb("destroy", "--yes")) == {"delete"}
    provider = sandbox.tokens
    assert provider is not None
    secrets = [file.read_text() for file in (provider.client_secret_file, provider.jobs_client_secret_file)]
    state = "".join(file.read_text() for file in (tenant.folder / "state").rglob("*") if file.is_file())
    assert not any(secret in text for secret in secrets for text in (*tenant.outputs, state))
