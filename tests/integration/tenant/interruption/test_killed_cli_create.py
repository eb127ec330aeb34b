"""A killed `up` on the Pulumi CLI: `lakewright up` finds the created object by the pending operation in the state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.tenant import faulty_proxy
from tests.integration.tenant.conftest import LAKEWRIGHT, PASSPHRASE, MakeTenant, Tenant
from tests.integration.tenant.faulty_proxy import FaultyProxy

pytestmark = [pytest.mark.pulumi_cli, pytest.mark.timeout(900)]

CREATE = "POST /management/v1/warehouse "


@pytest.fixture
def tenant(make_tenant: MakeTenant, attached_providers: dict[str, str]) -> Tenant:
    tenant = make_tenant()
    tenant.environ = attached_providers
    return tenant


@pytest.fixture
def proxy(tenant: Tenant) -> Iterator[FaultyProxy]:
    """A proxy to Lakekeeper that can hold a response."""
    with faulty_proxy.run_proxy(tenant.sandbox.lakekeeper.endpoint) as proxy:
        (tenant.folder / "environments" / "sandbox.yaml").write_text(
            f"sandbox: {tenant.sandbox.dir}\nlakekeeper: {{endpoint: '{proxy.endpoint}'}}\n"
        )
        yield proxy


def build_environment(tenant: Tenant) -> dict[str, str]:
    state = {"PULUMI_BACKEND_URL": (tenant.folder / "state").as_uri(), "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
    return os.environ | state | tenant.environ


def kill_during_create(tenant: Tenant, proxy: FaultyProxy) -> None:
    """Kill `up` with all its processes after the server created the warehouse, before the engine got the response."""
    with proxy.faulty(CREATE, applied=True) as fault:
        command = [LAKEWRIGHT, "up", "--yes", "--engine", "pulumi", "--stack", tenant.name]
        log = (tenant.folder / "killed.log").open("w")
        up = subprocess.Popen(command, cwd=tenant.folder, env=build_environment(tenant), stdout=log, stderr=log)
        while not fault.hits:
            assert up.poll() is None, (tenant.folder / "killed.log").read_text()
            time.sleep(0.05)
        for pid in process_tree(up.pid):
            os.kill(pid, signal.SIGKILL)
        up.wait()
        log.close()


def process_tree(pid: int) -> list[int]:
    """Return a process and its descendants, parents first."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    pids = [pid]
    for item in pids:
        pids += parents.get(item, [])
    return pids


def list_pending_creations(tenant: Tenant) -> list[str]:
    deployment: dict[str, Any] = json.loads(tenant.output("stack", "export"))["deployment"]
    operations = deployment.get("pending_operations") or []
    return [
        operation["resource"]["type"].rpartition(":")[2] for operation in operations if operation["type"] == "creating"
    ]


def test_killed_create_is_recovered_on_the_cli(tenant: Tenant, proxy: FaultyProxy) -> None:
    kill_during_create(tenant, proxy)
    tenant.output("stack", "cancel", "--yes")
    assert "Warehouse" in list_pending_creations(tenant)

    plain = subprocess.run(
        ["pulumi", "up", "--yes", "--skip-preview", "--stack", tenant.name],
        cwd=tenant.folder,
        env=build_environment(tenant),
        check=False,
        capture_output=True,
        text=True,
    )
    assert plain.returncode != 0
    message = plain.stdout + plain.stderr
    assert "warehouse `executions` in project" in message
    assert "`adopt=True`" in message
    assert "run `lakewright up`" in message

    tenant.output("up", "--yes", "--engine", "pulumi")

    assert list_pending_creations(tenant) == [], "it must not let the stack adopt a later object of another stack"
    tenant.output("preview", "--refresh", "--expect-no-changes", "--engine", "pulumi")
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    tenant.verb("destroy", "--yes")
