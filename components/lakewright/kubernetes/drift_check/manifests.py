"""Manifests of the drift check. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from lakewright.kubernetes import manifests, network
from lakewright.kubernetes.drift_check.settings import (
    ComputeSettings,
    DriftCheckSettings,
    ExpirySettings,
    LimitSettings,
    parse_deadline,
)
from lakewright.kubernetes.jobs_identity import build_token_volume
from lakewright.kubernetes.manifests import Manifest
from lakewright.kubernetes.runtimes import RUNTIMES
from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings
from lakewright.names.object_names import COMPUTE_LIMIT

READABLE: dict[str, tuple[str, ...]] = {
    "": ("namespaces", "serviceaccounts", "configmaps", "services", "resourcequotas", "limitranges"),
    "apps": ("deployments",),
    "batch": ("cronjobs",),
    "networking.k8s.io": ("networkpolicies",),
    "rbac.authorization.k8s.io": ("roles", "rolebindings"),
    "cert-manager.io": ("certificates",),
}
"""Kinds of the tenants' objects by API group. Secrets are apart, see `DriftCheckSettings.read_secrets`."""
_RBAC = "rbac.authorization.k8s.io"
_CONFIG_DIR, _SECRET_DIR, _METRICS_DIR = "/etc/lakewright-drift", "/etc/lakewright-passphrase", "/metrics"
_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"
_PASSPHRASE_FILE, _METRICS_FILE = "passphrase", "lakewright-drift.prom"
_POD_IDENTITY = "169.254.170.23/32"
"""The agent of EKS Pod Identity on each node."""
_SCRATCH = "1Gi"


@dataclass(frozen=True)
class DriftCheckLocation:
    """The location of the check, and the surroundings that its labels and policies depend on."""

    namespace: str
    name: str = "lakewright-drift"
    """Name of the CronJob and of the other objects."""
    egress: tuple[network.Rule, ...] = ()
    """Further rules of egress, such as to the pods of a Lakekeeper in its namespace."""
    cluster: ClusterSettings = DEFAULT_CLUSTER

    @property
    def expiry_name(self) -> str:
        """Name of the CronJob that removes what has ended."""
        return f"{self.name}-expiry"

    @property
    def limits_name(self) -> str:
        """Name of the CronJob that enforces limits."""
        return f"{self.name}-limits"

    @property
    def compute_name(self) -> str:
        """Name of the CronJob that records hours of computing units."""
        return f"{self.name}-compute"

    @property
    def memory(self) -> str:
        """Name of the ConfigMap with the tenants that had drift."""
        return f"{self.name}-memory"

    @property
    def cluster_name(self) -> str:
        """Name of the objects without a namespace."""
        return f"{self.namespace}-{self.name}"

    @property
    def selector(self) -> dict[str, str]:
        """Labels of the pods, which never change."""
        return {"app.kubernetes.io/name": self.name, "app.kubernetes.io/component": "drift-check"}


def drift_check_manifests(location: DriftCheckLocation, settings: DriftCheckSettings) -> list[Manifest]:
    """Return all objects, the CronJobs last."""
    objects = [
        service_account(location, settings),
        cluster_role(location, settings),
        cluster_role_binding(location),
        memory_role(location),
        memory_role_binding(location),
        config_map(location, settings),
        network_policy(location, settings),
        cron_job(location, settings),
    ]
    if settings.expiry:
        objects.append(expiry_cron_job(location, settings, settings.expiry))
    if settings.limits:
        objects.append(limits_cron_job(location, settings, settings.limits))
    if settings.compute:
        objects.append(compute_cron_job(location, settings, settings.compute))
    return objects


def service_account(location: DriftCheckLocation, settings: DriftCheckSettings) -> Manifest:
    """Return the check's ServiceAccount, with its role on AWS."""
    account = _object(location, "v1", "ServiceAccount", location.name)
    if settings.role_arn and settings.identity == "irsa":
        account["metadata"]["annotations"] = {"eks.amazonaws.com/role-arn": settings.role_arn}
    return account | {"automountServiceAccountToken": False}


def cluster_role(location: DriftCheckLocation, settings: DriftCheckSettings) -> Manifest:
    """Return the rights in all namespaces: to read the tenants' objects, to write Events, and to make quotas."""
    rules: list[dict[str, Any]] = [
        {"apiGroups": [group], "resources": list(kinds), "verbs": ["get", "list"]} for group, kinds in READABLE.items()
    ]
    if settings.compute:
        rules.append({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]})
    if settings.limits and settings.limits.stop_units:
        quota = {"apiGroups": [""], "resources": ["resourcequotas"]}
        rules += [{**quota, "verbs": ["create"]}, {**quota, "resourceNames": [COMPUTE_LIMIT], "verbs": ["delete"]}]
    if settings.read_secrets:
        rules.append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]})
    if settings.events:
        rules.append({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "get", "patch"]})
    return _cluster_object(location, "ClusterRole") | {"rules": rules}


