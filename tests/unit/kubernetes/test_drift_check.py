"""Manifests and settings of the drift check: least rights, one check at a time, secrets as files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright.kubernetes import manifests
from lakewright.kubernetes.drift_check.manifests import (
    READABLE,
    DriftCheckLocation,
    cluster_role,
    config_map,
    cron_job,
    drift_check_manifests,
    network_policy,
    service_account,
)
from lakewright.kubernetes.drift_check.settings import DriftCheckSettings
from lakewright.platform_stack.manifests.network_policies import list_network_policies
from lakewright.platform_stack.settings.checks import parse_platform_spec
from lakewright.validation.problems import SpecError
from pydantic import ValidationError

from tests.platform_documents import DRIFT_CHECK, production, replace_value

PLACE = DriftCheckLocation("lakekeeper", "lakekeeper-drift")


def settings(**more: Any) -> DriftCheckSettings:
    return DriftCheckSettings.model_validate(DRIFT_CHECK | more)


def pod(**more: Any) -> dict[str, Any]:
    return cron_job(PLACE, settings(**more))["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def container(**more: Any) -> dict[str, Any]:
    (container_spec,) = pod(**more)["containers"]
    return container_spec


def test_pods_have_the_token_of_their_account_for_the_catalog() -> None:
    more = {"catalog_token": {"path": "/var/run/secrets/catalog/token", "audience": "iceberg"}, "deadline": "2h"}

    (mount,) = [mount for mount in container(**more)["volumeMounts"] if mount["name"] == "catalog-token"]
    (volume,) = [volume for volume in pod(**more)["volumes"] if volume["name"] == "catalog-token"]

    assert mount == {"name": "catalog-token", "mountPath": "/var/run/secrets/catalog", "readOnly": True}
    token = {"audience": "iceberg", "expirationSeconds": 7800, "path": "token"}
    assert volume["projected"] == {"sources": [{"serviceAccountToken": token}]}
    assert "catalog-token" not in str(pod())


@pytest.mark.parametrize(
    "path", ["token", "/token", "/tmp/token", "/etc/lakewright-drift/token", "/var/run/secrets/kubernetes.io/a/token"]
)
def test_token_in_a_folder_with_other_files_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="expected a"):
        settings(catalog_token={"path": path})


def test_one_check_at_a_time_with_limits() -> None:
    spec = cron_job(PLACE, settings(deadline="30m"))["spec"]

    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["successfulJobsHistoryLimit"] == spec["failedJobsHistoryLimit"] == 3
    job = spec["jobTemplate"]["spec"]
    assert (job["backoffLimit"], job["activeDeadlineSeconds"]) == (0, 1800)
    assert container()["resources"]["limits"] == {"memory": "1Gi", "ephemeral-storage": "1Gi"}


def test_pod_is_admitted_by_pod_security_restricted() -> None:
    pod_spec = pod()

    assert pod_spec["securityContext"]["runAsNonRoot"]
    assert pod_spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {next(key for key in volume if key != "name") for volume in pod_spec["volumes"]} == {
        *("configMap", "secret", "emptyDir")
    }


def test_rights_are_to_read_and_to_write_events() -> None:
    rules = cluster_role(PLACE, settings())["rules"]

    writing = [rule for rule in rules if set(rule["verbs"]) - {"get", "list"}]
    assert writing == [{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "get", "patch"]}]
    assert not any("secrets" in rule["resources"] or "*" in str(rule) for rule in rules)
    assert all(
        set(rule["verbs"]) <= {"get", "list"}
        for rule in cluster_role(PLACE, settings(events=False, pushgateway="http://p:1"))["rules"]
    )


def test_secrets_are_readable_only_on_request() -> None:
    rules = cluster_role(PLACE, settings(read_secrets=True))["rules"]

    assert {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]} in rules


def test_only_the_own_memory_may_change() -> None:
    (role,) = [manifest for manifest in drift_check_manifests(PLACE, settings()) if manifest["kind"] == "Role"]

    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["lakekeeper-drift-memory"]}
        | {"verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    ]


def test_secrets_are_files_or_references() -> None:
    container_spec = container(
        secret_variables={"LAKEKEEPER_SECRET": {"name": "client", "key": "secret"}}, variables={"AWS_REGION": "x"}
    )

    entries = {entry["name"]: entry for entry in container_spec["env"]}
    assert entries["PULUMI_CONFIG_PASSPHRASE_FILE"]["value"] == "/etc/lakewright-passphrase/passphrase"
    assert entries["LAKEKEEPER_SECRET"]["valueFrom"] == {"secretKeyRef": {"name": "client", "key": "secret"}}
    assert "PULUMI_CONFIG_PASSPHRASE" not in entries
    assert entries["AWS_REGION"]["value"] == "x"


def test_arguments_name_every_target() -> None:
    arguments = container(
        pushgateway="http://pushgateway.monitoring.svc:9091", textfile_claim="metrics", stacks=["prod-*"]
    )["args"]

    assert arguments == [
        *("ci", "publish", "--events", "lakekeeper/lakekeeper-drift", "--memory", "lakekeeper-drift-memory"),
        *("--pushgateway", "http://pushgateway.monitoring.svc:9091", "--grouping", "check=lakekeeper-lakekeeper-drift"),
        *("--textfile", "/metrics/lakewright-drift.prom", "--", "drift", "--stack", "prod-*"),
    ]
    assert container()["args"][-3:] == ["--", "drift", "--all"]


def test_kubeconfig_has_the_names_of_the_states() -> None:
    text = config_map(PLACE, settings(contexts=["prod-eu"]))["data"]["kubeconfig"]

    kubeconfig = yaml.safe_load(text)
    assert kubeconfig["current-context"] == "prod-eu"
    assert [context["name"] for context in kubeconfig["contexts"]] == ["prod-eu", "in-cluster"]
    assert kubeconfig["users"][0]["user"] == {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}


def test_role_on_aws_is_on_the_service_account() -> None:
    arn = "arn:aws:iam::111122223333:role/lakewright-drift"

    annotated = service_account(PLACE, settings(role_arn=arn))["metadata"]["annotations"]
    assert annotated == {"eks.amazonaws.com/role-arn": arn}
    assert "annotations" not in service_account(PLACE, settings(role_arn=arn, identity="pod-identity"))["metadata"]
    policy = network_policy(PLACE, settings(role_arn=arn, identity="pod-identity"))["spec"]
    assert "169.254.170.23/32" in str(policy["egress"])


def test_policy_admits_nothing_and_reaches_what_is_needed() -> None:
    policy = network_policy(PLACE, settings(pushgateway="http://pushgateway.monitoring.svc:9091"))["spec"]

    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy
    ports = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
    assert ports == {53, 443, 6443, 9091}
    assert "169.254.0.0/16" in str(policy["egress"]), "metadata services are excluded"


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"state": "file:///states"}, "expected the `s3://BUCKET"),
        ({"state": "s3://key:secret@bucket"}, "without credentials"),
        ({"schedule": "nightly"}, "cron schedule of five fields"),
        ({"deadline": "10s"}, "5m to 12h"),
        ({"pushgateway": "pushgateway:9091"}, "address of a pushgateway"),
        ({"pushgateway": "http://pushgateway.monitoring.svc:99999"}, "address of a pushgateway"),
        ({"events": False}, "no result is visible"),
        ({"variables": {"KUBECONFIG": "x"}}, "the check sets this variable itself"),
        ({"passphrase": "plain text"}, "passphrase"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        settings(**wrong)


def test_platform_admits_the_check_to_its_server() -> None:
    spec = parse_platform_spec(production() | {"drift_check": DRIFT_CHECK}, "test")

    policies = {policy["metadata"]["name"]: policy["spec"] for policy in list_network_policies(spec)}

    caller = {"podSelector": {"matchLabels": PLACE.selector}}
    assert caller in policies["lakekeeper"]["ingress"][0]["from"]
    assert caller in policies["lakekeeper-gateway"]["ingress"][0]["from"]


def test_platform_requires_the_image_by_digest() -> None:
    with pytest.raises(SpecError, match=r"drift_check\.image"):
        parse_platform_spec(
            replace_value(production(), "drift_check", DRIFT_CHECK | {"image": "lakewright:latest"}), "test"
        )


def test_every_kind_of_tenants_objects_is_readable() -> None:
    """The kinds in the manifests of tenants, apart from Secrets, which `read_secrets` is about."""
    folder = Path(manifests.__file__).parent
    texts = [file.read_text() for file in folder.rglob("*.py") if "drift_check" not in file.parts]
    kinds = {kind for text in texts for kind in re.findall(r'_object\([^)]*?"([A-Z]\w+)"', text)}
    readable = {plural for group in READABLE.values() for plural in group}

    assert len(kinds) > 10
    assert {f"{kind.lower().removesuffix('y')}{'ies' if kind.endswith('y') else 's'}" for kind in kinds} <= {
        *readable,
        "secrets",
    }


def test_limits_may_change_one_quota_of_each_namespace() -> None:
    """Kubernetes cannot limit the creation to a name."""

    def list_changes(**changes: Any) -> list[tuple[list[str], list[str] | None]]:
        rules = cluster_role(PLACE, settings(**changes))["rules"]
        return [(rule["verbs"], rule.get("resourceNames")) for rule in rules if rule["resources"] == ["resourcequotas"]]

    assert list_changes() == []
    assert list_changes(limits={"image": "jobs@sha256:1"}) == []
    assert list_changes(limits={"image": "jobs@sha256:1", "stop_units": True}) == [
        (["create"], None),
        (["delete"], ["lakewright-compute-limit"]),
    ]


def test_hours_are_read_from_pods_without_a_change() -> None:
    compute = {"image": "jobs@sha256:1"}
    job = drift_check_manifests(PLACE, settings(compute=compute))[-1]
    rules = cluster_role(PLACE, settings(compute=compute))["rules"]

    assert job["metadata"]["name"] == "lakekeeper-drift-compute"
    assert job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"] == [
        "record-compute",
        "--all",
    ]
    assert [rule["verbs"] for rule in rules if rule["resources"] == ["pods"]] == [["get", "list"]]
    assert not [rule for rule in cluster_role(PLACE, settings())["rules"] if "pods" in rule["resources"]]


def test_limits_have_a_job_with_an_image_of_their_own() -> None:
    check, limits = drift_check_manifests(PLACE, settings(limits={"image": "jobs@sha256:1"}))[-2:]

    assert (limits["metadata"]["name"], limits["spec"]["schedule"]) == ("lakekeeper-drift-limits", "37 * * * *")
    pods = [job["spec"]["jobTemplate"]["spec"]["template"]["spec"] for job in (check, limits)]
    assert pods[1]["containers"][0].pop("args") == ["enforce-limits", "--all"]
    assert pods[1]["containers"][0].pop("image") == "jobs@sha256:1"
    del pods[0]["containers"][0]["args"], pods[0]["containers"][0]["image"]
    assert pods[0] == pods[1]


def test_expiry_is_a_second_job_with_the_same_pod() -> None:
    check, expiry = drift_check_manifests(PLACE, settings(stacks=["team-*"], expiry={"schedule": "*/15 * * * *"}))[-2:]

    assert (expiry["metadata"]["name"], expiry["spec"]["schedule"]) == ("lakekeeper-drift-expiry", "*/15 * * * *")
    pods = [job["spec"]["jobTemplate"]["spec"]["template"]["spec"] for job in (check, expiry)]
    assert pods[1]["containers"][0].pop("args") == ["expire", "--stack", "team-*"]
    del pods[0]["containers"][0]["args"]
    assert pods[0] == pods[1]


def test_nothing_is_removed_by_default() -> None:
    jobs = [manifest for manifest in drift_check_manifests(PLACE, settings()) if manifest["kind"] == "CronJob"]

    assert [job["metadata"]["name"] for job in jobs] == ["lakekeeper-drift"]
