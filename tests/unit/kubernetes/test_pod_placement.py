"""Every pod of a tenant runs where the environment says, with the registries' Secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from lakewright.kubernetes import activator, manifests
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY
from lakewright.kubernetes.maintenance import executors, standby
from lakewright.kubernetes.maintenance import manifests as maintenance_manifests
from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings
from lakewright.spec import parse_spec
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from pydantic import ValidationError

IMAGE = "registry.example/jobs@sha256:0"
CATALOG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog",
    project_id="acme",
    warehouses=[CatalogWarehouse(name="executions", id="0198")],
)
TENANT = parse_spec(
    {
        "version": 1,
        "environment": "production",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "executions"}],
        "computing_units": [
            {"name": "notebook", "runtime": "spark", "warehouse": "executions", "idle_after": "30m"},
        ],
        "maintenance": {
            "schedule": "0 2 * * *",
            "executors": {"count": 2, "cpu": 1, "memory": "2Gi"},
            "standby": {
                "executions": {
                    "schedule": "30 2 * * *",
                    "config": {"name": "acme-standby"},
                    "secret": {"name": "keys", "variables": {"STANDBY_KEY_ID": "target_id"}},
                    "egress": ["https://lakekeeper.standby.example:8443"],
                }
            },
        },
    },
    "spec",
)
assert TENANT.maintenance is not None
MAINTENANCE = TENANT.maintenance
CLUSTER = ClusterSettings.model_validate(
    {
        "pods": {
            "node_selector": {"pool": "tenants"},
            "tolerations": [{"key": "tenants", "operator": "Exists", "effect": "NoExecute", "seconds": 60}],
            "affinity": {"podAntiAffinity": {}},
            "priority_class": "tenants",
            "image_pull_secrets": ["registry"],
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        }
    }
)
PLACEMENT = {
    "nodeSelector": {"pool": "tenants"},
    "tolerations": [{"key": "tenants", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
    "affinity": {"podAntiAffinity": {}},
    "priorityClassName": "tenants",
    "imagePullSecrets": [{"name": "registry"}],
}


def make_unit(cluster: ClusterSettings) -> dict[str, Any]:
    (unit,) = TENANT.computing_units
    return manifests.deployment_spec(TENANT, unit, CATALOG, IMAGE, cluster=cluster)["template"]


def make_activator(cluster: ClusterSettings) -> dict[str, Any]:
    return activator.deployment(TENANT, IMAGE, cluster)["spec"]["template"]


def make_run(cluster: ClusterSettings) -> dict[str, Any]:
    (cron,) = MAINTENANCE.cron_jobs()
    spec = maintenance_manifests.cron_job_spec(TENANT, MAINTENANCE, cron, CATALOG, IMAGE, cluster=cluster)
    return spec["jobTemplate"]["spec"]["template"]


def make_executor(cluster: ClusterSettings) -> dict[str, Any]:
    assert MAINTENANCE.executors is not None
    template = executors.pod_template(
        TENANT, MAINTENANCE.executors, CATALOG, DEFAULT_IDENTITY, cluster=cluster, token_seconds=3600
    )
    return yaml.safe_load(template)


def make_standby(cluster: ClusterSettings) -> dict[str, Any]:
    planned = MAINTENANCE.standby["executions"]
    spec = standby.cron_job_spec(
        TENANT,
        "executions",
        planned,
        standby.build_source(CATALOG, "executions"),
        IMAGE,
        schedule=planned.schedule,
        arguments=standby.copy_arguments(planned),
        identity=DEFAULT_IDENTITY,
        cluster=cluster,
    )
    return spec["jobTemplate"]["spec"]["template"]


@pytest.mark.parametrize("make", [make_unit, make_activator, make_run, make_executor, make_standby])
def test_each_pod_has_the_placement(make: Callable[[ClusterSettings], dict[str, Any]]) -> None:
    pod, default = make(CLUSTER), make(DEFAULT_CLUSTER)

    assert {name: value for name, value in pod["spec"].items() if name in PLACEMENT} == PLACEMENT
    assert pod["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert not default["spec"].keys() & PLACEMENT.keys()
    del pod["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"]
    assert {name: value for name, value in pod["metadata"].items() if value} == default["metadata"]
    assert {name: value for name, value in pod["spec"].items() if name not in PLACEMENT} == default["spec"]


@pytest.mark.parametrize(
    ("pods", "problem"),
    [
        ({"tolerations": [{}]}, "expected `key`"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "expected no `value`"),
        ({"tolerations": [{"key": "a", "seconds": 5}]}, "expected `effect: NoExecute`"),
        ({"node_selector": {"pool": "b c"}}, "value of a Kubernetes label"),
        ({"annotations": {"bad key": "a"}}, "key of a Kubernetes label"),
        ({"priority_class": "Bad Name"}, "priority_class"),
    ],
)
def test_placement_that_kubernetes_refuses(pods: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ClusterSettings.model_validate({"pods": pods})
