"""The control plane of the tests of `make test-kubernetes`, and tenants on it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.control_plane import ControlPlane, Programs, control_plane
from tests.tenant_project import MakeTenant, Tenant, create_project, new_name, tenant_spec

PROGRAMS = "TEST_KUBERNETES_PROGRAMS"
"""Paths of kube-apiserver and kube-controller-manager, which `make test-kubernetes` builds, with a colon between."""

PLACEMENT = {
    "node_selector": {"pool": "tenants"},
    "tolerations": [{"key": "tenants", "operator": "Exists", "effect": "NoSchedule"}],
    "image_pull_secrets": ["registry"],
    "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
}
"""`kubernetes.pods` of the environment."""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real API server with controllers, without nodes."""
    programs = os.environ.get(PROGRAMS, "").split(":")
    if len(programs) != 2 or not all(Path(program).exists() for program in programs):
        pytest.fail("these tests need the servers that `make test-kubernetes` builds and names")
    etcd = shutil.which("etcd")
    if etcd is None:
        pytest.fail("etcd is not on the PATH: install it (on Debian and Ubuntu: apt install etcd-server)")
    with control_plane(Programs(etcd, *programs), tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="module", params=["sandbox", "plugin"])
def provider_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of Pulumi's plugins: without one for `kubernetes`, so that the sandbox's is used, or with the real one."""
    if request.param == "sandbox":
        return tmp_path_factory.mktemp("pulumi-home")
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    if not list(home.glob("plugins/resource-kubernetes-v*/pulumi-resource-kubernetes")):
        pytest.skip(f"no pulumi-resource-kubernetes in {home}")
    return home


@pytest.fixture(scope="module")
def make_tenant(
    tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox, cluster: ControlPlane, provider_home: Path
) -> MakeTenant:
    """Make a tenant whose units and jobs run on the cluster."""

    def make(**changes: Any) -> Tenant:
        name = new_name()
        folder = tmp_path_factory.mktemp("tenant") / name
        kubernetes = {"render_to": None, "context": "tests", "pods": PLACEMENT}
        create_project(folder, {"sandbox": str(sandbox.dir), "kubernetes": kubernetes})
        spec = tenant_spec(name, {"backend": "aws", "bucket": f"{name}-lakehouse"})
        environ = {"KUBECONFIG": str(cluster.kubeconfig), "PULUMI_HOME": str(provider_home)}
        tenant = Tenant(folder, sandbox, spec | changes, environ)
        tenant.write()
        tenant.output("stack", "init")
        return tenant

    return make


@pytest.fixture
def namespace(tenant: Tenant) -> str:
    """Namespace of the module's tenant."""
    return f"tenant-{tenant.name}"
