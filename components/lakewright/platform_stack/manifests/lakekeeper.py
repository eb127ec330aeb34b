"""Manifests of the Lakekeeper server and its migration Job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from lakewright.platform_stack.manifests.gateway_config import CONNECTION_SECONDS
from lakewright.platform_stack.manifests.objects import (
    LAKEKEEPER_GROUP,
    LAKEKEEPER_USER,
    Manifest,
    add_extra_parts,
    apply_pod_settings,
    cluster_object,
    cluster_service,
    component_labels,
    compute_short_hash,
    disruption_budget,
    http_probe,
    labels,
    make_env,
    make_object,
    make_restricted_container,
    pod_spec,
    spread,
)
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.server_environment import (
    CA_FILE,
    DATABASE_CA_FILE,
    METRICS_PORT,
    SECRET_FILES,
    SERVER_PORT,
    ServerEnvironment,
)
from lakewright.platform_stack.settings.types import parse_interval
from lakewright.platform_stack.settings.variables import PREFIX

SERVER = "server"
MIGRATION = "migration"
RESTRICTED = "restricted"
SecretKeys = Mapping[str, tuple[str, str]]
"""Secret and key by variable."""

_CONNECTED_SECONDS = 3 * CONNECTION_SECONDS
"""Seconds until all connections of the gateway have ended, after the server left its Service."""
_STOP_SECONDS = 20
"""Seconds in which Lakekeeper ends all requests and its other services after SIGTERM (`serve.rs`, 0.11 to 0.14)."""
_DEFAULT_MAX_SECONDS = 30
"""Seconds of a request, Lakekeeper's default of `server.requests.max_time`."""
_BINARY = "/home/nonroot/lakekeeper"
_MIGRATION_VARIABLES = ("PG_", "OPENFGA__", "AUTHZ_BACKEND", "SECRET_BACKEND", "KV2__")
"""Beginnings of the variables that a migration reads, without the prefix."""


def compute_drain_seconds(spec: PlatformSpec) -> int:
    """Return the seconds that a server serves on after it left its Service.

    Its last request may begin when the last connection of the gateway ends. Lakekeeper ends that request 20 seconds
    after SIGTERM, whatever the grace period is, so SIGTERM is delayed by the longest time of a request beyond these.
    """
    max_time = spec.server.requests.max_time
    longest = _DEFAULT_MAX_SECONDS if max_time is None else parse_interval(max_time)
    return _CONNECTED_SECONDS + max(0, math.ceil(longest) - _STOP_SECONDS)


def namespace(spec: PlatformSpec) -> Manifest:
    """Return the platform's namespace, which admits restricted pods only."""
    manifest = cluster_object(spec, "v1", "Namespace", spec.namespace)
    modes = {f"pod-security.kubernetes.io/{mode}": RESTRICTED for mode in ("enforce", "audit", "warn")}
    manifest["metadata"]["labels"] |= modes
    return manifest


def server_account(spec: PlatformSpec) -> Manifest:
    """Return the ServiceAccount of the server, with the annotation of its AWS role."""
    manifest = make_object(spec, "v1", "ServiceAccount", spec.name, SERVER, automountServiceAccountToken=False)
    if spec.aws and spec.aws.kind == "irsa":
        manifest["metadata"]["annotations"] = {"eks.amazonaws.com/role-arn": spec.aws.role_arn}
    return manifest


def migration_account(spec: PlatformSpec) -> Manifest:
    """Return the ServiceAccount of the migration, which has no rights."""
    return make_object(
        spec, "v1", "ServiceAccount", f"{spec.name}-migration", MIGRATION, automountServiceAccountToken=False
    )


def make_token_review_role(spec: PlatformSpec) -> Manifest:
    """Return the ClusterRole that may have tokens reviewed, and nothing else."""
    rule = {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}
    return cluster_object(
        spec, "rbac.authorization.k8s.io/v1", "ClusterRole", _format_token_review_name(spec), rules=[rule]
    )


