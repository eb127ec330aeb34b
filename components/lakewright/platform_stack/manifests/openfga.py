"""Manifests of OpenFGA beside Lakekeeper, and of the Postgres of a trial."""

from __future__ import annotations

from lakewright.platform_stack.manifests.network_policies import OPENFGA, OPENFGA_MIGRATION, POSTGRES
from lakewright.platform_stack.manifests.objects import (
    LAKEKEEPER_USER,
    Manifest,
    apply_pod_settings,
    cluster_service,
    component_labels,
    compute_short_hash,
    disruption_budget,
    labels,
    make_env,
    make_object,
    make_restricted_container,
    pod_spec,
    spread,
)
from lakewright.platform_stack.settings.authorization import OpenFgaServer
from lakewright.platform_stack.settings.database import TrialDatabase
from lakewright.platform_stack.settings.platform import PlatformSpec, PodResources
from lakewright.platform_stack.settings.server_environment import OPENFGA_PORT, POSTGRES_PORT

DATASTORE_VARIABLE = "OPENFGA_DATASTORE_URI"
KEYS_VARIABLE = "OPENFGA_AUTHN_PRESHARED_KEYS"
POSTGRES_PASSWORD_VARIABLE = "POSTGRES_PASSWORD"  # noqa: S105 - a name
DATABASE_SCRIPT = "create-openfga-database.sql"

OPENFGA_CA = "openfga-ca"
"""Name of the authorities of OpenFGA's database among the platform's files, and end of their ConfigMap's name."""

_CA_FOLDER = "/etc/openfga/database-ca"
_HTTP_PORT = 8080
_RESOURCES = PodResources(cpu="200m", memory="128Mi", memory_limit="512Mi")
_POSTGRES_USER = 999
_TMP_VOLUME = {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}
_TMP_MOUNT = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - a volume of the pod
_DRAIN_SECONDS = 10
"""Seconds that a replica serves on after it left its Service: clients that its end disconnects open their next
connection to another replica."""
_GRACE_SECONDS = _DRAIN_SECONDS + 20
"""OpenFGA ends its requests after SIGTERM: 10 s at most by default (`OPENFGA_SHUTDOWN_TIMEOUT`)."""
_DEFAULT_BATCH = 50
"""Checks in a batch by default, of Lakekeeper and of OpenFGA."""
_SETTINGS = {
    "OPENFGA_DATASTORE_ENGINE": "postgres",
    "OPENFGA_AUTHN_METHOD": "preshared",
    "OPENFGA_LOG_FORMAT": "json",
    "OPENFGA_PLAYGROUND_ENABLED": "false",
}


def openfga_secret_name(spec: PlatformSpec) -> str:
    """Return the name of OpenFGA's Secret, whose keys are variables."""
    return f"{spec.name}-openfga"


def openfga_account(spec: PlatformSpec) -> Manifest:
    """Return OpenFGA's ServiceAccount, which has no rights."""
    return make_object(
        spec, "v1", "ServiceAccount", f"{spec.name}-openfga", OPENFGA, automountServiceAccountToken=False
    )


def openfga_migration(spec: PlatformSpec, server: OpenFgaServer) -> Manifest:
    """Return the Job that migrates OpenFGA's database. Its name changes with its pod."""
    secret = openfga_secret_name(spec)
    volumes, mounts = _list_volumes(spec, server)
    container = make_restricted_container(
        "migrate",
        server.image,
        resources=_RESOURCES,
        args=["migrate"],
        env=make_env(
            {"OPENFGA_DATASTORE_ENGINE": "postgres", **_list_trust_settings(server)},
            {DATASTORE_VARIABLE: (secret, DATASTORE_VARIABLE)},
        ),
        volumeMounts=mounts,
    )
    pod = pod_spec(
        service_account=f"{spec.name}-openfga",
        containers=[container],
        user=LAKEKEEPER_USER,
        group=LAKEKEEPER_USER,
        restartPolicy="Never",
        volumes=volumes,
    )
    template = apply_pod_settings({"metadata": {"labels": labels(spec, OPENFGA_MIGRATION)}, "spec": pod}, server.pods)
    name = f"{spec.name}-openfga-migrate-{compute_short_hash(template)}"
    return make_object(
        spec,
        "batch/v1",
        "Job",
        name,
        OPENFGA_MIGRATION,
        spec={"backoffLimit": 20, "activeDeadlineSeconds": 1800, "template": template},
    )


