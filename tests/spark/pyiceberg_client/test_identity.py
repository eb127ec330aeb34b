"""How PyIceberg authenticates: by client credentials or by a renewed token file, also with a custom authority."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from authenticating_proxy import AuthenticatingProxy, issue_token, serve_proxy
from certificates import create_certificates
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import ClientCredentialsAuth, TokenFileAuth
from lakewright_spark.cli import app
from lakewright_spark.errors import CatalogUnreachableError, IdentityError, WarehouseRefusedError
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from typer.testing import CliRunner


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[AuthenticatingProxy]:
    with serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint)) as running:
        yield running


def with_proxy(config: CatalogConfig, proxy: AuthenticatingProxy, **changes: Any) -> CatalogConfig:
    return config.model_copy(update={"uri": proxy.catalog_uri, **changes})


def credentials(proxy: AuthenticatingProxy) -> ClientCredentialsAuth:
    return ClientCredentialsAuth(
        kind="client-credentials", token_url=proxy.token_url, client_id="job", client_secret="env:JOB_SECRET"
    )


def names(config: CatalogConfig, catalog: Any) -> list[str]:
    with explain_errors(config, "results"):
        return sorted(name for (name,) in catalog.list_namespaces())


def test_token_file_is_read_at_every_request(
    catalog_config: CatalogConfig, proxy: AuthenticatingProxy, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    config = with_proxy(catalog_config, proxy, auth=TokenFileAuth(kind="token-file", path=str(file)))
    file.write_text(first := issue_token(60))
    catalog = open_catalog(config, "results")
    assert "operator-port-result" in names(config, catalog)
    file.write_text(issue_token(-60))
    with pytest.raises(IdentityError, match="does not accept this identity"):
        names(config, catalog)
    file.write_text(last := issue_token(120))
    assert "operator-port-result" in names(config, catalog)
    assert (proxy.tokens[0], proxy.tokens[-1]) == (first, last)
    file.unlink()
    with pytest.raises(IdentityError, match="of a variable or file that is not empty"):
        names(config, catalog)


def test_client_credentials_renew_the_token_before_it_expires(
    catalog_config: CatalogConfig, proxy: AuthenticatingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_SECRET", "s3cr3t")
    config = with_proxy(catalog_config, proxy, auth=credentials(proxy))
    catalog = open_catalog(config, "results")
    names(config, catalog)
    while_good = len(proxy.grants)
    names(config, catalog)
    assert len(proxy.grants) == while_good
    proxy.life = 60  # tokens now expire within the minute in which they are renewed
    catalog = open_catalog(config, "results")
    before = len(proxy.grants)
    names(config, catalog)
    assert len(proxy.grants) == before + 1


def test_renewal_reads_a_rotated_client_secret(
    catalog_config: CatalogConfig, proxy: AuthenticatingProxy, tmp_path: Path
) -> None:
    proxy.life = 60  # each request renews the token
    (tmp_path / "secret").write_text(proxy.secret)
    auth = credentials(proxy).model_copy(update={"client_secret": f"file:{tmp_path / 'secret'}"})
    config = with_proxy(catalog_config, proxy, auth=auth)
    catalog = open_catalog(config, "results")
    proxy.secret = "n3w"
    (tmp_path / "secret").write_text("n3w")
    assert "operator-port-result" in names(config, catalog)


def test_wrong_client_secret_names_endpoint_and_client(
    catalog_config: CatalogConfig, proxy: AuthenticatingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_SECRET", "wr0ng")
    config = with_proxy(catalog_config, proxy, auth=credentials(proxy))
    with pytest.raises(IdentityError, match="gave no token to client job: it responded with 401") as error:
        open_catalog(config, "results")
    assert "wr0ng" not in str(error.value)
    assert proxy.tokens == []


def test_custom_certificate_authority(
    catalog_config: CatalogConfig, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # these variables override `verify` in requests
        monkeypatch.delenv(name, raising=False)
    authority, server = create_certificates(tmp_path)
    (tmp_path / "token").write_text(issue_token(60))
    with serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint), certificate=server) as proxy:
        auth = TokenFileAuth(kind="token-file", path=str(tmp_path / "token"))
        config = with_proxy(catalog_config, proxy, auth=auth, ca_bundle=str(authority))
        assert "operator-port-result" in names(config, open_catalog(config, "results"))
        without_authority = config.model_copy(update={"ca_bundle": None})
        with pytest.raises(CatalogUnreachableError, match=r"does not respond: .*SSL"):
            open_catalog(without_authority, "results")


def test_catalog_is_down_or_failing(catalog_config: CatalogConfig, proxy: AuthenticatingProxy) -> None:
    unreachable = catalog_config.model_copy(update={"uri": "http://127.0.0.1:1/catalog"})
    with pytest.raises(CatalogUnreachableError, match="does not respond: ConnectionError"):
        open_catalog(unreachable, "results")
    proxy.status = 503
    with pytest.raises(CatalogUnreachableError, match="warehouse results of http"):
        open_catalog(with_proxy(catalog_config, proxy), "results")


def test_unknown_warehouse(catalog_config: CatalogConfig) -> None:
    with pytest.raises(WarehouseRefusedError, match="has no warehouse 'sales'"):
        open_catalog(catalog_config, "sales")


def test_job_that_may_outlive_its_token_is_refused(
    catalog_config: CatalogConfig, proxy: AuthenticatingProxy, tmp_path: Path
) -> None:
    catalog = open_catalog(catalog_config, "results")
    catalog.create_namespace_if_not_exists("guarded")
    catalog.create_table("guarded.rows", pa.schema([pa.field("n", pa.int64())]))
    (tmp_path / "token").write_text(issue_token(300))
    config = with_proxy(catalog_config, proxy, auth=TokenFileAuth(kind="token-file", path=str(tmp_path / "token")))
    (tmp_path / "catalog.json").write_text(config.to_json())
    arguments = ["job", "statistics", "--table", "guarded.rows", "--config", str(tmp_path / "catalog.json")]
    for deadline, message in (([], "has no deadline"), (["--deadline", "10m"], "give a deadline below")):
        refused = CliRunner().invoke(app, [*arguments, *deadline])
        assert isinstance(refused.exception, IdentityError)
        assert message in str(refused.exception)
