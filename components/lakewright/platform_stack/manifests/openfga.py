"""Manifests of OpenFGA beside Lakekeeper, and of the Postgres of a trial."""

from __future__ import annotations

from lakewright.platform_stack.manifests.network_policies import OPENFGA, OPENFGA_MIGRATION, POSTGRES
from lakewright.platform_stack.manifests.objects import (
    LAKEKEEPER_USER,
    Manifest,
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
from lakewright.platform_stack.settings.platform import PlatformSpec, PodResources
from lakewright.platform_stack.settings.server_environment import OPENFGA_PORT, POSTGRES_PORT

DATASTORE_VARIABLE = "OPENFGA_DATASTORE_URI"
KEYS_VARIABLE = "OPENFGA_AUTHN_PRESHARED_KEYS"
POSTGRES_PASSWORD_VARIABLE = "POSTGRES_PASSWORD"  # noqa: S105 - a name
DATABASE_SCRIPT = "create-openfga-database.sql"

_HTTP_PORT = 8080
_RESOURCES = PodResources(cpu="200m", memory="128Mi", memory_limit="512Mi")
_POSTGRES_USER = 999
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
    container = make_restricted_container(
        "migrate",
        server.image,
        resources=_RESOURCES,
        args=["migrate"],
        env=make_env({"OPENFGA_DATASTORE_ENGINE": "postgres"}, {DATASTORE_VARIABLE: (secret, DATASTORE_VARIABLE)}),
    )
    pod = pod_spec(
        service_account=f"{spec.name}-openfga",
        containers=[container],
        user=LAKEKEEPER_USER,
        group=LAKEKEEPER_USER,
        restartPolicy="Never",
    )
    template = {"metadata": {"labels": labels(spec, OPENFGA_MIGRATION)}, "spec": pod}
    name = f"{spec.name}-openfga-migrate-{compute_short_hash(template)}"
    return make_object(
        spec,
        "batch/v1",
        "Job",
        name,
        OPENFGA_MIGRATION,
        spec={"backoffLimit": 20, "activeDeadlineSeconds": 1800, "template": template},
    )


def openfga_deployment(spec: PlatformSpec, server: OpenFgaServer, secrets_hash: object) -> Manifest:
    """Return the Deployment of OpenFGA."""
    secret, selector = openfga_secret_name(spec), component_labels(spec, OPENFGA)
    env = make_env(_SETTINGS, {name: (secret, name) for name in (DATASTORE_VARIABLE, KEYS_VARIABLE)})
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
    )
    pod = pod_spec(
        service_account=f"{spec.name}-openfga",
        containers=[container],
        user=LAKEKEEPER_USER,
        group=LAKEKEEPER_USER,
        **spread(selector),
    )
    template = {
        "metadata": {
            "labels": labels(spec, OPENFGA) | selector,
            "annotations": {"lakewright/secrets-hash": secrets_hash},
        },
        "spec": pod,
    }
    return make_object(
        spec,
        "apps/v1",
        "Deployment",
        f"{spec.name}-openfga",
        OPENFGA,
        spec={"replicas": server.replicas, "selector": {"matchLabels": selector}, "template": template},
    )


def openfga_service(spec: PlatformSpec) -> Manifest:
    """Return OpenFGA's Service (gRPC)."""
    return cluster_service(spec, f"{spec.name}-openfga", OPENFGA, {"grpc": OPENFGA_PORT})


def openfga_budget(spec: PlatformSpec) -> Manifest:
    """Return OpenFGA's disruption budget."""
    return disruption_budget(spec, f"{spec.name}-openfga", OPENFGA)


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


def postgres_set(spec: PlatformSpec, image: str, storage: str) -> Manifest:
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
        image,
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
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
    }
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
            "template": {"metadata": {"labels": labels(spec, POSTGRES) | selector}, "spec": pod},
            "volumeClaimTemplates": [claim],
        },
    )


def postgres_service(spec: PlatformSpec) -> Manifest:
    """Return the Service of the trial's Postgres."""
    return cluster_service(spec, f"{spec.name}-postgres", POSTGRES, {"postgres": POSTGRES_PORT})
