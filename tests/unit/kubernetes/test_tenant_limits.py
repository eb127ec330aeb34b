"""Quota, container limits and sizes of a tenant's namespace."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.kubernetes import activator, manifests, namespace_manifests
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.spec import SpecError, TenantSpec, parse_spec
from lakewright.spec.quota import QuotaSpec, quota_mistakes, sum_amounts
from lakewright.spec.size import SIZES
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse

CATALOG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog",
    project_id="acme",
    warehouses=[CatalogWarehouse(name="executions", id="0198")],
)


def unit(**changes: Any) -> dict[str, Any]:
    return {"name": "notebook", "runtime": "spark", "warehouse": "executions", **changes}


def spec(*units: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "environment": "production",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "executions"}],
        "computing_units": list(units),
        **changes,
    }


def tenant(*units: dict[str, Any], **changes: Any) -> TenantSpec:
    return parse_spec(spec(*units, **changes), "spec")


def hard(spec: TenantSpec, **cluster: Any) -> dict[str, str]:
    return namespace_manifests.resource_quota(spec, ClusterSettings.model_validate(cluster))["spec"]["hard"]


def test_quota_fits_units_runs_and_activator() -> None:
    spec = tenant(
        unit(size="large"),
        unit(name="idle", size={"cpu": "500m", "memory": "1Gi", "gpu": 2}, idle_after="30m"),
        maintenance={
            "schedule": "0 2 * * *",
            "schedules": {"compaction": "0 * * * *"},
            "size": "small",
            "executors": {"count": 3, "cpu": 2, "memory": "4Gi"},
        },
    )

    quota = hard(spec)

    # 4 + 0.5 for the units, 0.1 for the activator, and two runs of 1 + 3 * 2.
    assert quota["limits.cpu"] == quota["requests.cpu"] == "18600m"
    # 16 + 1, a quarter, and two runs of 2 + 3 * 4.
    assert quota["limits.memory"] == "46336Mi"
    assert (quota["pods"], quota["requests.nvidia.com/gpu"]) == ("11", "2")
    assert (quota["services.loadbalancers"], quota["services.nodeports"]) == ("0", "0")


def test_quota_of_the_spec_overrides_that_of_the_platform() -> None:
    spec = tenant(unit(), quota={"cpu": 4, "pods": 10})

    quota = hard(spec, quota={"cpu": 8, "memory": "64Gi"})

    assert (quota["limits.cpu"], quota["limits.memory"], quota["pods"]) == ("4", "64Gi", "10")
    assert quota["limits.ephemeral-storage"] == "10Gi", "the need, where neither limits it"


def test_quota_below_the_units_is_refused() -> None:
    with pytest.raises(SpecError) as refusal:
        tenant(unit(size="large"), unit(name="second", size="large"), quota={"cpu": 6, "memory": "1Ti"})

    (problem,) = refusal.value.problems
    assert problem.path == "quota.cpu"
    assert "expected at least 8, the sum of all computing units and maintenance jobs; found 6" in problem.expected


def test_platform_limits_the_quota_of_tenants() -> None:
    spec = tenant(unit(), quota={"memory": "64Gi"})

    (mistake,) = quota_mistakes(
        spec.quota, QuotaSpec(memory="32Gi"), sum_amounts(spec.computing_units, spec.maintenance)
    )

    assert mistake[0] == "memory"
    assert mistake[1].startswith("expected at most 32Gi, the environment's `kubernetes.quota`; found 64Gi")


def test_no_container_exceeds_the_quota() -> None:
    (limits,) = namespace_manifests.limit_range(tenant(unit(size={"cpu": "200m", "memory": "8Gi"})))["spec"]["limits"]

    assert limits["max"] == {"cpu": "200m", "memory": "8Gi", "ephemeral-storage": "10Gi"}
    assert limits["default"] == limits["defaultRequest"]
    assert limits["default"] == {"cpu": "200m", "memory": "512Mi", "ephemeral-storage": "1Gi"}


@pytest.mark.parametrize("name", list(SIZES))
def test_named_sizes_are_amounts(name: str) -> None:
    (computing_unit,) = tenant(unit(size=name)).computing_units

    assert computing_unit.size == SIZES[name]


@pytest.mark.parametrize(
    ("changes", "path", "expected"),
    [
        ({"size": "huge"}, "computing_units.0.size", "expected one of small, medium, large, xlarge"),
        ({"size": {"cpu": "2x"}}, "computing_units.0.size.cpu", "expected cores"),
        ({"size": {"memory": "8gi"}}, "computing_units.0.size.memory", "expected a size such as"),
        ({"size": {"gpu": -1}}, "computing_units.0.size.gpu", "greater than or equal to 0"),
        ({"size": {"memory": "1Gi", "shm": "2Gi"}}, "computing_units.0.size.shm", "expected at most"),
        ({"idle_after": "10s"}, "computing_units.0.idle_after", "expected a time of one minute to a day"),
        ({"texera": {"cuid": 3}}, "computing_units.0.texera", "with runtime texera; found spark"),
        ({"name": "computing-units"}, "computing_units.0.name", "is reserved"),
        ({"name": "activator", "idle_after": "5m"}, "computing_units.0.name", "is reserved"),
    ],
)
def test_mistakes_of_units_are_refused(changes: dict[str, Any], path: str, expected: str) -> None:
    with pytest.raises(SpecError) as refusal:
        tenant(unit(**changes))

    (problem,) = refusal.value.problems
    assert problem.path == path
    assert expected in problem.expected


def test_a_unit_may_be_named_activator_without_idle_units() -> None:
    assert tenant(unit(name="activator")).computing_units[0].name == "activator"


def test_amounts_are_written_as_the_api_server_keeps_them() -> None:
    """Another notation of the same amount would be drift in every refresh."""
    (computing_unit,) = tenant(unit(size={"cpu": 0.5, "memory": "1.5Gi", "scratch": "1024Mi"})).computing_units

    resources = manifests.resources(computing_unit.size, ClusterSettings())

    assert resources["limits"] == {"cpu": "500m", "memory": "1536Mi", "ephemeral-storage": "1Gi"}


def test_gpus_have_the_resource_and_class_of_the_cluster() -> None:
    tenant_spec = tenant(unit(size={"gpu": 2}))
    cluster = ClusterSettings.model_validate({"gpu": {"resource": "amd.com/gpu", "runtime_class": "amd"}})

    spec = manifests.deployment_spec(tenant_spec, tenant_spec.computing_units[0], CATALOG, "image", cluster=cluster)

    pod = spec["template"]["spec"]
    assert pod["runtimeClassName"] == "amd"
    assert pod["containers"][0]["resources"]["limits"]["amd.com/gpu"] == "2"
    assert "runtimeClassName" not in str(
        manifests.deployment_spec(tenant(unit()), tenant(unit()).computing_units[0], CATALOG, "image", cluster=cluster)
    )


def test_idle_units_do_not_own_their_number_of_pods() -> None:
    idle, always = (tenant(unit(**changes)) for changes in ({"idle_after": "30m"}, {}))

    specs = [
        manifests.deployment_spec(tenant_spec, tenant_spec.computing_units[0], CATALOG, "image")
        for tenant_spec in (idle, always)
    ]

    assert "replicas" not in specs[0]
    assert specs[1]["replicas"] == 1
    assert all(spec["strategy"] == {"type": "Recreate"} for spec in specs)
    assert specs[0]["selector"] == specs[1]["selector"], "it is immutable"


def test_idle_unit_is_reached_through_the_activator_only() -> None:
    spec = tenant(unit(idle_after="30m"), unit(name="other", idle_after="2h"))
    ports = activator.ports(spec)
    first = spec.computing_units[0]

    service = manifests.service(spec, first, ports["notebook"])["spec"]
    ingress = manifests.network_policy(spec, first, [])["spec"]["ingress"]

    assert service["selector"] == {"app.kubernetes.io/name": "activator"}
    assert service["ports"][0]["port"] == 15002
    assert service["ports"][0]["targetPort"] == ports["notebook"] != ports["other"]
    assert [rule["from"] for rule in ingress] == [
        [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "activator"}}}]
    ]


def test_port_of_an_idle_unit_remains() -> None:
    """A unit that is added, removed or moved sends no client of a unit to another unit."""
    first, second, third = (unit(name=name, idle_after="30m") for name in ("first", "second", "third"))

    units = [first, second], [third, second, first], [second]
    both, more, fewer = (activator.ports(tenant(*declared_units)) for declared_units in units)

    assert more | both == more
    assert both["second"] == fewer["second"]
    assert activator.configuration(tenant(first, second)) == activator.configuration(tenant(second, first))


def test_idle_units_with_one_hash_have_their_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activator, "_PORTS", range(20000, 20003))

    ports = activator.ports(tenant(*(unit(name=name, idle_after="30m") for name in ("c", "a", "b"))))

    assert sorted(ports) == list(ports)
    assert sorted(ports.values()) == [20000, 20001, 20002]


def test_activator_may_scale_its_units_only() -> None:
    spec = tenant(unit(idle_after="30m"), unit(name="always"))

    assert activator.role(spec)["rules"] == [
        {
            "apiGroups": ["apps"],
            "resources": ["deployments/scale"],
            "resourceNames": ["notebook"],
            "verbs": ["get", "patch"],
        }
    ]
