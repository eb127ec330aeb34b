"""The authentication with which `lakewright-spark` reads archived warehouses."""

from __future__ import annotations

from pathlib import Path
from stat import S_IMODE

import pytest
from lakewright.costs.archive_collection import make_catalog_auth
from lakewright.lakekeeper.api.connection.errors import InsecureEndpointError
from lakewright.lakekeeper.api.connection.server import (
    ServerAuth,
    ServerClientCredentialsAuth,
    ServerRef,
    ServerTokenAuth,
    ServerTokenFileAuth,
)
from lakewright_spark.catalog.auth import ClientCredentialsAuth, TokenAuth, TokenFileAuth, resolve

TOKEN_URL = "https://idp.example/token"
ENDPOINT = "https://lakekeeper.example"


def resolve_secret(reference: str) -> str:
    return f"secret of {reference}"


@pytest.mark.parametrize(
    "auth",
    [
        ServerTokenAuth(kind="token", token="env:TOKEN"),
        ServerClientCredentialsAuth(
            kind="client-credentials", token_url=TOKEN_URL, client_id="stacks", client_secret="env:SECRET", audience="a"
        ),
    ],
    ids=["token", "client-credentials"],
)
def test_secret_is_in_a_file_of_this_user(auth: ServerAuth, tmp_path: Path) -> None:
    file = tmp_path / "acme.secret"
    catalog_auth = make_catalog_auth(ServerRef(endpoint=ENDPOINT, auth=auth), resolve_secret, file)

    assert S_IMODE(file.stat().st_mode) == 0o600
    match catalog_auth:
        case TokenAuth(token=reference):
            assert resolve(reference) == "secret of env:TOKEN"
        case ClientCredentialsAuth(client_secret=reference):
            assert resolve(reference) == "secret of env:SECRET"
            assert (catalog_auth.token_url, catalog_auth.client_id, catalog_auth.audience) == (TOKEN_URL, "stacks", "a")
        case _:
            pytest.fail(f"found {catalog_auth}")
    assert "secret of" not in catalog_auth.model_dump_json()


def test_token_file_is_read_again_at_each_request(tmp_path: Path) -> None:
    server = ServerRef(endpoint=ENDPOINT, auth=ServerTokenFileAuth(kind="token-file", path="/run/token"))
    catalog_auth = make_catalog_auth(server, resolve_secret, tmp_path / "acme.secret")
    assert catalog_auth == TokenFileAuth(kind="token-file", path="/run/token")
    assert list(tmp_path.iterdir()) == []


def test_secret_needs_tls(tmp_path: Path) -> None:
    server = ServerRef(endpoint="http://lakekeeper.example", auth=ServerTokenAuth(kind="token", token="env:TOKEN"))
    with pytest.raises(InsecureEndpointError):
        make_catalog_auth(server, resolve_secret, tmp_path / "acme.secret")
    assert list(tmp_path.iterdir()) == []
