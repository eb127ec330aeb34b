"""OpenID providers that cannot be reached, at the start of a server and later, as 0.13.3 treats them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.authentication import token_verifier
from lakewright_sandbox.lakekeeper.authentication.middleware import Authentication
from lakewright_sandbox.lakekeeper.authentication.openid_configuration import ProviderUnreachableError
from lakewright_sandbox.lakekeeper.authentication.token_claims import Claims
from lakewright_sandbox.lakekeeper.program import __main__ as program
from lakewright_sandbox.lakekeeper.program.environment import EnvironmentRefusedError, Variables
from lakewright_sandbox.lakekeeper.program.openid_providers import connect_providers
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal
from lakewright_sandbox.lakekeeper.protocol.settings import OpenidConfiguration, Settings
from lakewright_sandbox.tokens.app import DISCOVERY, KEYS, IdentityProvider
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import ALGORITHM, SigningKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

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


def serve_documents(documents: dict[str, object]) -> Starlette:
    """Return an application that serves JSON documents by their paths."""

    def respond(request: Request) -> Response:
        if request.url.path not in documents:
            return Response(status_code=404)
        return JSONResponse(documents[request.url.path])

    return Starlette(routes=[Route("/{path:path}", respond)])


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

    connected = connect_providers(settings).openid_providers

    assert [provider.id for provider in connected] == ["oidc", "other", "partner"]
    assert {provider.configuration for provider in connected} == {OpenidConfiguration(issuer, f"{issuer}/keys")}


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

    with pytest.raises(ProviderUnreachableError) as refused:
        connect_providers(settings)

    assert str(refused.value) == f"cannot connect to the OpenID provider {name} ({UNREACHABLE}): ConnectError"


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://idp.example"},
        {"jwks_uri": "https://idp.example/keys"},
        {"issuer": None, "jwks_uri": "https://idp.example/keys"},
        {"issuer": "https://idp.example", "jwks_uri": "/keys"},
        [],
        "text",
    ],
)
def test_response_that_is_no_configuration_is_no_connection(issuer: str, configuration: object) -> None:
    with serve(serve_documents({DISCOVERY: configuration})) as endpoint:
        with pytest.raises(ProviderUnreachableError, match=r"provider oidc "):
            connect_providers(read_settings(endpoint))
        connected = connect_providers(read_settings(issuer, partner={"URI": endpoint, **OPTIONAL}))

    assert [provider.id for provider in connected.openid_providers] == ["oidc"]


def test_optional_provider_is_left_out(issuer: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = read_settings(issuer, partner={"URI": UNREACHABLE, **OPTIONAL}, other={"URI": issuer})

    connected = connect_providers(settings)

    assert [provider.id for provider in connected.openid_providers] == ["oidc", "other"]
    assert caplog.messages == [
        f"cannot connect to the OpenID provider partner ({UNREACHABLE}): ConnectError; it is left out"
    ]


def test_authentication_is_not_disabled_by_optional_providers() -> None:
    settings = read_settings(one={"URI": UNREACHABLE, **OPTIONAL}, two={"URI": UNREACHABLE, **OPTIONAL})

    with pytest.raises(ProviderUnreachableError, match="authentication would be disabled"):
        connect_providers(settings)


def test_flag_of_a_provider_is_a_boolean() -> None:
    with pytest.raises(EnvironmentRefusedError, match="PARTNER__REQUIRE_CONNECTED_ON_STARTUP: expected true or false"):
        read_settings(partner={"URI": UNREACHABLE, "REQUIRE_CONNECTED_ON_STARTUP": "no"})


@pytest.mark.parametrize("address", ["login.example/realms/x", "http://login.example:port/x", ""])
def test_address_of_a_provider_is_a_url(issuer: str, address: str) -> None:
    """The server does not start with another text, even if the provider is optional."""
    with pytest.raises(EnvironmentRefusedError, match="PARTNER__URI"):
        read_settings(issuer, partner={"URI": address, **OPTIONAL})


def test_address_of_a_configuration_is_none_of_a_provider(issuer: str) -> None:
    with pytest.raises(ProviderUnreachableError, match="HTTPStatusError"):
        connect_providers(read_settings(f"{issuer}{DISCOVERY}"))


@dataclass
class SwitchedProvider:
    """An OpenID provider some of whose paths can fail."""

    endpoint: str = ""
    failing: set[str] = field(default_factory=set)

    def app(self) -> ASGIApp:
        provider = PROVIDER.app()

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            fails = scope["type"] == "http" and scope["path"] in self.failing
            await (Response(status_code=500) if fails else provider)(scope, receive, send)

        return respond


@pytest.fixture
def provider() -> Iterator[SwitchedProvider]:
    switched = SwitchedProvider()
    with serve(switched.app()) as switched.endpoint:
        yield switched


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Settings], str]]:
    """A function that starts a server and returns its address."""
    with ExitStack() as stack:

        def start_server(settings: Settings) -> str:
            database = f"sqlite:///{tmp_path / 'lakekeeper.db'}"
            app = create_app(replace(settings, database=database, read_database=None, creates_tables=True))
            return stack.enter_context(serve(app))

        yield start_server


def issue_token(issuer: str) -> str:
    return PROVIDER.key.sign(PROVIDER.claims(issuer, CLIENT, "lakekeeper", ""))


def request_user_id(endpoint: str, token: str) -> tuple[int, str | None]:
    """Return the status of a registration, and the id of the registered user."""
    response = httpx.post(
        f"{endpoint}/management/v1/user",
        json={"update-if-exists": True},
        headers={"authorization": f"Bearer {token}"},
    )
    return response.status_code, response.json().get("id")


def test_tokens_are_refused_while_their_provider_is_down(
    provider: SwitchedProvider, start: Callable[[Settings], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_verifier, "REFETCH_SECONDS", 0.0)
    endpoint = start(read_settings(provider.endpoint))
    token = issue_token(provider.endpoint)
    statuses = list[int]()
    for failing in ({DISCOVERY, KEYS}, {KEYS}, set[str](), {DISCOVERY, KEYS}):
        provider.failing = failing
        statuses.append(request_user_id(endpoint, token)[0])

    assert statuses == [401, 401, 201, 200]


def test_no_later_provider_decides_while_the_first_has_no_keys(
    provider: SwitchedProvider, issuer: str, start: Callable[[Settings], str]
) -> None:
    partner = {"URI": issuer, "ADDITIONAL_ISSUERS": provider.endpoint}
    endpoint = start(connect_providers(read_settings(provider.endpoint, partner=partner)))
    provider.failing = {KEYS}

    assert request_user_id(endpoint, issue_token(provider.endpoint)) == (401, None)
    assert request_user_id(endpoint, issue_token(issuer)) == (201, "partner~ci")


def test_changed_configuration_needs_a_new_start(
    start: Callable[[Settings], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are fetched again, from the address that the configuration had at the start."""
    monkeypatch.setattr(token_verifier, "REFETCH_SECONDS", 0.0)
    documents: dict[str, object] = {}
    with serve(serve_documents(documents)) as endpoint:
        documents[DISCOVERY] = {"issuer": "https://old.example", "jwks_uri": f"{endpoint}{KEYS}"}
        server = start(connect_providers(read_settings(endpoint)))
        documents[DISCOVERY] = {"issuer": "https://new.example", "jwks_uri": f"{endpoint}/moved"}
        old_token, new_token = (issue_token(f"https://{name}.example") for name in ("old", "new"))
        without_keys = request_user_id(server, old_token)
        documents[KEYS] = PROVIDER.key.public_set()

        responses = [request_user_id(server, token) for token in (new_token, old_token)]

    assert without_keys == (401, None)
    assert responses == [(401, None), (201, "oidc~ci")]