def make_token_review_binding(spec: PlatformSpec) -> Manifest:
    """Return the binding of that role to the server's ServiceAccount."""
    name = _format_token_review_name(spec)
    return cluster_object(
        spec,
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        name,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        subjects=[{"kind": "ServiceAccount", "name": spec.server_account, "namespace": spec.namespace}],
    )


def _format_token_review_name(spec: PlatformSpec) -> str:
    return f"{spec.namespace}:{spec.name}:token-review"


def ca_config_map(spec: PlatformSpec, name: str, pem: str) -> Manifest:
    """Return a ConfigMap with certificate authorities."""
    return make_object(spec, "v1", "ConfigMap", f"{spec.name}-{name}", SERVER, data={"ca.pem": pem})


def migration_job(
    spec: PlatformSpec, environment: ServerEnvironment, secrets: SecretKeys, authorities: Mapping[str, str]
) -> Manifest:
    """Return the Job that migrates the database, with the variables that a migration reads.

    A Job cannot change, so its name has a hash of its pod's template: a new image, database or setting of pods makes
    another Job, other settings do not. It waits for the database, and for OpenFGA by its retries. Migrating again
    changes nothing.
    """
    beginnings = tuple(PREFIX + name for name in _MIGRATION_VARIABLES)
    plain = {name: value for name, value in environment.plain.items() if name.startswith((*beginnings, "SSL_"))}
    keys = {name: key for name, key in secrets.items() if name.startswith(beginnings)}
    env = make_env(plain | {"RUST_LOG": "info"}, keys)
    volumes, mounts = _volumes(spec, authorities)
    wait = _container(spec, "wait-for-database", ["wait-for-db", "-d", "-r", "60", "-b", "5"], env, mounts)
    migrate = _container(spec, "migrate", ["migrate"], env, mounts)
    pod = pod_spec(
        service_account=f"{spec.name}-migration",
        containers=[migrate],
        user=LAKEKEEPER_USER,
        group=LAKEKEEPER_GROUP,
        initContainers=[wait],
        restartPolicy="Never",
        volumes=volumes,
    )
    template = {"metadata": {"labels": labels(spec, MIGRATION)}, "spec": pod}
    template = apply_pod_settings(add_extra_parts(template, spec.server.extra_pod_parts), spec.server.pods)
    return make_object(
        spec,
        "batch/v1",
        "Job",
        f"{spec.name}-migrate-{compute_short_hash(template)}",
        MIGRATION,
        spec={"backoffLimit": 6, "activeDeadlineSeconds": 1800, "template": template},
    )


