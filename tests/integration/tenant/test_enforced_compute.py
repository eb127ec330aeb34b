"""The limit of compute: no computing unit is started while it is reached, and jobs are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from lakewright.cli.options import load_project
from lakewright.drift.detection.run import find_drift
from lakewright.drift.detection.steps import DriftOptions
from lakewright.drift.model import UnmanagedSearch
from lakewright.drift.session import ScanSession
from lakewright.fleet.selection import SelectedStack, Selection, select
from lakewright.fleet.spark_reports import SparkReport
from lakewright.kubernetes import compute_limit
from lakewright.lakekeeper.api.management import limit_records
from lakewright.limits.compute_enforcement import UnitNamespace
from lakewright.limits.enforcement import enforce_limits
from lakewright.limits.stack_enforcement import StackEnforcement
from lakewright.restrictions.reading import read_restrictions
from lakewright_sandbox.cluster.app import SandboxCluster, kubeconfig
from lakewright_sandbox.in_process import serve
from lakewright_spark.pyiceberg_client.catalog import open_catalog

from tests.integration.tenant.conftest import MakeTenant, Tenant, enter_project

pytestmark = pytest.mark.stand_in("runs a cluster in this process")

UNIT = {"name": "notebook", "runtime": "spark", "size": "small", "warehouse": "executions", "image": "spark:1"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[httpx.Client]:
    """The API of an empty cluster, which the kubeconfig of this process names."""
    with serve(SandboxCluster().app()) as endpoint:
        file = tmp_path / "kubeconfig"
        file.write_text(kubeconfig(endpoint))
        monkeypatch.setenv("KUBECONFIG", str(file))
        with httpx.Client(base_url=endpoint, timeout=60) as client:
            yield client


@pytest.fixture
def tenant(make_tenant: MakeTenant, cluster: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Tenant:
    """A deployed tenant with a unit, jobs and an enforced limit of compute."""
    tenant = make_tenant(
        computing_units=[UNIT],
        maintenance={"schedule": "0 3 * * *", "image": "jobs:1"},
        limits={"compute": 100, "enforce": True},
    )
    file = tenant.folder / "environments" / "sandbox.yaml"
    environment = yaml.safe_load(file.read_text())
    environment["kubernetes"] = {"render_to": None, "context": "sandbox"}
    file.write_text(yaml.safe_dump(environment))
    tenant.environ["KUBECONFIG"] = str(tmp_path / "kubeconfig")
    tenant.up()
    enter_project(tenant, monkeypatch)
    return tenant


def enforce(tenant: Tenant, hours: int) -> StackEnforcement:
    """Enforce limits as `lakewright enforce-limits` does, with these hours in the month."""
    limit = {"warehouse": None, "namespace": None, "quantity": "compute", "limit": 100, "used": hours}

    def measure(stacks: Sequence[SelectedStack]) -> list[SparkReport]:
        return [SparkReport(stack, {"limits": [limit]}) for stack in stacks]

    project = load_project(tenant.folder)
    return enforce_limits(project, select(project, Selection((tenant.name,))), measure)[0]


def start_pod(cluster: httpx.Client, tenant: Tenant, owner: str, name: str) -> httpx.Response:
    """Create a pod as a controller does, from the template of the Deployment or CronJob in the cluster."""
    namespace = f"tenant-{tenant.name}"
    spec = cluster.get(owner.replace("NAMESPACE", namespace)).raise_for_status().json()["spec"]
    template = spec["jobTemplate"]["spec"]["template"] if "jobTemplate" in spec else spec["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": name}}
    return cluster.post(f"/api/v1/namespaces/{namespace}/pods", json=pod)


def create_quota(cluster: httpx.Client, tenant: Tenant, name: str) -> None:
    """Create a quota that refuses pods without a deadline, as another program does."""
    namespace = f"tenant-{tenant.name}"
    quota = compute_limit.build_quota(namespace, {})
    metadata = {**quota["metadata"], "name": name}
    cluster.post(
        f"/api/v1/namespaces/{namespace}/resourcequotas", json={**quota, "metadata": metadata}
    ).raise_for_status()


UNIT_PATH = "/apis/apps/v1/namespaces/NAMESPACE/deployments/notebook"
JOBS_PATH = "/apis/batch/v1/namespaces/NAMESPACE/cronjobs/maintenance"


def find_differences(tenant: Tenant) -> list[str]:
    """Return kinds and names of drift, also of objects in no stack."""
    project = load_project(tenant.folder)
    options = DriftOptions(search=UnmanagedSearch.OBJECTS)
    report = find_drift(project, select(project, Selection((tenant.name,))), options=options)
    assert [problem for stack in report.stacks for problem in stack.problems] == []
    return [f"{difference.kind} {difference.resource}" for difference in report.differences()]


def test_no_unit_starts_while_the_limit_is_reached(tenant: Tenant, cluster: httpx.Client) -> None:
    assert start_pod(cluster, tenant, UNIT_PATH, "running").status_code == 201
    assert enforce(tenant, 99).units is None

    enforcement = enforce(tenant, 100)

    assert (enforcement.units, enforcement.problems) == ("stopped", [])
    refused = start_pod(cluster, tenant, UNIT_PATH, "restarted")
    assert refused.status_code == 403
    assert "exceeded quota: lakewright-compute-limit" in refused.json()["message"]
    assert start_pod(cluster, tenant, JOBS_PATH, "job").status_code == 201
    create_quota(cluster, tenant, "custom")
    namespace = f"tenant-{tenant.name}"
    quotas = [text for text in find_differences(tenant) if text.endswith(("/custom", "/lakewright-compute-limit"))]
    assert quotas == [f"unmanaged {namespace}/custom"], "the recorded quota is no drift"
    project = load_project(tenant.folder)
    (restrictions,) = read_restrictions(project, select(project, Selection((tenant.name,))))
    assert restrictions.limits is not None
    assert [(limit.part, limit.quantity, limit.limit) for limit in restrictions.limits.reached] == [
        ("computing units", "compute", 100)
    ]
    assert "no computing unit or activator is started" in tenant.output("preview")
    assert enforce(tenant, 100).units is None, "a second run changes nothing"


def run_pod(cluster: httpx.Client, tenant: Tenant, name: str, start: datetime, end: datetime | None = None) -> None:
    """Start a pod of the unit, and write its status as a kubelet does."""
    start_pod(cluster, tenant, UNIT_PATH, name).raise_for_status()
    state = {"terminated": {"finishedAt": f"{end:%FT%TZ}"}} if end else {"running": {"startedAt": f"{start:%FT%TZ}"}}
    status = {
        "phase": "Failed" if end else "Running",
        "startTime": f"{start:%FT%TZ}",
        "containerStatuses": [{"name": "spark", "state": state}],
    }
    path = f"/api/v1/namespaces/tenant-{tenant.name}/pods/{name}/status"
    headers = {"content-type": "application/merge-patch+json"}
    cluster.patch(path, json={"status": status}, headers=headers).raise_for_status()


def list_rows(tenant: Tenant) -> list[dict[str, Any]]:
    """Return the rows of `ops.compute_usage`."""
    catalog = open_catalog(tenant.catalog_config(), "executions")
    return catalog.load_table("ops.compute_usage").scan().to_arrow().to_pylist()


def sum_seconds(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the seconds of each pod."""
    return {pod: sum(row["seconds"] for row in rows if row["pod"] == pod) for pod in {row["pod"] for row in rows}}


