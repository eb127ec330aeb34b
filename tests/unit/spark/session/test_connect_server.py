"""What a Spark Connect server refuses before it starts, and the properties that it gets."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import PasswordAuth, S3Keys, TokenFileAuth
from lakewright_spark.cli import app
from lakewright_spark.errors import ConfigMissingError, IdentityError, LakewrightSparkError
from lakewright_spark.session.connect_server import ConnectServer, format_properties
from typer.testing import CliRunner

TOKEN = "a-token-of-clients-in-this-test"
KEY = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
PRINT_PROPERTIES = """\
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

class Print {
    public static void main(String[] arguments) throws Exception {
        var properties = new Properties();
        properties.load(Files.newBufferedReader(Path.of(arguments[0])));
        var encoder = Base64.getEncoder();
        properties.forEach((key, value) -> {
            for (var word : List.of(key, value)) {
                System.out.print(encoder.encodeToString(word.toString().getBytes(StandardCharsets.UTF_8)) + ".");
            }
        });
    }
}
"""


@pytest.fixture
def server(tmp_path: Path) -> ConnectServer:
    """Return a server whose files are all as they should be."""
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "catalog-token").write_text("jwt")
    (tmp_path / "tls").mkdir()
    (tmp_path / "tls" / "tls.crt").write_text(CERTIFICATE)
    (tmp_path / "tls" / "tls.key").write_text(KEY)
    config = CatalogConfig(
        tenant="acme",
        uri="https://lakekeeper.example/catalog",
        project_id="acme",
        auth=TokenFileAuth(kind="token-file", path=str(tmp_path / "catalog-token")),
        warehouses=[CatalogWarehouse(name="executions", id="0198")],
    )
    return ConnectServer(config, token_file=tmp_path / "token", tls=tmp_path / "tls")


def _write(file: str, text: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / file).write_text(text)


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda folder: (folder / "token").unlink(), IdentityError, "token: expected a readable file with the token"),
        (_write("token", "short"), IdentityError, "expected a token of at least 16 characters, found 5"),
        (_write("token", " \n"), IdentityError, "expected a token of at least 16 characters, found 0"),
        (lambda folder: (folder / "catalog-token").unlink(), IdentityError, "catalog credential 'file:"),
        (lambda folder: (folder / "tls" / "tls.crt").unlink(), IdentityError, "tls.crt: expected a readable file"),
        (
            _write("tls/tls.crt", "no PEM"),
            ConfigMissingError,
            "expected a PEM file with BEGIN CERTIFICATE, found no PEM",
        ),
        (
            _write("tls/tls.key", KEY.replace("PRIVATE", "RSA PRIVATE")),
            ConfigMissingError,
            "found RSA PRIVATE KEY. Convert it with `openssl pkcs8 -topk8 -nocrypt`",
        ),
        (_write("tls/tls.key", CERTIFICATE), ConfigMissingError, "BEGIN PRIVATE KEY, found CERTIFICATE"),
    ],
)
def test_missing_or_wrong_files_are_refused(
    spoil: Callable[[Path], Any],
    error: type[LakewrightSparkError],
    message: str,
    server: ConnectServer,
    tmp_path: Path,
) -> None:
    server.check()
    spoil(tmp_path)

    with pytest.raises(error) as caught:
        server.check()

    assert message in str(caught.value)
    assert not [secret for secret in (TOKEN, "jwt", "c2VjcmV0") if secret in str(caught.value)]


@pytest.mark.parametrize("name", ["spark.connect.authenticate.token", "spark.hadoop.fs.s3a.secret.key"])
def test_secrets_are_no_properties(name: str, server: ConnectServer) -> None:
    spoiled = ConnectServer(server.config, server.token_file, server.tls, properties={name: "hidden"})

    with pytest.raises(ConfigMissingError) as caught:
        spoiled.check()

    assert f"expected properties without secrets, found {name}" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_spark_has_no_open_port_without_tls(server: ConnectServer, tmp_path: Path) -> None:
    """Where the server has TLS, Spark's own port is on loopback."""
    properties = server.spark_properties(tmp_path)
    without = ConnectServer(server.config, server.token_file, port=15009).spark_properties(tmp_path)

    assert properties["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert properties["spark.connect.grpc.binding.port"] == "0"
    assert without["spark.connect.grpc.binding.port"] == "15009"
    assert "spark.connect.grpc.binding.address" not in without


def test_user_properties_keep_jars_and_truststore(server: ConnectServer, tmp_path: Path) -> None:
    user_properties = {
        "spark.driver.extraClassPath": "/opt/site.jar",
        "spark.driver.extraJavaOptions": "-Dlog.level=debug",
        "spark.sql.shuffle.partitions": "8",
    }
    config = server.config.model_copy(update={"truststore": "/etc/trust.p12"})

    plain = ConnectServer(config, server.token_file).spark_properties(tmp_path)
    properties = ConnectServer(config, server.token_file, properties=user_properties).spark_properties(tmp_path)

    assert plain["spark.driver.extraJavaOptions"].startswith("-Djavax.net.ssl.trustStore=/etc/trust.p12")
    assert properties == {
        **plain,
        "spark.driver.extraClassPath": f"{plain['spark.driver.extraClassPath']}:/opt/site.jar",
        "spark.driver.extraJavaOptions": f"-Dlog.level=debug {plain['spark.driver.extraJavaOptions']}",
        "spark.sql.shuffle.partitions": "8",
    }


def test_properties_hold_references_only(server: ConnectServer, tmp_path: Path) -> None:
    properties = server.spark_properties(tmp_path)

    assert properties["spark.sql.catalog.executions.lakewright.auth.token"] == f"file:{tmp_path / 'catalog-token'}"
    assert not [value for value in properties.values() if TOKEN in value or "jwt" in value]


@pytest.mark.parametrize("kind", ["password", "keys"])
def test_credentials_that_spark_cannot_read_are_refused(kind: str, server: ConnectServer, tmp_path: Path) -> None:
    warehouse: dict[str, Any] = {"name": "lake", "location": "s3://bucket/lake"}
    if kind == "keys":
        keys = S3Keys(access_key_id="env:KEY", secret_access_key="env:SECRET")
        config = CatalogConfig(
            tenant="a", kind="rest", uri="https://c.example", warehouses=[CatalogWarehouse(**warehouse, s3_keys=keys)]
        )
    else:
        auth = PasswordAuth(kind="password", user="u", password="env:PASSWORD")
        config = CatalogConfig(
            tenant="a", kind="jdbc", uri="postgresql://d/i", auth=auth, warehouses=[CatalogWarehouse(**warehouse)]
        )

    with pytest.raises(ConfigMissingError, match="expected auth by token or client credentials and no S3 keys"):
        ConnectServer(config, server.token_file).spark_properties(tmp_path)


def test_command_names_what_is_missing(server: ConnectServer, tmp_path: Path) -> None:
    (tmp_path / "catalog.json").write_text(server.config.to_json())
    options = ["--config", str(tmp_path / "catalog.json"), "--token-file", str(tmp_path / "none")]

    run = CliRunner().invoke(app, ["connect-server", *options])

    assert isinstance(run.exception, IdentityError)
    assert "none: expected a readable file with the token of clients" in str(run.exception)


@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
def test_java_reads_the_properties_as_they_are(tmp_path: Path) -> None:
    properties = {
        "spark.hadoop.path": r"C:\new\table",
        "spark.redaction.regex": r"(?i)secret|\d+",
        "spark.text": " two\nlines\tand a r\u00e9sum\u00e9",
        "spark.option": "= : # !",
        "spark.a=b:c d": "named",
        "#spark.comment": "no comment",
        "spark.empty": "",
    }
    (tmp_path / "spark.properties").write_text(format_properties(properties), encoding="utf-8")
    (tmp_path / "Print.java").write_text(PRINT_PROPERTIES)
    command = ["java", "-XX:TieredStopAtLevel=1", str(tmp_path / "Print.java"), str(tmp_path / "spark.properties")]

    run = subprocess.run(command, capture_output=True, text=True, check=True)

    fields = [base64.b64decode(word).decode() for word in run.stdout.split(".")[:-1]]
    assert dict(zip(fields[::2], fields[1::2], strict=True)) == properties
