"""The program of a Lakekeeper image, played by the sandbox: its variables, its commands, and its secrets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
import yaml
from lakewright_sandbox.lakekeeper.authentication.token_review import MissingServiceAccountError, TokenReviewer
from lakewright_sandbox.lakekeeper.database.connection import Database
from lakewright_sandbox.lakekeeper.database.models import SecretRow
from lakewright_sandbox.lakekeeper.program.environment import EnvironmentRefusedError, Variables
from lakewright_sandbox.lakekeeper.program.migration import DatabaseNotReadyError, migrate, wait_for_database
from lakewright_sandbox.lakekeeper.program.permissions_server import PermissionChecks, PermissionsServer
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.storage.secrets import DatabaseSecrets
from sqlalchemy import select
from starlette.responses import Response
from starlette.testclient import TestClient

from tests.postgres_server import postgres

RELEASE = "0.13.3"
NEEDED = {
    "LAKEKEEPER__PG_HOST_W": "db.example",
    "LAKEKEEPER__PG_DATABASE": "lakekeeper",
    "LAKEKEEPER__PG_USER": "lakekeeper",
    "LAKEKEEPER__PG_PASSWORD": '"0123"',
    "LAKEKEEPER__PG_SSL_MODE": "verify-full",
    "LAKEKEEPER__PG_ENCRYPTION_KEY": "a key",
}


def test_variables_become_settings() -> None:
    environ = NEEDED | {
        "LAKEKEEPER__PG_HOST_R": "db-ro.example",
        "LAKEKEEPER__PG_SSL_ROOT_CERT": "/etc/ca.pem",
        "LAKEKEEPER__OPENID_AUDIENCE": "lakekeeper,other",
        "LAKEKEEPER__ENABLE_DEFAULT_PROJECT": "false",
        "LAKEKEEPER__OPENID_PROVIDERS__ENTRA__URI": "https://idp.example",
        "LAKEKEEPER__ENABLE_KUBERNETES_AUTHENTICATION": "true",
        "LAKEKEEPER__KUBERNETES_AUTHENTICATION_AUDIENCE": "lakekeeper,cluster",
        "LAKEKEEPER__KUBERNETES_AUTHENTICATION_SUBJECT_SOURCE": "username",
    }

    settings = Variables(environ, RELEASE).build_settings()

    options = "sslmode=verify-full&connect_timeout=5&sslrootcert=%2Fetc%2Fca.pem"
    assert settings.database == f"postgresql+psycopg://lakekeeper:0123@db.example:5432/lakekeeper?{options}"
    assert settings.read_database == settings.database.replace("db.example", "db-ro.example")
    assert settings.openid_audiences == ("lakekeeper", "other")
    assert (settings.default_project, settings.encryption_key) == ("", "a key")
    assert (settings.in_cluster, settings.kubernetes_audiences) == (True, ("lakekeeper", "cluster"))
    assert settings.kubernetes_subject == "username"


@pytest.mark.parametrize(
    ("release", "variable"),
    [
        (RELEASE, "LAKEKEEPER__PG_HOST_WRITE"),
        (RELEASE, "LAKEKEEPER__METRICS_PORT"),
        (RELEASE, "LAKEKEEPER__PG_SCHEMA"),
        ("0.12.4", "LAKEKEEPER__ROLE__MAX_NESTING_DEPTH"),
    ],
)
def test_a_variable_of_no_or_another_release_is_refused(release: str, variable: str) -> None:
    with pytest.raises(EnvironmentRefusedError) as refused:
        Variables(NEEDED | {variable: "a secret"}, release)

    assert str(refused.value) == f"{variable}: Lakekeeper {release} does not have this variable"


def test_what_the_stand_in_cannot_do_is_refused() -> None:
    with pytest.raises(EnvironmentRefusedError, match="LEGACY_SERVICEACCOUNT: the stand-in cannot"):
        Variables(NEEDED | {"LAKEKEEPER__KUBERNETES_AUTHENTICATION_ACCEPT_LEGACY_SERVICEACCOUNT": "true"}, RELEASE)


def test_requests_need_openfga() -> None:
    """The stand-in has no requests of OpenFGA's own, but asks whether it serves, on one connection."""
    server, port = serve_health()
    permissions = PermissionsServer(f"http://127.0.0.1:{port}")
    client = TestClient(PermissionChecks(Response("ok"), permissions))
    permissions.require()
    assert client.get("/catalog/v1/config").status_code == 200

    server.stop(None).wait()

    response = client.get("/catalog/v1/config")
    assert (response.status_code, response.json()["error"]["type"]) == (503, "AuthorizationBackendError")
    with pytest.raises(EnvironmentRefusedError, match="OpenFGA cannot be reached"):
        permissions.require()


def serve_health() -> tuple[grpc.Server, int]:
    """Serve gRPC's health check on a free port, as OpenFGA does."""
    server = grpc.server(ThreadPoolExecutor(1))
    check = grpc.unary_unary_rpc_method_handler(lambda *_: b"\x08\x01")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def test_token_reviews_need_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(MissingServiceAccountError, match="tokens of ServiceAccounts cannot be reviewed"):
        TokenReviewer(None, ("lakekeeper",), "uid")


def test_token_is_refused_while_the_cluster_does_not_respond(tmp_path: Path) -> None:
    """As the real server does: every failure of a review is a 401."""
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    document = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}]}
    kubeconfig.write_text(yaml.safe_dump(document | {"current-context": "c"}))

    with pytest.raises(ApiError, match="not accepted") as refused:
        TokenReviewer(kubeconfig, ("lakekeeper",), "uid").principal("token")

    assert refused.value.status == 401


def test_a_secret_needs_the_key_that_encrypted_it(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/catalog.db")
    first = DatabaseSecrets("first")
    with database.write() as session:
        secret_id = first.add_secret(session, {"secret": "of a store"})

    with database.read() as session:
        stored = session.scalars(select(SecretRow)).one().payload
        assert "of a store" not in str(stored)
        assert first.read_secret(session, secret_id) == {"secret": "of a store"}
        with pytest.raises(ApiError, match="Error fetching secret"):
            DatabaseSecrets("second").read_secret(session, secret_id)


def test_a_release_waits_for_its_own_migration() -> None:
    def wait(release: str) -> None:
        wait_for_database(url, release=release, retries=1, backoff=0, sleep=lambda _: None)

    with postgres() as plain_url:
        url = plain_url.replace("postgresql://", "postgresql+psycopg://")
        with pytest.raises(DatabaseNotReadyError, match="not ready"):
            wait("0.12.4")
        migrate(url, "0.12.4")
        wait("0.12.4")
        with pytest.raises(DatabaseNotReadyError, match="not ready"):
            wait(RELEASE)
        migrate(url, RELEASE)
        migrate(url, RELEASE)
        wait(RELEASE)
        migrate(url, "0.14.0")
        with pytest.raises(DatabaseNotReadyError, match=f"migrated by 0.14.0, which is newer than {RELEASE}"):
            wait(RELEASE)
