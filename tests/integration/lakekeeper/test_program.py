"""The program of a Lakekeeper image, played by the sandbox: its variables, its commands, and its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_sandbox.lakekeeper.database.connection import Database
from lakewright_sandbox.lakekeeper.database.models import SecretRow
from lakewright_sandbox.lakekeeper.program.environment import EnvironmentRefusedError, Variables
from lakewright_sandbox.lakekeeper.program.migration import DatabaseNotReadyError, migrate, wait_for_database
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.storage.secrets import DatabaseSecrets
from sqlalchemy import select

from tests.spark.databases import postgres

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
    }

    settings = Variables(environ, RELEASE).build_settings()

    options = "sslmode=verify-full&connect_timeout=5&sslrootcert=%2Fetc%2Fca.pem"
    assert settings.database == f"postgresql+psycopg://lakekeeper:0123@db.example:5432/lakekeeper?{options}"
    assert settings.read_database == settings.database.replace("db.example", "db-ro.example")
    assert settings.openid_audiences == ("lakekeeper", "other")
    assert (settings.default_project, settings.encryption_key) == ("", "a key")


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
    with pytest.raises(EnvironmentRefusedError, match="KUBERNETES_AUTHENTICATION: the stand-in cannot"):
        Variables(NEEDED | {"LAKEKEEPER__ENABLE_KUBERNETES_AUTHENTICATION": "true"}, RELEASE)


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
