"""Secret Spark properties, and where they may be sent."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright_spark.catalog.auth import ClientCredentialsAuth, PasswordAuth, S3Keys, TokenAuth
from lakewright_spark.catalog.config import REDACTION, CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import IdentityError
from lakewright_spark.session.builder import spark_session
from lakewright_spark.session.secrets import (
    check_event_log,
    check_executors,
    check_redaction,
    split_secrets,
)

ENVIRON = {"SECRET": "s3cr3t", "KEY": "AKIA"}
CREDENTIALS = ClientCredentialsAuth(
    kind="client-credentials", token_url="https://idp.example/token", client_id="job", client_secret="env:SECRET"
)
ENCRYPTED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def create_config(**changes: Any) -> CatalogConfig:
    warehouse = CatalogWarehouse(name="lake", **changes.pop("warehouse", {}))
    return CatalogConfig(tenant="acme", warehouses=[warehouse], **changes)


CONFIGS = [
    create_config(kind="rest", uri="https://c.example", auth=CREDENTIALS),
    create_config(kind="rest", uri="https://c.example", auth=TokenAuth(kind="token", token="env:SECRET")),
    create_config(
        kind="jdbc",
        uri="postgresql://db.example/iceberg",
        auth=PasswordAuth(kind="password", user="lakewright", password="env:SECRET"),
        warehouse={
            "location": "s3://bucket/x",
            "s3_keys": S3Keys(access_key_id="env:KEY", secret_access_key="env:SECRET"),
        },
    ),
]


@pytest.mark.parametrize("config", CONFIGS, ids=["client credentials", "token", "password and keys"])
def test_no_secret_on_the_command_line(config: CatalogConfig) -> None:
    secrets = config.spark_secrets(ENVIRON)
    public, secret = split_secrets({**config.spark_properties(), **secrets, "spark.authenticate.secret": "s3cr3t"})
    assert "s3cr3t" not in repr(public)
    assert secret["spark.authenticate.secret"] == "s3cr3t"
    assert set(secrets) - set(secret) <= {"spark.sql.catalog.lake.jdbc.user"}
    assert (
        public.items()
        >= {"spark.sql.catalog.lake.uri": config.spark_properties()["spark.sql.catalog.lake.uri"]}.items()
    )


@pytest.mark.parametrize("master", ["spark://one:7077", "k8s://https://api.example"])
@pytest.mark.parametrize("config", CONFIGS, ids=["client credentials", "token", "password and keys"])
def test_secrets_require_encryption_to_executors(master: str, config: CatalogConfig) -> None:
    secrets = config.spark_secrets(ENVIRON)
    for settings in ({}, {"spark.authenticate": "true"}, ENCRYPTED | {"spark.network.crypto.enabled": "false"}):
        with pytest.raises(IdentityError, match=r"expected spark\.authenticate=true and .*Set both") as refused:
            check_executors(master, secrets, settings)
        assert "s3cr3t" not in str(refused.value)
    check_executors(master, secrets, ENCRYPTED)
    check_executors(master, {}, {})
    check_executors("local[4]", secrets, {})


def test_token_of_a_connect_server_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cr3t")
    with pytest.raises(IdentityError, match=r"^sc://unit\.example:15002: the catalog's credential") as refused:
        spark_session(CONFIGS[0], "app", remote="sc://unit.example:15002/;token=t0k3n")
    assert "t0k3n" not in str(refused.value)


def test_connect_server_that_logs_secrets_gets_none() -> None:
    secrets = CONFIGS[0].spark_secrets(ENVIRON)
    for pattern in ("$^", "(?i)secret|password|token|access[.]?key"):  # the last is Spark's default
        with pytest.raises(IdentityError, match=r"hides spark\.sql\.catalog\.lake\.credential") as refused:
            check_redaction("sc://spark.example", secrets, pattern)
        assert "s3cr3t" not in str(refused.value)
    check_redaction("sc://spark.example", secrets, REDACTION["spark.redaction.regex"])
    check_redaction("sc://spark.example", secrets, None)  # it has no pattern
    check_redaction("sc://spark.example", {}, "$^")


def test_connect_server_with_an_event_log_gets_no_secret() -> None:
    secrets = CONFIGS[0].spark_secrets(ENVIRON)
    for enabled in ("true", "TRUE", " true", "${env:LOG}"):
        with pytest.raises(IdentityError, match=r"without an event log.*\.lake\.credential") as refused:
            check_event_log("sc://spark.example", secrets, enabled)
        assert "s3cr3t" not in str(refused.value)
    check_event_log("sc://spark.example", {}, "true")
    for enabled in ("false", None):
        check_event_log("sc://spark.example", secrets, enabled)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (
            "SECRET|CREDENTIAL",
            r"hides spark\.sql\.catalog\.lake\.credential",
        ),  # no (?i): the property is in small letters
        ("(?i:secret)", r"hides spark\.sql\.catalog\.lake\.credential"),
        ("\\p{Alpha}+credential", r"could not be read"),  # Java's own syntax
        ("secret(?i)|credential", r"could not be read"),
    ],
)
def test_redaction_pattern_that_misses_secrets_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(IdentityError, match=reason):
        check_redaction("sc://spark.example", CONFIGS[0].spark_secrets(ENVIRON), pattern)


@pytest.mark.parametrize("pattern", ["credential", "(?i)CREDENTIAL", "(?i:CREDENTIAL)"])
def test_redaction_pattern_that_hides_all_secrets(pattern: str) -> None:
    check_redaction("sc://spark.example", CONFIGS[0].spark_secrets(ENVIRON), pattern)


def test_properties_of_computing_units_hide_secrets() -> None:
    for config in CONFIGS:
        assert config.spark_properties().items() >= REDACTION.items()