@pytest.mark.long
def test_hours_of_pods_are_recorded_once(tenant: Tenant, cluster: httpx.Client) -> None:
    """Each run measures again: a pod and day has one row."""
    now = datetime.now(UTC).replace(microsecond=0)
    run_pod(cluster, tenant, "finished", now - timedelta(seconds=90), now - timedelta(seconds=30))
    run_pod(cluster, tenant, "running", now - timedelta(seconds=60))
    start_pod(cluster, tenant, UNIT_PATH, "pending").raise_for_status()

    first = json.loads(tenant.output("record-compute", "--json"))
    seconds_before = sorted(sum_seconds(list_rows(tenant)).values())
    tenant.output("record-compute")

    assert (first["exit"], first["stacks"][0]["pods"]) == (0, 2)
    rows = list_rows(tenant)
    finished, running = sorted(sum_seconds(rows).values())
    assert len({(row["pod"], row["day"]) for row in rows}) == len(rows)
    assert finished == seconds_before[0] == 60
    assert running > seconds_before[1] > 60, "the second run measures again"
    assert {(row["unit"], row["cpu"], row["memory_bytes"]) for row in rows} == {("notebook", 1.0, 2 * 2**30)}
    (use,) = json.loads(tenant.output("fleet", "usage", "--json"))["stacks"][0]["usage"]["limits"]
    assert (use["quantity"], use["limit"], use["used"], use["state"]) == ("compute", 100, 0, "below")