def server_deployment(
    spec: PlatformSpec,
    environment: ServerEnvironment,
    secrets: SecretKeys,
    authorities: Mapping[str, str],
    secrets_hash: Any,
) -> Manifest:
    """Return the Deployment of the server. A change of secrets or mounted files changes `secrets_hash` and rolls pods.

    A pod starts only on a database that its own release migrated: `wait-for-db -m` fails on an older database, and from
    0.13 on also on a newer database.
    """
    volumes, mounts = _volumes(spec, authorities, environment.files)
    env, drain_seconds = make_env(environment.plain, secrets), compute_drain_seconds(spec)
    wait = _container(spec, "wait-for-migration", ["wait-for-db", "-d", "-m", "-r", "60", "-b", "5"], env, mounts)
    serve = _container(
        spec,
        "lakekeeper",
        ["serve"],
        env,
        mounts,
        ports=[
            {"name": "http", "containerPort": SERVER_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        startupProbe=http_probe("/health", SERVER_PORT, failures=30),
        readinessProbe=http_probe("/health", SERVER_PORT),
        # Only a server that does not respond is restarted: a failing database does not make all replicas restart.
        livenessProbe={"tcpSocket": {"port": SERVER_PORT}, "periodSeconds": 10, "failureThreshold": 6},
        lifecycle={"preStop": {"sleep": {"seconds": drain_seconds}}},
    )
    selector = component_labels(spec, SERVER)
    pod = pod_spec(
        service_account=spec.server_account,
        containers=[serve],
        user=LAKEKEEPER_USER,
        group=LAKEKEEPER_GROUP,
        initContainers=[wait],
        # More than Lakekeeper takes to stop: only a process that hangs is killed.
        terminationGracePeriodSeconds=drain_seconds + 2 * _STOP_SECONDS,
        volumes=volumes,
        **spread(selector),
    )
    # The server asks the cluster's API to review tokens, with the token of its ServiceAccount.
    pod["automountServiceAccountToken"] = spec.server.authentication.kubernetes is not None
    replicas = {} if spec.server.autoscaling else {"replicas": spec.server.replicas}
    annotations = {
        "lakewright/secrets-hash": secrets_hash,
        "prometheus.io/scrape": "true",
        "prometheus.io/path": "/metrics",
        "prometheus.io/port": str(METRICS_PORT),
    }
    template = {"metadata": {"labels": labels(spec, SERVER), "annotations": annotations}, "spec": pod}
    extra = spec.server.extra_pod_parts
    template = apply_pod_settings(add_extra_parts(template, extra), spec.server.pods)
    # Not in the migration's pods, which would never end beside them.
    template["spec"]["containers"] += extra.containers
    return make_object(
        spec,
        "apps/v1",
        "Deployment",
        spec.name,
        SERVER,
        spec={
            **replicas,
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "minReadySeconds": 5,
            "template": template,
        },
    )


def server_service(spec: PlatformSpec) -> Manifest:
    """Return the Service of the server, which only the gateway and administrators reach."""
    return cluster_service(spec, spec.name, SERVER, {"http": SERVER_PORT})


def server_budget(spec: PlatformSpec) -> Manifest:
    """Return the server's disruption budget."""
    return disruption_budget(spec, spec.name, SERVER, min_available=spec.server.pods.min_available)


def autoscaler(spec: PlatformSpec) -> Manifest | None:
    """Return the autoscaler; None without `autoscaling`."""
    scaling = spec.server.autoscaling
    if scaling is None:
        return None
    target = {"type": "Utilization", "averageUtilization": scaling.cpu_percent}
    return make_object(
        spec,
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        spec.name,
        SERVER,
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": spec.name},
            "minReplicas": scaling.min,
            "maxReplicas": scaling.max,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    )


def _container(
    spec: PlatformSpec,
    name: str,
    arguments: list[str],
    env: list[dict[str, Any]],
    mounts: list[dict[str, Any]],
    **parts: Any,
) -> dict[str, Any]:
    return make_restricted_container(
        name,
        spec.server.image,
        resources=spec.server.resources,
        command=[_BINARY, *arguments],
        env=env,
        volumeMounts=mounts,
        **parts,
    )


def _volumes(
    spec: PlatformSpec, authorities: Mapping[str, str], files: Iterable[str] = ()
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return volumes and mounts of certificate authorities and secret files.

    `authorities` has the name of the ConfigMap by `ca` and `database-ca`.
    """
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]
    mounts: list[dict[str, Any]] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108 - a volume of the pod
    folders = {"ca": CA_FILE, "database-ca": DATABASE_CA_FILE}
    for name, config_map in sorted(authorities.items()):
        volumes.append({"name": name, "configMap": {"name": config_map}})
        mounts.append({"name": name, "mountPath": folders[name].rpartition("/")[0], "readOnly": True})
    if items := [{"key": file, "path": file} for file in sorted(files)]:
        secret = {"secretName": f"{spec.name}-files", "items": items, "defaultMode": 0o440}
        volumes.append({"name": "secrets", "secret": secret})
        mounts.append({"name": "secrets", "mountPath": SECRET_FILES, "readOnly": True})
    return volumes, mounts