def test_keys_end_after_their_time(start: Callable[[Settings], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the real server, the token that makes the server fetch the keys again is still accepted."""
    monkeypatch.setattr(token_verifier, "REFETCH_SECONDS", 0.0)
    documents: dict[str, object] = {KEYS: PROVIDER.key.public_set()}
    with serve(serve_documents(documents)) as endpoint:
        documents[DISCOVERY] = {"issuer": endpoint, "jwks_uri": f"{endpoint}{KEYS}"}
        server, token = start(read_settings(endpoint)), issue_token(endpoint)
        statuses = [request_user_id(server, token)[0]]
        documents[KEYS] = {"keys": []}
        statuses.append(request_user_id(server, token)[0])
        monkeypatch.setattr(token_verifier, "KEY_SECONDS", -1.0)
        documents[KEYS] = PROVIDER.key.public_set()
        other_token = SigningKey().sign(PROVIDER.claims(endpoint, CLIENT, "lakekeeper", ""))
        statuses.append(request_user_id(server, other_token)[0])
        documents[KEYS] = {"keys": []}
        statuses += [request_user_id(server, token)[0] for _ in range(2)]

    assert statuses == [201, 200, 401, 200, 401]


GOOD_KEY = PROVIDER.key.public_set()["keys"][0]


@pytest.mark.parametrize(
    "keys",
    [
        [],
        {},
        "text",
        {"keys": "none"},
        {"keys": [GOOD_KEY, None]},
        {"keys": [GOOD_KEY, {"kty": "oct", "kid": "symmetric", "k": "c2VjcmV0"}]},
        {"keys": [GOOD_KEY, {"kty": ["RSA"], "kid": "other", "n": "sXch", "e": "AQAB"}]},
        {"keys": [GOOD_KEY, {"kty": "RSA", "n": "sXch", "e": "AQAB"}]},
        {"keys": [GOOD_KEY, {"kty": "RSA", "kid": "other", "use": [], "n": "sXch", "e": "AQAB"}]},
        {"keys": [GOOD_KEY, {"kty": "RSA", "kid": "other", "use": "tls", "n": "sXch", "e": "AQAB"}]},
    ],
)
def test_unreadable_keys_are_a_refusal(start: Callable[[Settings], str], keys: object) -> None:
    documents: dict[str, object] = {KEYS: keys}
    with serve(serve_documents(documents)) as endpoint:
        documents[DISCOVERY] = {"issuer": endpoint, "jwks_uri": f"{endpoint}{KEYS}"}

        assert request_user_id(start(read_settings(endpoint)), issue_token(endpoint)) == (401, None)


@pytest.mark.parametrize(
    "unusable_key",
    [
        {**GOOD_KEY, "kid": "encryption", "use": "enc", "alg": "RSA-OAEP"},
        {"kty": "OKP", "kid": "exchange", "crv": "X25519", "x": "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo"},
        {"kty": "EC", "kid": "unusual", "crv": "P-999", "x": "sXch", "y": "sXch"},
    ],
    ids=lambda key: key["kid"],
)
def test_key_that_signs_no_token_disturbs_no_other(
    start: Callable[[Settings], str], unusable_key: dict[str, str]
) -> None:
    documents: dict[str, object] = {KEYS: {"keys": [unusable_key, GOOD_KEY]}}
    with serve(serve_documents(documents)) as endpoint:
        documents[DISCOVERY] = {"issuer": endpoint, "jwks_uri": f"{endpoint}{KEYS}"}

        assert request_user_id(start(read_settings(endpoint)), issue_token(endpoint))[0] == 201


def test_token_without_a_key_id_is_refused(start: Callable[[Settings], str]) -> None:
    documents: dict[str, object] = {}
    with serve(serve_documents(documents)) as endpoint:
        documents[DISCOVERY] = {"issuer": endpoint, "jwks_uri": f"{endpoint}{KEYS}"}
        key = ec.generate_private_key(ec.SECP256R1())
        documents[KEYS] = {"keys": [ECAlgorithm(ECAlgorithm.SHA256).to_jwk(key.public_key(), as_dict=True)]}
        token = jwt.encode(PROVIDER.claims(endpoint, CLIENT, "lakekeeper", ""), key, ALGORITHM)

        assert request_user_id(start(read_settings(endpoint)), token) == (401, None)


def test_program_does_not_serve_without_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (DATABASE | {"LAKEKEEPER__OPENID_PROVIDER_URI": UNREACHABLE}).items():
        monkeypatch.setenv(name, text)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr(sys, "argv", ["lakekeeper", "serve"])
    monkeypatch.setattr(uvicorn, "run", lambda *_args, **_options: pytest.fail("the server started"))

    with pytest.raises(SystemExit, match="cannot connect to the OpenID provider oidc"):
        program.main()


def test_sole_reviewer_of_tokens_gets_every_token() -> None:
    reviewer = RecordingReviewer()
    client = TestClient(Authentication(Response("ok"), [reviewer], needs_project=False))

    client.get("/management/v1/info", headers={"authorization": "Bearer no-jwt"})

    assert reviewer.tokens == ["no-jwt"]


class RecordingReviewer:
    """Handles no token by its claims, and takes note of what it has to review."""

    def __init__(self) -> None:
        self.tokens = list[str]()

    def handles(self, claims: Claims) -> bool:
        return False

    def principal(self, token: str) -> TokenPrincipal:
        self.tokens.append(token)
        return TokenPrincipal(id="kubernetes~account", name=None, email=None)
