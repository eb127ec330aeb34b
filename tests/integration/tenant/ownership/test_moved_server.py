"""The endpoint becomes another Lakekeeper: every verb refuses, and the tables on the first server are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

from tests.integration.tenant import faulty_proxy
from tests.integration.tenant.conftest import MakeTenant

pytestmark = [pytest.mark.timeout(300), pytest.mark.stand_in("moves the environment of a sandbox")]


@pytest.fixture
def other_server(tmp_path: Path) -> Iterator[str]:
    """A second Lakekeeper, bootstrapped and empty."""
    settings = Settings(database=f"sqlite:///{tmp_path / 'other.db'}", skip_storage_validation=True)
    with serve(create_app(settings)) as endpoint:
        httpx.post(f"{endpoint}/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        yield endpoint


@pytest.mark.long
def test_moved_server_is_refused_by_every_verb(
    make_tenant: MakeTenant, other_server: str, aws: Callable[..., Any]
) -> None:
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "protect"}])
    with faulty_proxy.run_proxy(tenant.sandbox.lakekeeper.endpoint) as proxy:
        (tenant.folder / "environments" / "sandbox.yaml").write_text(
            f"sandbox: {tenant.sandbox.dir}\nlakekeeper: {{endpoint: '{proxy.endpoint}'}}\n"
        )
        tenant.up()
        table = tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
        table.append(pa.table({"n": [1, 2, 3]}))
        first, proxy.target = proxy.target, other_server

        for command in (("refresh", "--yes"), ("preview", "--refresh"), ("up", "--yes", "--refresh")):
            assert "expected the Lakekeeper with server id" in tenant.error(*command, "--engine", "embedded")
        refusal = tenant.error("destroy", "--yes", "--engine", "embedded")
        assert "Nothing was changed" in refusal
        assert "LAKEWRIGHT_ACCEPT_SERVER_ID=" in refusal
        tenant.spec["warehouses"][0]["protected"] = True
        tenant.write()
        assert "expected the Lakekeeper with server id" in tenant.error("up", "--yes", "--engine", "embedded")

        proxy.target = first
        del tenant.spec["warehouses"][0]["protected"]
        tenant.write()
        tenant.verb("preview", "--refresh", "--expect-no-changes")
        assert tenant.catalog("executions").load_table("results.flights").scan().to_arrow().num_rows == 3
        assert tenant.bucket in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]


def test_moved_endpoint_in_the_environment_is_refused(make_tenant: MakeTenant, other_server: str) -> None:
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "protect"}])
    tenant.up()
    (tenant.folder / "environments" / "sandbox.yaml").write_text(
        f"sandbox: {tenant.sandbox.dir}\nlakekeeper: {{endpoint: '{other_server}'}}\n"
    )

    assert "expected the Lakekeeper with server id" in tenant.error("preview", "--engine", "embedded")
    assert "expected the Lakekeeper with server id" in tenant.error("up", "--yes", "--engine", "embedded")