def list_openfga_settings(spec: PlatformSpec, server: OpenFgaServer) -> dict[str, str]:
    """Return the variables of OpenFGA that depend on settings.

    OpenFGA refuses batches that are larger than its limit, so it has the limit of Lakekeeper.
    """
    openfga = spec.server.authorization.openfga
    batch = (openfga.max_batch_check_size if openfga else None) or _DEFAULT_BATCH
    settings = {
        "OPENFGA_MAX_CHECKS_PER_BATCH_CHECK": str(batch),
        "OPENFGA_DATASTORE_MAX_OPEN_CONNS": str(server.max_open_connections),
        "OPENFGA_DATASTORE_MAX_IDLE_CONNS": str(min(server.max_idle_connections, server.max_open_connections)),
    }
    if server.check_cache_seconds is None:
        return settings
    return settings | {
        "OPENFGA_CHECK_QUERY_CACHE_ENABLED": "true",
        "OPENFGA_CHECK_QUERY_CACHE_TTL": f"{server.check_cache_seconds}s",
        "OPENFGA_CHECK_CACHE_LIMIT": str(server.check_cache_limit),
    }


def _list_trust_settings(server: OpenFgaServer) -> dict[str, str]:
    """Return the variable of Go's TLS for the database's authorities: OpenFGA opens no other connections with TLS."""
    return {"SSL_CERT_FILE": f"{_CA_FOLDER}/ca.pem"} if server.database_ca_bundle else {}


def _list_volumes(spec: PlatformSpec, server: OpenFgaServer) -> tuple[list[Manifest], list[Manifest]]:
    """Return volumes and mounts of a pod of OpenFGA."""
    if not server.database_ca_bundle:
        return [_TMP_VOLUME], [_TMP_MOUNT]
    volume = {"name": OPENFGA_CA, "configMap": {"name": f"{spec.name}-{OPENFGA_CA}"}}
    return [_TMP_VOLUME, volume], [_TMP_MOUNT, {"name": OPENFGA_CA, "mountPath": _CA_FOLDER, "readOnly": True}]


def openfga_deployment(spec: PlatformSpec, server: OpenFgaServer, secrets_hash: object) -> Manifest:
    """Return the Deployment of OpenFGA.

    Lakekeeper has one connection to OpenFGA, opens it again when it ends, and repeats no check. So a replica leaves its
    Service before it ends its connections, and a new replica must be ready for a while before another ends.
    """
    secret, selector = openfga_secret_name(spec), component_labels(spec, OPENFGA)
    settings = _SETTINGS | list_openfga_settings(spec, server) | _list_trust_settings(server)
    volumes, mounts = _list_volumes(spec, server)
    env = make_env(settings, {name: (secret, name) for name in (DATASTORE_VARIABLE, KEYS_VARIABLE)})
    probe = {"grpc": {"port": OPENFGA_PORT}, "periodSeconds": 10, "timeoutSeconds": 3, "failureThreshold": 5}
    container = make_restricted_container(
        "openfga",
        server.image,
        resources=_RESOURCES,
        args=["run"],
        env=env,
        ports=[
            {"name": "grpc", "containerPort": OPENFGA_PORT, "protocol": "TCP"},
            {"name": "http", "containerPort": _HTTP_PORT, "protocol": "TCP"},
        ],
        readinessProbe=probe,
        livenessProbe=probe,
        volumeMounts=mounts,
        lifecycle={"preStop": {"sleep": {"seconds": _DRAIN_SECONDS}}},
    )
    pod = pod_spec(
        service_account=f"{spec.name}-openfga",
        containers=[container],
        user=LAKEKEEPER_USER,
        group=LAKEKEEPER_USER,
        terminationGracePeriodSeconds=_GRACE_SECONDS,
        volumes=volumes,
        **spread(selector),
    )
    template = {
        "metadata": {
            "labels": labels(spec, OPENFGA) | selector,
            "annotations": {"lakewright/secrets-hash": secrets_hash},
        },
        "spec": pod,
    }
    template = apply_pod_settings(template, server.pods)
    return make_object(
        spec,
        "apps/v1",
        "Deployment",
        f"{spec.name}-openfga",
        OPENFGA,
        spec={
            "replicas": server.replicas,
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "minReadySeconds": 5,
            "template": template,
        },
    )


