"""Spark Connect of a computing unit: token and certificate come from Secrets, and the command has neither."""

from __future__ import annotations

import base64
import json
from typing import Any

from lakewright.credentials.random_secret import RandomSecretProvider
from lakewright.kubernetes import connect, manifests
from lakewright.kubernetes.connect import CertificateIssuer, ConnectAccess
from lakewright.kubernetes.jobs_identity import JobsSecret
from lakewright.spec import ComputingUnitSpec, TenantSpec, parse_spec
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth, TokenFileAuth

TENANT: TenantSpec = parse_spec(
    {
        "version": 1,
        "environment": "production",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "executions"}],
        "computing_units": [
            {"name": "notebook", "runtime": "spark", "warehouse": "executions"},
            {"name": "workflows", "runtime": "texera", "warehouse": "executions"},
        ],
    },
    "spec",
)
SPARK, TEXERA = TENANT.computing_units
CATALOG = CatalogConfig(
    tenant="acme",
    uri="https://lakekeeper.example/catalog",
    project_id="acme",
    auth=TokenFileAuth(kind="token-file", path="/var/run/secrets/lakekeeper/token"),
    warehouses=[CatalogWarehouse(name="executions", id="0198")],
)
ISSUED = ConnectAccess(issuer=CertificateIssuer(name="platform"))


def _pod(unit: ComputingUnitSpec, access: ConnectAccess) -> dict[str, Any]:
    return manifests.deployment_spec(TENANT, unit, CATALOG, "image", access=access)["template"]["spec"]


def test_command_finds_its_secrets_where_they_are_mounted() -> None:
    pod = _pod(SPARK, ISSUED)
    (container,) = pod["containers"]

    assert container["command"][:2] == ["lakewright-spark", "connect-server"]
    options = dict(zip(container["command"][2::2], container["command"][3::2], strict=True))
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    secrets = {volume["name"]: volume["secret"] for volume in pod["volumes"] if "secret" in volume}
    (item,) = secrets["connect-token"]["items"]
    assert options["--token-file"] == f"{mounted['connect-token']}/{item['path']}"
    assert options["--tls"] == mounted["connect-tls"]
    assert {secret["secretName"] for secret in secrets.values()} == {"notebook-connect", "notebook-tls"}
    assert {secret["defaultMode"] for secret in secrets.values()} == {0o440}
    assert not [variable for variable in container["env"] if "valueFrom" in variable]


def test_environment_may_name_its_own_secrets() -> None:
    access = ConnectAccess(token_secret=JobsSecret(name="clients", key="spark"), tls_secret="wildcard")

    volumes = {volume["name"]: volume["secret"] for volume in connect.volumes(SPARK, access)}

    assert volumes["connect-token"]["secretName"] == "clients"
    assert volumes["connect-token"]["items"] == [{"key": "spark", "path": "token"}]
    assert volumes["connect-tls"]["secretName"] == "wildcard"
    assert connect.secret_names(SPARK, access) == {"clients", "wildcard"}


def test_other_runtimes_have_no_spark_connect() -> None:
    pod = _pod(TEXERA, ISSUED)

    assert "command" not in pod["containers"][0]
    assert connect.secret_names(TEXERA, ISSUED) == frozenset()
    assert not [volume for volume in pod["volumes"] if volume["name"].startswith("connect-")]


def test_certificate_has_the_names_of_the_services() -> None:
    certificate = manifests.certificate(TENANT, SPARK, CertificateIssuer(name="platform", kind="Issuer"))

    assert certificate["metadata"]["namespace"] == "tenant-acme"
    spec = certificate["spec"]
    assert spec["secretName"] == "notebook-tls"
    assert {"notebook.tenant-acme.svc", "notebook.computing-units.tenant-acme.svc.cluster.local"} <= set(
        spec["dnsNames"]
    )
    assert spec["privateKey"]["encoding"] == "PKCS8"
    assert spec["issuerRef"] == {"group": "cert-manager.io", "kind": "Issuer", "name": "platform"}


def test_token_is_random_and_fits_into_an_address() -> None:
    first, second = (RandomSecretProvider().create({"value": None}) for _ in range(2))

    token = (first.outs or {})["value"]
    assert token != (second.outs or {})["value"]
    assert len(token) >= 43
    assert token.replace("-", "").replace("_", "").isalnum()
    assert token not in first.id
    assert base64.b64decode(connect.encode_token_data(token)["token"]).decode() == token


def test_spark_reads_the_catalog_credential_itself() -> None:
    credentials = ClientCredentialsAuth(
        kind="client-credentials",
        token_url="https://idp.example/token",
        client_id="acme",
        client_secret="file:/var/run/secrets/lakekeeper/secret",
        audience="lakekeeper",
    )

    by_token = CATALOG.spark_properties_with_references()
    by_client = CATALOG.model_copy(update={"auth": credentials}).spark_properties_with_references()

    prefix = "spark.sql.catalog.executions"
    assert by_token[f"{prefix}.rest.auth.type"] == "lakewright.spark.ReferencedAuthManager"
    assert by_token[f"{prefix}.lakewright.auth.token"] == "file:/var/run/secrets/lakekeeper/token"
    assert by_client[f"{prefix}.lakewright.auth.client-secret"] == "file:/var/run/secrets/lakekeeper/secret"
    assert by_client[f"{prefix}.lakewright.auth.audience"] == "lakekeeper"
    assert f"{prefix}.oauth2-server-uri" not in by_client


def test_missing_audience_is_not_written() -> None:
    """Jobs of the first release refuse fields that they do not know."""
    auth = ClientCredentialsAuth(
        kind="client-credentials", token_url="https://idp.example/t", client_id="a", client_secret="env:A"
    )

    written = json.loads(CATALOG.model_copy(update={"auth": auth}).to_json())

    assert "audience" not in written["auth"]
