"""CronJobs of standbys: restricted like maintenance, with the source's key from a Secret and no other secret."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.environment.compute_checks import compute_problems
from lakewright.environment.environment import Environment
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY
from lakewright.kubernetes.maintenance import standby
from lakewright.kubernetes.runtimes import environment
from lakewright.kubernetes.settings import DEFAULT_CLUSTER
from lakewright.spec import SpecError, TenantSpec, parse_spec
from lakewright.spec.quota import sum_amounts
from lakewright.spec.standby import StandbySpec
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import TokenFileAuth

CATALOG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog",
    project_id="acme",
    auth=TokenFileAuth(kind="token-file", path="/var/run/lakewright/token"),
    warehouses=[CatalogWarehouse(name="executions", id="0198"), CatalogWarehouse(name="raw", id="0199")],
)
STANDBY: dict[str, Any] = {
    "schedule": "30 2 * * *",
    "config": {"name": "acme-standby"},
    "secret": {"name": "keys", "variables": {"STANDBY_KEY_ID": "target_id"}},
    "egress": ["https://lakekeeper.standby.example:8443"],
}


def parse(source: str = "executions", **changes: Any) -> tuple[TenantSpec, StandbySpec]:
    tenant = parse_spec(
        {
            "version": 1,
            "environment": "production",
            "name": "acme",
            "owner": "data@acme.example",
            "labels": {"cost-center": "4711"},
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": [{"name": "executions"}, {"name": "Raw_Data"}],
            "maintenance": {"schedule": "0 2 * * *", "standby": {source: STANDBY | changes}},
        },
        "spec",
    )
    assert tenant.maintenance is not None
    return tenant, tenant.maintenance.standby[source]


def build_spec(arguments: list[str] | None = None, **changes: Any) -> dict[str, Any]:
    tenant, planned = parse(**changes)
    return standby.cron_job_spec(
        tenant,
        "executions",
        planned,
        standby.build_source(CATALOG, "executions"),
        "example/jobs@sha256:0",
        schedule=planned.schedule,
        arguments=arguments or standby.copy_arguments(planned),
        identity=DEFAULT_IDENTITY,
        cluster=DEFAULT_CLUSTER,
    )


def read_pod(spec: dict[str, Any]) -> dict[str, Any]:
    return spec["jobTemplate"]["spec"]["template"]["spec"]


def test_copies_run_on_schedule() -> None:
    spec = build_spec(deadline="90m", tables=["sales.*"], verify="sample", warehouse="copies")

    assert (spec["schedule"], spec["concurrencyPolicy"]) == ("30 2 * * *", "Forbid")
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 90 * 60
    rule = spec["jobTemplate"]["spec"]["podFailurePolicy"]["rules"][1]
    assert rule["onExitCodes"]["containerName"] == "standby"
    (container,) = read_pod(spec)["containers"]
    assert container["command"] == ["lakewright-spark"]
    assert " ".join(container["args"]) == (
        "standby copy --from /etc/lakewright/main.json --to /etc/lakewright-standby/standby.json"
        " --to-warehouse copies --table sales.* --verify sample"
    )


def test_check_of_the_lag_has_a_cron_job() -> None:
    tenant, planned = parse(max_lag="26h")
    assert planned.max_lag
    (container,) = read_pod(build_spec(standby.lag_arguments(planned, planned.max_lag)))["containers"]

    assert " ".join(container["args"]).startswith("standby status --from /etc/lakewright/main.json")
    assert container["args"][-2:] == ["--max-lag", "26h"]
    assert standby.lag_check(tenant, "executions", {})["metadata"]["name"] == "lag-standby-executions"


def test_pod_is_restricted_as_maintenance_is() -> None:
    pod = read_pod(build_spec())
    (container,) = pod["containers"]

    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("maintenance", False)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["resources"]["limits"]["memory"] == "2Gi"
    token = next(volume["projected"]["sources"][0] for volume in pod["volumes"] if volume["name"] == "token")
    assert token["serviceAccountToken"]["audience"] == "lakekeeper"
    assert token["serviceAccountToken"]["expirationSeconds"] == 4 * 3600 + 600
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert {"source", "standby", "scratch", "token"} <= mounted
    assert mounted <= {volume["name"] for volume in pod["volumes"]}


def test_keys_come_from_the_secret_alone() -> None:
    (container,) = read_pod(build_spec())["containers"]
    keys = {
        variable["name"]: variable["valueFrom"]["secretKeyRef"]
        for variable in container["env"]
        if "valueFrom" in variable
    }

    assert keys == {
        "SOURCE_ACCESS_KEY_ID": {"name": "keys", "key": "access_key_id"},
        "SOURCE_SECRET_ACCESS_KEY": {"name": "keys", "key": "secret_access_key"},
        "STANDBY_KEY_ID": {"name": "keys", "key": "target_id"},
    }
    source = json.loads(standby.build_source(CATALOG, "executions").to_json())
    (warehouse,) = source["warehouses"]
    assert warehouse["s3_keys"]["secret_access_key"] == "env:SOURCE_SECRET_ACCESS_KEY"


def test_network_reaches_both_sides_alone() -> None:
    tenant, planned = parse()
    policy = standby.network_policy(tenant, ["https://lakekeeper.example", *planned.egress], DEFAULT_CLUSTER)

    assert policy["spec"]["podSelector"]["matchLabels"] == {
        "app.kubernetes.io/name": "maintenance-standby",
        "lakewright/tenant": "acme",
    }
    assert "ingress" not in policy["spec"]
    ports = [port["port"] for rule in policy["spec"]["egress"][1:] for port in rule["ports"]]
    assert sorted(ports) == [443, 8443]


def test_quota_counts_the_pods() -> None:
    tenants = [parse()[0], parse(max_lag="26h")[0]]
    pods = [sum_amounts(tenant.computing_units, tenant.maintenance).pods for tenant in tenants]
    assert pods[1] - pods[0] == 1


@pytest.mark.parametrize(
    ("source", "changes", "message"),
    [
        ("other", {}, "expected one of the warehouses"),
        ("executions", {"egress": []}, "at least 1"),
        ("executions", {"secret": {"name": "keys", "variables": {"SOURCE_ACCESS_KEY_ID": "a"}}}, "another variable"),
        ("executions", {"secret": {"name": "keys", "variables": {"TMPDIR": "a"}}}, "the stack sets this variable"),
        ("executions", {"deadline": "5m"}, "ten minutes to a day"),
        ("executions", {"config": {"name": "Not Valid"}}, "pattern"),
    ],
)
def test_mistakes_are_refused(source: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse(source, **changes)


def test_each_variable_of_the_pods_is_refused() -> None:
    catalog = CATALOG.model_copy(update={"ca_bundle": "/etc/ca.pem", "truststore": "/etc/trust.p12"})
    for name in environment("spark", catalog):
        with pytest.raises(SpecError, match="another variable"):
            parse(secret={"name": "keys", "variables": {name: "a"}})


def test_variable_of_the_catalogs_credential_is_refused() -> None:
    """Kubernetes would set the variable twice."""
    client = {
        "kind": "client-credentials",
        "token_url": "https://idp.example/token",
        "client_id": "jobs-{tenant}",
        "client_secret": "env:JOBS_SECRET",
    }
    settings = Environment.model_validate(
        {
            "lakekeeper": {"endpoint": "https://lakekeeper.example", "jobs_auth": client},
            "kubernetes": {"jobs_secret": {"name": "jobs", "key": "secret"}},
        }
    )
    tenant, _ = parse(secret={"name": "keys", "variables": {"JOBS_SECRET": "a", "STANDBY_KEY": "b"}})

    problems = [problem for problem in compute_problems(tenant, settings, "production") if "standby" in problem.path]

    assert [problem.path for problem in problems] == ["maintenance.standby.executions.secret.variables.JOBS_SECRET"]
    assert "`lakekeeper.jobs_auth` of the environment sets this variable" in problems[0].expected


def test_names_follow_the_rules_of_kubernetes() -> None:
    tenant, _ = parse("Raw_Data")
    assert standby.copy_job(tenant, "Raw_Data", {})["metadata"]["name"] == "standby-raw-data"
    assert len(standby.lag_check(tenant, "w" * 40, {})["metadata"]["name"]) == 52
