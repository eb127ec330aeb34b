"""Drift of a computing unit by another field manager is displayed and fixed on the cluster of the sandbox."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as kubernetes_client  # pyright: ignore[reportMissingTypeStubs]
from kubernetes import config as kubernetes_config  # pyright: ignore[reportMissingTypeStubs]
from lakewright_engine.display.lines import Display
from lakewright_sandbox.cluster.app import SandboxCluster, kubeconfig
from lakewright_sandbox.in_process import serve
from rich.console import Console
from stackrunner import Stack

PROGRAM = """
import os
from pathlib import Path
import pulumi
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright.kubernetes.computing_unit import ComputingUnit, TenantNamespace
from lakewright.environment.environment import Environment
from lakewright.environment.platform import Platform
from lakewright.spec import parse_spec

tenant = parse_spec(
    {
        "version": 1, "environment": "here", "name": "acme", "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "curated"}],
        "computing_units": [{"name": "notebook", "runtime": "spark", "warehouse": "curated"}],
    },
    "spec",
)
environment = Environment.model_validate({"lakekeeper": {"endpoint": "https://lakekeeper.example"}})
platform = Platform(environment, tenant="acme")
catalog = CatalogConfig(
    tenant="acme", uri="https://lakekeeper.example/catalog", project_id="acme",
    warehouses=[CatalogWarehouse(name="curated", id="0198")],
)
within = pulumi.ResourceOptions(providers=[platform.kubernetes()])
namespace = TenantNamespace(tenant, within)
ComputingUnit(
    tenant, tenant.computing_units[0], catalog=pulumi.Output.from_input(catalog), image=os.environ["IMAGE"],
    urls=["https://lakekeeper.example"],
    opts=pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(depends_on=[namespace])),
)
"""
NAME, NAMESPACE = "notebook", "tenant-acme"


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    with serve(SandboxCluster().app()) as endpoint:
        file = tmp_path / "kubeconfig"
        file.write_text(kubeconfig(endpoint))
        yield file


def list_updated_kinds(outcome: Any) -> list[str]:
    return [step["type"].rpartition(":")[2] for step in outcome.steps if step["op"] == "update"]


def drift(outcome: Any) -> list[str]:
    """Return the properties that `--diff` displays, without properties of the server such as resourceVersion."""
    text = io.StringIO()
    with Display(Console(file=text, width=200), "refresh", "dev", dry=True, diff=True) as display:
        for event in outcome.events:
            display(event)
    return sorted(line.strip() for line in text.getvalue().splitlines() if line.startswith("      "))


@pytest.mark.long
def test_drift_of_scaled_computing_unit_is_fixed(tmp_path: Path, config: Path) -> None:
    apps = kubernetes_client.AppsV1Api(kubernetes_config.new_client_from_config(str(config)))
    stack = Stack(tmp_path, PROGRAM)

    def run(*command: str, image: str = "spark:2") -> Any:
        outcome = stack.run(*command, env={"KUBECONFIG": str(config), "IMAGE": image})
        assert outcome.exit == 0, outcome.messages
        return outcome

    run("up", image="spark:1")
    assert list_updated_kinds(run("up")) == ["Deployment"]
    assert list_updated_kinds(run("up", "--refresh")) == []
    apps.patch_namespaced_deployment_scale(NAME, NAMESPACE, {"spec": {"replicas": 3}}, field_manager="kubectl")
    label = {"metadata": {"labels": {"lakewright/tenant": "else"}}}
    apps.patch_namespaced_deployment(NAME, NAMESPACE, label, field_manager="kubectl-label")

    changes = drift(run("refresh", "--preview-only"))
    assert changes == ['~ metadata.labels.lakewright/tenant: "acme" => "else"', "~ spec.replicas: 1 => 3"]
    assert list_updated_kinds(run("preview", "--refresh")) == ["Deployment"]
    assert apps.read_namespaced_deployment(NAME, NAMESPACE).spec.replicas == 3
    assert list_updated_kinds(run("up", "--refresh")) == ["Deployment"]

    healed = apps.read_namespaced_deployment(NAME, NAMESPACE)
    assert (healed.spec.replicas, healed.metadata.labels["lakewright/tenant"]) == (1, "acme")
    assert [entry.operation for entry in healed.metadata.managed_fields] == ["Apply"]
    assert list_updated_kinds(run("up", "--refresh")) == []
    run("destroy")
    core = kubernetes_client.CoreV1Api(apps.api_client)
    assert NAMESPACE not in [namespace.metadata.name for namespace in core.list_namespace().items]
