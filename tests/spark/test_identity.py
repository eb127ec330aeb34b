"""Who a job is, as PyIceberg tells the catalog: by client credentials, by a token that others renew; over own TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from certificates import make
from guarded import Gate, serving, token
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import ClientCredentialsAuth, TokenFileAuth
from lakewright_spark.cli import app
from lakewright_spark.errors import CatalogUnreachableError, IdentityError, WarehouseRefusedError
from lakewright_spark.pyiceberg_client.catalog import explained, open_catalog
from typer.testing import CliRunner


@pytest.fixture
def gate(sandbox: Sandbox) -> Iterator[Gate]:
    with serving(Gate(sandbox.lakekeeper.endpoint)) as standing:
        yield standing


def through(config: CatalogConfig, gate: Gate, **changes: Any) -> CatalogConfig:
    return config.model_copy(update={"uri": gate.catalog_uri, **changes})


def credentials(gate: Gate) -> ClientCredentialsAuth:
    return ClientCredentialsAuth(
        kind="client-credentials", token_url=gate.token_url, client_id="job", client_secret="env:JOB_SECRET"
    )


def names(config: CatalogConfig, catalog: Any) -> list[str]:
    with explained(config, "results"):
        return sorted(name for (name,) in catalog.list_namespaces())


def test_token_file_is_read_at_every_request(catalog_config: CatalogConfig, gate: Gate, tmp_path: Path) -> None:
    file = tmp_path / "token"
    config = through(catalog_config, gate, auth=TokenFileAuth(kind="token-file", path=str(file)))
    file.write_text(first := token(60))
    catalog = open_catalog(config, "results")
    assert "operator-port-result" in names(config, catalog)
    file.write_text(token(-60))
    with pytest.raises(IdentityError, match="does not accept this identity"):
        names(config, catalog)
    file.write_text(last := token(120))
    assert "operator-port-result" in names(config, catalog)
    assert (gate.tokens[0], gate.tokens[-1]) == (first, last)
    file.unlink()
    with pytest.raises(IdentityError, match="that exists and holds it"):
        names(config, catalog)


def test_client_credentials_renew_the_token_before_it_expires(
    catalog_config: CatalogConfig, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_SECRET", "s3cr3t")
    config = through(catalog_config, gate, auth=credentials(gate))
    catalog = open_catalog(config, "results")
    names(config, catalog)
    while_good = len(gate.grants)
    names(config, catalog)
    assert len(gate.grants) == while_good
    gate.life = 60  # from now on tokens end within the minute in which they are renewed
    catalog = open_catalog(config, "results")
    before = len(gate.grants)
    names(config, catalog)
    assert len(gate.grants) == before + 1


def test_wrong_client_secret_names_endpoint_and_client(
    catalog_config: CatalogConfig, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_SECRET", "wr0ng")
    config = through(catalog_config, gate, auth=credentials(gate))
    with pytest.raises(IdentityError, match="gave no token to client job: it answered 401") as error:
        open_catalog(config, "results")
    assert "wr0ng" not in str(error.value)
    assert gate.tokens == []


def test_custom_certificate_authority(
    catalog_config: CatalogConfig, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests lets them win
        monkeypatch.delenv(name, raising=False)
    authority, server = make(tmp_path)
    (tmp_path / "token").write_text(token(60))
    with serving(Gate(sandbox.lakekeeper.endpoint), certificate=server) as gate:
        auth = TokenFileAuth(kind="token-file", path=str(tmp_path / "token"))
        config = through(catalog_config, gate, auth=auth, ca_bundle=str(authority))
        assert "operator-port-result" in names(config, open_catalog(config, "results"))
        stranger = config.model_copy(update={"ca_bundle": None})
        with pytest.raises(CatalogUnreachableError, match=r"does not answer: .*SSL"):
            open_catalog(stranger, "results")


def test_catalog_is_down_or_failing(catalog_config: CatalogConfig, gate: Gate) -> None:
    nobody = catalog_config.model_copy(update={"uri": "http://127.0.0.1:1/catalog"})
    with pytest.raises(CatalogUnreachableError, match="does not answer: ConnectionError"):
        open_catalog(nobody, "results")
    gate.status = 503
    with pytest.raises(CatalogUnreachableError, match="warehouse results of http"):
        open_catalog(through(catalog_config, gate), "results")


def test_unknown_warehouse(catalog_config: CatalogConfig) -> None:
    with pytest.raises(WarehouseRefusedError, match="has no warehouse 'sales'"):
        open_catalog(catalog_config, "sales")


def test_job_that_may_outlive_its_token_is_refused(catalog_config: CatalogConfig, gate: Gate, tmp_path: Path) -> None:
    catalog = open_catalog(catalog_config, "results")
    catalog.create_namespace_if_not_exists("guarded")
    catalog.create_table("guarded.rows", pa.schema([pa.field("n", pa.int64())]))
    (tmp_path / "token").write_text(token(300))
    config = through(catalog_config, gate, auth=TokenFileAuth(kind="token-file", path=str(tmp_path / "token")))
    (tmp_path / "catalog.json").write_text(config.to_json())
    words = ["job", "statistics", "--table", "guarded.rows", "--config", str(tmp_path / "catalog.json")]
    for deadline, told in (([], "has no deadline"), (["--deadline", "10m"], "give a deadline below")):
        refused = CliRunner().invoke(app, [*words, *deadline])
        assert isinstance(refused.exception, IdentityError)
        assert told in str(refused.exception)
