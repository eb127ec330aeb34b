"""OpenID providers that cannot be reached when the program of a Lakekeeper image starts, as 0.13.3 treats them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.program.environment import EnvironmentRefusedError, Variables
from lakewright_sandbox.lakekeeper.program.openid_providers import ProvidersUnreachableError, connect_providers
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import SigningKey
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

UNREACHABLE = "http://127.0.0.1:9/realms/platform"
OPTIONAL = {"REQUIRE_CONNECTED_ON_STARTUP": "false"}
CLIENT = OAuthClient("ci", "unused", scopes=())
PROVIDER = IdentityProvider({"ci": CLIENT}, SigningKey())
DATABASE = {
    f"LAKEKEEPER__PG_{name}": "lakekeeper" for name in ("HOST_W", "DATABASE", "USER", "PASSWORD", "ENCRYPTION_KEY")
}


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with serve(PROVIDER.app()) as endpoint:
        yield endpoint


def read_settings(primary: str | None = None, **providers: dict[str, str]) -> Settings:
    """Return the settings of a server with a primary provider and further providers by id."""
    variables = {"LAKEKEEPER__OPENID_PROVIDER_URI": primary} if primary else {}
    for provider, fields in providers.items():
        variables |= {
            f"LAKEKEEPER__OPENID_PROVIDERS__{provider.upper()}__{name}": text for name, text in fields.items()
        }
    return Variables(DATABASE | variables, "0.13.3").build_settings()


def test_reachable_providers_are_connected(issuer: str) -> None:
    settings = read_settings(issuer, partner={"URI": f"{issuer}/"}, other={"URI": issuer, **OPTIONAL})

    assert connect_providers(settings) == settings


def test_server_without_providers_starts() -> None:
    assert connect_providers(read_settings()).openid_providers == ()


@pytest.mark.parametrize(
    ("primary", "fields", "name"),
    [
        (UNREACHABLE, {}, "oidc"),
        (None, {"URI": UNREACHABLE}, "partner"),
        (None, {"URI": UNREACHABLE, "REQUIRE_CONNECTED_ON_STARTUP": "true"}, "partner"),
    ],
)
def test_server_does_not_start_without_a_required_provider(
    issuer: str, primary: str | None, fields: dict[str, str], name: str
) -> None:
    settings = read_settings(primary or issuer, **({"partner": fields} if fields else {}))

    with pytest.raises(ProvidersUnreachableError) as refused:
        connect_providers(settings)

    assert str(refused.value) == f"cannot connect to the OpenID provider {name} ({UNREACHABLE})"


def test_response_that_is_no_configuration_is_no_connection() -> None:
    routes = [Route("/.well-known/openid-configuration", lambda _request: JSONResponse({"issuer": "https://idp"}))]
    with serve(Starlette(routes=routes)) as endpoint, pytest.raises(ProvidersUnreachableError, match=r"provider oidc "):
        connect_providers(read_settings(endpoint))


def test_optional_provider_is_left_out(issuer: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = read_settings(issuer, partner={"URI": UNREACHABLE, **OPTIONAL}, other={"URI": issuer})

    connected = connect_providers(settings)

    assert [provider.id for provider in connected.openid_providers] == ["other"]
    assert caplog.messages == [f"cannot connect to the OpenID provider partner ({UNREACHABLE}); it is left out"]


def test_authentication_is_not_disabled_by_optional_providers() -> None:
    settings = read_settings(one={"URI": UNREACHABLE, **OPTIONAL}, two={"URI": UNREACHABLE, **OPTIONAL})

    with pytest.raises(ProvidersUnreachableError, match="authentication would be disabled"):
        connect_providers(settings)


def test_flag_of_a_provider_is_a_boolean() -> None:
    with pytest.raises(EnvironmentRefusedError, match="PARTNER__REQUIRE_CONNECTED_ON_STARTUP: expected true or false"):
        read_settings(partner={"URI": UNREACHABLE, "REQUIRE_CONNECTED_ON_STARTUP": "no"})


def test_address_of_the_configuration_is_accepted(issuer: str, tmp_path: Path) -> None:
    settings = connect_providers(read_settings(f"{issuer}/.well-known/openid-configuration"))
    database = f"sqlite:///{tmp_path / 'lakekeeper.db'}"
    token = PROVIDER.key.sign(PROVIDER.claims(issuer, CLIENT, "lakekeeper", ""))

    with serve(create_app(replace(settings, database=database, read_database=None, creates_tables=True))) as endpoint:
        response = httpx.get(f"{endpoint}/management/v1/info", headers={"authorization": f"Bearer {token}"})

    assert response.status_code == 200
