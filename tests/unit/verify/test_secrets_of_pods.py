"""Secrets in what pods are given are found, and never printed."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.kubernetes.runtimes import catalog_files
from lakewright.verify.manifests.secrets import find_config_map_secrets, find_pod_secrets
from lakewright.verify.manifests.workloads import list_workloads
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth

SECRET = "hunter2-hunter2"


def pod(env: list[Any] | None = None, volumes: list[Any] | None = None, **container: Any) -> Any:
    spec = {"containers": [{"name": "c", "env": env or [], **container}], "volumes": volumes or []}
    template = {"metadata": {"labels": {}}, "spec": spec}
    (workload,) = list_workloads([{"kind": "Deployment", "metadata": {"name": "unit"}, "spec": {"template": template}}])
    return workload


def secret_volume(name: str) -> dict[str, Any]:
    return {"name": "v", "secret": {"secretName": name}}


@pytest.mark.parametrize(
    ("workload", "evidence"),
    [
        (pod([{"name": "S3_SECRET_ACCESS_KEY", "value": SECRET}]), "variable S3_SECRET_ACCESS_KEY has a value"),
        (pod([{"name": "AWS_ACCESS_KEY_ID", "value": SECRET}]), "variable AWS_ACCESS_KEY_ID has a value"),
        (pod([{"name": "DATABASE_PASSWORD", "value": SECRET}]), "variable DATABASE_PASSWORD has a value"),
        (pod([{"name": "JWT", "value": SECRET}]), "variable JWT has a value"),
        (pod([{"name": "X", "value": f"postgresql://u:{SECRET}@db/x"}]), "variable X: a URL with a password"),
        (pod([{"name": "X", "value": "AKIAIOSFODNN7EXAMPLE"}]), "variable X: an AWS access key"),
        (
            pod([{"name": "X", "valueFrom": {"secretKeyRef": {"name": "db", "key": "k"}}}]),
            "variable X from Secret db",
        ),
        (pod(envFrom=[{"secretRef": {"name": "db"}}]), "all variables of Secret db"),
        (pod(volumes=[secret_volume("db")]), "volume v of Secret db"),
        (pod(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "db"}}]}}]), "volume v of Secret db"),
        (pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "volume v is a folder of the node"),
        (pod(volumes=[{"name": "kube-api-access-x"}]), "volume kube-api-access-x has a token for the cluster's API"),
        (pod(command=["run", "-----BEGIN RSA PRIVATE KEY-----"]), "command of container c: a private key"),
        (pod([{"name": "X", "value": "known-secret"}]), "variable X: a secret of the environment or the spec"),
    ],
)
def test_secrets_are_found(workload: Any, evidence: str) -> None:
    secrets = find_pod_secrets(workload, {"own"}, {"known-secret"})

    assert evidence in secrets
    assert not any(SECRET in text for text in secrets)


def test_own_secrets_references_and_paths_are_none() -> None:
    workload = pod(
        [
            {"name": "LAKEKEEPER_SECRET", "valueFrom": {"secretKeyRef": {"name": "own", "key": "k"}}},
            {"name": "AWS_WEB_IDENTITY_TOKEN_FILE", "value": "/var/run/token"},
            {"name": "TOKEN", "value": "file:/var/run/token"},
            {"name": "SSL_CERT_FILE", "value": "/etc/ca.pem"},
        ],
        [secret_volume("own"), {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
    )

    assert find_pod_secrets(workload, {"own"}) == []


def config_map(**data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}


@pytest.mark.parametrize(
    "text",
    [
        f"spark.sql.catalog.w.s3.secret-access-key {SECRET}",
        f"spark.sql.catalog.w.token={SECRET}",
        f'{{"auth": {{"client_secret": "{SECRET}"}}}}',
        f"catalog:\n  w:\n    credential: id:{SECRET}\n",
    ],
)
def test_secrets_in_files_are_found(text: str) -> None:
    (message,) = find_config_map_secrets(config_map(file=text))

    assert message.startswith("file: a value of `")
    assert SECRET not in message


def test_files_of_units_have_none() -> None:
    auth = ClientCredentialsAuth(
        kind="client-credentials", token_url="https://idp.example/token", client_id="a", client_secret="env:SECRET"
    )
    warehouse = CatalogWarehouse(name="w", id="0")
    config = CatalogConfig(tenant="t", uri="https://x/catalog", project_id="t", auth=auth, warehouses=[warehouse])

    assert find_config_map_secrets(config_map(**catalog_files(config))) == []