@pytest.mark.long
def test_new_month_lets_units_start(tenant: Tenant, cluster: httpx.Client) -> None:
    enforce(tenant, 120)
    assert enforce(tenant, 96).units is None, "95 % of the limit is 95"

    enforcement = enforce(tenant, 0)

    assert (enforcement.units, enforcement.full_parts, enforcement.problems) == ("allowed", (), [])
    assert start_pod(cluster, tenant, UNIT_PATH, "started").status_code == 201
    project = load_project(tenant.folder)
    assert read_restrictions(project, select(project, Selection((tenant.name,))))[0].limits is None


@pytest.mark.long
def test_quota_without_record_is_drift_and_is_deleted(tenant: Tenant, cluster: httpx.Client) -> None:
    """A quota can remain without a record: the record was deleted, or a run reached another cluster."""
    create_quota(cluster, tenant, "lakewright-compute-limit")

    assert find_differences(tenant) == [f"unmanaged tenant-{tenant.name}/lakewright-compute-limit"]
    enforcement = enforce(tenant, 0)

    assert (enforcement.units, enforcement.problems) == ("allowed", [])
    assert start_pod(cluster, tenant, UNIT_PATH, "started").status_code == 201


def test_limit_without_quota_is_not_recorded(tenant: Tenant, cluster: httpx.Client) -> None:
    Path(tenant.environ["KUBECONFIG"]).write_text(kubeconfig("http://127.0.0.1:9"))

    enforcement = enforce(tenant, 100)

    assert enforcement.full_parts == ()
    assert "starts of computing units were not stopped" in enforcement.problems[0]
    project = load_project(tenant.folder)
    assert read_restrictions(project, select(project, Selection((tenant.name,))))[0].limits is None


@pytest.mark.long
def test_up_without_the_limit_ends_it(tenant: Tenant, cluster: httpx.Client) -> None:
    enforce(tenant, 100)
    tenant.spec["limits"] = {"compute": 200}
    tenant.write()
    tenant.up()

    assert enforce(tenant, 100).units == "allowed"
    assert start_pod(cluster, tenant, UNIT_PATH, "started").status_code == 201


@pytest.mark.long
@pytest.mark.parametrize("killed_at", ["record", "quota"])
def test_quota_of_a_killed_run_ends_with_its_limit(
    tenant: Tenant, cluster: httpx.Client, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    """The run is killed when it writes the record, or after it has created the quota."""

    def write_mark(*_: object) -> None:
        raise KeyboardInterrupt

    def set_limit(self: UnitNamespace, session: ScanSession, *, is_reached: bool) -> bool:
        assert create_or_delete(self, session, is_reached=is_reached)
        raise KeyboardInterrupt

    create_or_delete = UnitNamespace.set_limit
    with monkeypatch.context() as patch:
        if killed_at == "record":
            patch.setattr(limit_records, "write_mark", write_mark)
        else:
            patch.setattr(UnitNamespace, "set_limit", set_limit)
        with pytest.raises(KeyboardInterrupt):
            enforce(tenant, 100)
    tenant.spec["limits"] = {"compute": 200}
    tenant.write()
    tenant.up()

    assert enforce(tenant, 100).problems == []
    assert start_pod(cluster, tenant, UNIT_PATH, "started").status_code == 201


@pytest.mark.long
def test_cluster_without_response_is_a_problem(tenant: Tenant, cluster: httpx.Client) -> None:
    """The record remains until the quota is deleted, so the next run continues."""
    enforce(tenant, 100)
    file = Path(tenant.environ["KUBECONFIG"])
    reachable = file.read_text()
    file.write_text(kubeconfig("http://127.0.0.1:9"))

    enforcement = enforce(tenant, 0)

    assert enforcement.full_parts == ("computing units",)
    assert "starts of computing units were not allowed: the cluster does not respond" in enforcement.problems[0]
    file.write_text(reachable)
    assert enforce(tenant, 0).units == "allowed"