def openfga_service(spec: PlatformSpec) -> Manifest:
    """Return OpenFGA's Service (gRPC)."""
    return cluster_service(spec, f"{spec.name}-openfga", OPENFGA, {"grpc": OPENFGA_PORT})


def openfga_budget(spec: PlatformSpec) -> Manifest:
    """Return OpenFGA's disruption budget."""
    openfga = spec.server.authorization.openfga
    pods = openfga.server.pods if openfga and openfga.server else None
    return disruption_budget(spec, f"{spec.name}-openfga", OPENFGA, min_available=pods.min_available if pods else None)


def postgres_secret_name(spec: PlatformSpec) -> str:
    """Return the name of the Secret with the trial database's password."""
    return f"{spec.name}-postgres"


def postgres_scripts(spec: PlatformSpec) -> Manifest:
    """Return the ConfigMap with the script that makes OpenFGA's database."""
    return make_object(
        spec,
        "v1",
        "ConfigMap",
        f"{spec.name}-postgres",
        POSTGRES,
        data={DATABASE_SCRIPT: "CREATE DATABASE openfga OWNER lakekeeper;\n"},
    )


def postgres_set(spec: PlatformSpec, trial: TrialDatabase) -> Manifest:
    """Return the StatefulSet of a trial's Postgres, with one pod."""
    name, selector = f"{spec.name}-postgres", component_labels(spec, POSTGRES)
    settings = {"POSTGRES_USER": "lakekeeper", "POSTGRES_DB": "lakekeeper", "PGDATA": "/var/lib/postgresql/data/pgdata"}
    env = make_env(settings, {POSTGRES_PASSWORD_VARIABLE: (postgres_secret_name(spec), POSTGRES_PASSWORD_VARIABLE)})
    folders = {
        "data": "/var/lib/postgresql/data",
        "run": "/var/run/postgresql",
        "tmp": "/tmp",  # noqa: S108 - a volume of the pod
        "scripts": "/docker-entrypoint-initdb.d",
    }
    container = make_restricted_container(
        "postgres",
        trial.image,
        resources=PodResources(),
        env=env,
        ports=[{"name": "postgres", "containerPort": POSTGRES_PORT, "protocol": "TCP"}],
        readinessProbe={"exec": {"command": ["pg_isready", "-U", "lakekeeper"]}, "periodSeconds": 5},
        volumeMounts=[{"name": key, "mountPath": path} for key, path in folders.items()],
    )
    pod = pod_spec(
        service_account="default",
        containers=[container],
        user=_POSTGRES_USER,
        group=_POSTGRES_USER,
        volumes=[
            {"name": "run", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "scripts", "configMap": {"name": name}},
        ],
    )
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": trial.storage}}},
    }
    template: Manifest = {
        "metadata": {"labels": labels(spec, POSTGRES) | selector},
        "spec": pod | trial.pods.to_pod_fields(),
    }
    if trial.pods.annotations:
        template["metadata"]["annotations"] = dict(trial.pods.annotations)
    return make_object(
        spec,
        "apps/v1",
        "StatefulSet",
        name,
        POSTGRES,
        spec={
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": selector},
            "template": template,
            "volumeClaimTemplates": [claim],
        },
    )


def postgres_service(spec: PlatformSpec) -> Manifest:
    """Return the Service of the trial's Postgres."""
    return cluster_service(spec, f"{spec.name}-postgres", POSTGRES, {"postgres": POSTGRES_PORT})