def cluster_role_binding(location: DriftCheckLocation) -> Manifest:
    """Return the binding of these rights to the check."""
    return _cluster_object(location, "ClusterRoleBinding") | {
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": location.cluster_name},
        "subjects": [_subject(location)],
    }


def memory_role(location: DriftCheckLocation) -> Manifest:
    """Return the rights to a ConfigMap: the check's own memory.

    The check creates it, as its data would be drift of the stack. Kubernetes cannot limit creation to a name.
    """
    kind = {"apiGroups": [""], "resources": ["configmaps"]}
    rules = [{**kind, "resourceNames": [location.memory], "verbs": ["get", "patch"]}, {**kind, "verbs": ["create"]}]
    return _object(location, f"{_RBAC}/v1", "Role", location.name) | {"rules": rules}


def memory_role_binding(location: DriftCheckLocation) -> Manifest:
    """Return the binding of these rights to the check."""
    return _object(location, f"{_RBAC}/v1", "RoleBinding", location.name) | {
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": location.name},
        "subjects": [_subject(location)],
    }


def config_map(location: DriftCheckLocation, settings: DriftCheckSettings) -> Manifest:
    """Return the ConfigMap with the kubeconfig of the pod's ServiceAccount."""
    text = yaml.safe_dump(kubeconfig(settings), sort_keys=True)
    return _object(location, "v1", "ConfigMap", location.name) | {"data": {"kubeconfig": text}}


def kubeconfig(settings: DriftCheckSettings) -> dict[str, Any]:
    """Return a kubeconfig that reaches this cluster by each name that the states have for it. It has no secret."""
    names = list(dict.fromkeys([*settings.contexts, "in-cluster"]))
    server = {"server": "https://kubernetes.default.svc", "certificate-authority": f"{_ACCOUNT_DIR}/ca.crt"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": names[0],
        "clusters": [{"name": "in-cluster", "cluster": server}],
        "users": [{"name": "in-cluster", "user": {"tokenFile": f"{_ACCOUNT_DIR}/token"}}],
        "contexts": [{"name": name, "context": {"cluster": "in-cluster", "user": "in-cluster"}} for name in names],
    }


def network_policy(location: DriftCheckLocation, settings: DriftCheckSettings) -> Manifest:
    """Return the policy that allows nothing in, and out only requests that the check needs.

    It needs DNS, the API server, AWS and other servers by HTTPS, the pushgateway and `egress`.
    """
    urls = ["https://any.example", *settings.egress]
    if settings.pushgateway:
        urls.append(settings.pushgateway)
    rules = [
        *network.list_egress_rules(urls, location.cluster),
        network.allow_api_server(location.cluster),
        *location.egress,
    ]
    if settings.role_arn and settings.identity == "pod-identity":
        rules.append({"to": [{"ipBlock": {"cidr": _POD_IDENTITY}}], "ports": [{"protocol": "TCP", "port": 80}]})
    return _object(location, "networking.k8s.io/v1", "NetworkPolicy", location.name) | {
        "spec": {
            "podSelector": {"matchLabels": location.selector},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [rule for index, rule in enumerate(rules) if rule not in rules[:index]],
        }
    }


def arguments(location: DriftCheckLocation, settings: DriftCheckSettings) -> list[str]:
    """Return the arguments of `lakewright`."""
    command_line = ["ci", "publish"]
    if settings.events:
        command_line += ["--events", f"{location.namespace}/{location.name}", "--memory", location.memory]
    if settings.pushgateway:
        command_line += ["--pushgateway", settings.pushgateway, "--grouping", f"check={location.cluster_name}"]
    if settings.textfile_claim:
        command_line += ["--textfile", f"{_METRICS_DIR}/{_METRICS_FILE}"]
    return [*command_line, "--", "drift", *_select_stacks(settings)]


def cron_job(location: DriftCheckLocation, settings: DriftCheckSettings) -> Manifest:
    """Return the CronJob: one check at a time, in one unprivileged pod."""
    return _build_cron_job(location, settings, location.name, settings.schedule, arguments(location, settings))


def expiry_cron_job(location: DriftCheckLocation, settings: DriftCheckSettings, expiry: ExpirySettings) -> Manifest:
    """Return the CronJob that removes what has ended, with the identity and the files of the check."""
    command_line = ["expire", *_select_stacks(settings)]
    return _build_cron_job(location, settings, location.expiry_name, expiry.schedule, command_line)


def limits_cron_job(location: DriftCheckLocation, settings: DriftCheckSettings, limits: LimitSettings) -> Manifest:
    """Return the CronJob that enforces limits, with the identity and the files of the check."""
    command_line = ["enforce-limits", *_select_stacks(settings)]
    with_jobs = settings.model_copy(update={"image": limits.image})
    return _build_cron_job(location, with_jobs, location.limits_name, limits.schedule, command_line)


def compute_cron_job(location: DriftCheckLocation, settings: DriftCheckSettings, compute: ComputeSettings) -> Manifest:
    """Return the CronJob that records hours of computing units, with the identity and the files of the check."""
    command_line = ["record-compute", *_select_stacks(settings)]
    with_jobs = settings.model_copy(update={"image": compute.image})
    return _build_cron_job(location, with_jobs, location.compute_name, compute.schedule, command_line)


def _select_stacks(settings: DriftCheckSettings) -> list[str]:
    return [word for pattern in settings.stacks for word in ("--stack", pattern)] or ["--all"]


def _build_cron_job(
    location: DriftCheckLocation, settings: DriftCheckSettings, name: str, schedule: str, command_line: list[str]
) -> Manifest:
    user = RUNTIMES["spark"].user
    labels = {**settings.pod_labels, **_labels(location)}
    pod = {
        "serviceAccountName": location.name,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "securityContext": manifests.pod_security(user),
        "containers": [_container(settings, command_line)],
        "volumes": _volumes(location, settings),
        **settings.pods.to_pod_fields(),
    }
    spec = {
        "schedule": schedule,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        # After an outage, a missed check starts within an hour; later it is skipped.
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {
            "metadata": {"labels": labels},
            "spec": {
                # The next check comes by schedule. Temporary errors of servers are repeated within a check.
                "backoffLimit": 0,
                "activeDeadlineSeconds": parse_deadline(settings.deadline),
                "template": {"metadata": {"labels": labels, **settings.pods.to_metadata_fields()}, "spec": pod},
            },
        },
    }
    return _object(location, "batch/v1", "CronJob", name) | {"spec": spec}


def _container(settings: DriftCheckSettings, command_line: list[str]) -> dict[str, Any]:
    sizes = settings.resources
    plain = {
        "HOME": "/tmp",  # noqa: S108 - in the pod
        "KUBECONFIG": f"{_CONFIG_DIR}/kubeconfig",
        "PULUMI_BACKEND_URL": settings.state,
        "PULUMI_CONFIG_PASSPHRASE_FILE": f"{_SECRET_DIR}/{_PASSPHRASE_FILE}",
        **settings.variables,
    }
    secret = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": source.name, "key": source.key}}}
        for name, source in sorted(settings.secret_variables.items())
    ]
    return {
        "name": "drift-check",
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["lakewright"],
        "args": command_line,
        "env": [*({"name": name, "value": value} for name, value in sorted(plain.items())), *secret],
        "resources": {
            "requests": {"cpu": sizes.cpu, "memory": sizes.memory, "ephemeral-storage": "100Mi"},
            "limits": {"memory": sizes.memory_limit, "ephemeral-storage": _SCRATCH},
        },
        "securityContext": manifests.container_security(),
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG_DIR, "readOnly": True},
            {"name": "passphrase", "mountPath": _SECRET_DIR, "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - in the pod
            *([{"name": "metrics", "mountPath": _METRICS_DIR}] if settings.textfile_claim else []),
            *_mount_catalog_token(settings),
        ],
    }


def _volumes(location: DriftCheckLocation, settings: DriftCheckSettings) -> list[dict[str, Any]]:
    items = [{"key": settings.passphrase.key, "path": _PASSPHRASE_FILE}]
    volumes: list[dict[str, Any]] = [
        {"name": "config", "configMap": {"name": location.name}},
        {"name": "passphrase", "secret": {"secretName": settings.passphrase.name, "items": items}},
        {"name": "scratch", "emptyDir": {"sizeLimit": _SCRATCH}},
    ]
    if claim := settings.textfile_claim:
        volumes.append({"name": "metrics", "persistentVolumeClaim": {"claimName": claim}})
    if token := settings.catalog_token:
        # A run reads the token of `lakekeeper.auth` once, at its start.
        seconds = parse_deadline(settings.deadline) + 600
        volumes.append(build_token_volume("catalog-token", PurePosixPath(token.path).name, token.audience, seconds))
    return volumes


def _mount_catalog_token(settings: DriftCheckSettings) -> list[dict[str, Any]]:
    if settings.catalog_token is None:
        return []
    folder = str(PurePosixPath(settings.catalog_token.path).parent)
    return [{"name": "catalog-token", "mountPath": folder, "readOnly": True}]


def _labels(location: DriftCheckLocation) -> dict[str, str]:
    return {**location.selector, "app.kubernetes.io/managed-by": "lakewright"}


def _subject(location: DriftCheckLocation) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": location.name, "namespace": location.namespace}


def _object(location: DriftCheckLocation, api_version: str, kind: str, name: str) -> Manifest:
    metadata: dict[str, Any] = {"name": name, "namespace": location.namespace, "labels": _labels(location)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _cluster_object(location: DriftCheckLocation, kind: str) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {"name": location.cluster_name, "labels": _labels(location)},
    }
