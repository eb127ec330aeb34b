"""The claim of a token that identifies a user, with the variables that the platform renders for the issuer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.directories.entra import EntraSettings
from lakewright.directories.keycloak import KeycloakSettings
from lakewright.platform_stack.settings.checks import parse_platform_spec
from lakewright.platform_stack.settings.server_environment import build_server_environment
from lakewright.spec import parse_spec
from lakewright.tenant.members import build_memberships
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.program.environment import EnvironmentRefusedError, Variables
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import SigningKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.integration.lakekeeper.rules import get_refusal
from tests.platform_documents import production
from tests.tenant_project import tenant_spec

RELEASE = "0.13.3"
PRIMARY = "LAKEKEEPER__OPENID_PROVIDER_URI"
FURTHER = "LAKEKEEPER__OPENID_PROVIDERS__PARTNER__URI"
ENTRA = "https://login.microsoftonline.com/contoso.example/v2.0"
KEYCLOAK = "https://idp.platform.example/realms/platform"
OBJECT_ID = "5f0c8a52-2c0b-4f44-9a5e-0d8b6a3c7f11"
SUBJECT = "2b7e1516-28ae-4f2a-8abf-7158809cf4f3"
GROUP = "0f4c62a1-3b1f-4c36-9d2f-6b0a5c1d2e3f"
GRANT = {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "executions"}}
CLIENT = OAuthClient("ci", "unused", scopes=())


class PlatformServer:
    """A Lakekeeper with the variables of a platform. Local identity providers replace its issuers."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._provider = IdentityProvider({"ci": CLIENT}, SigningKey())
        self.issuers = {name: stack.enter_context(serve(self._provider.app())) for name in (PRIMARY, FURTHER)}

    def start(self, variables: Mapping[str, str]) -> str:
        """Start a server and return its address."""
        addresses = {name: address for name, address in self.issuers.items() if name in variables}
        settings = replace(
            Variables({**variables, **addresses}, RELEASE).build_settings(),
            database=f"sqlite:///{self._folder / 'lakekeeper.db'}",
            read_database=None,
            creates_tables=True,
        )
        return self._stack.enter_context(serve(create_app(settings)))

    def register(self, endpoint: str, issuer: str = PRIMARY, **claims: Any) -> httpx.Response:
        """Register the user of a token with these claims. Claims that are None are omitted."""
        all_claims = self._provider.claims(self.issuers[issuer], CLIENT, "lakekeeper", "") | claims
        token = self._provider.key.sign({name: value for name, value in all_claims.items() if value is not None})
        headers = {"authorization": f"Bearer {token}"}
        return httpx.post(f"{endpoint}/management/v1/user", json={}, headers=headers)


@pytest.fixture
def platform_server(tmp_path: Path) -> Iterator[PlatformServer]:
    with ExitStack() as stack:
        yield PlatformServer(tmp_path, stack)


@pytest.fixture
def directory() -> Iterator[str]:
    """Address of a Keycloak and a Microsoft Graph, whose group has one person."""

    def issue_token(_request: Request) -> JSONResponse:
        return JSONResponse({"access_token": "t", "expires_in": 300})

    def find_group(_request: Request) -> JSONResponse:
        return JSONResponse({"id": GROUP, "displayName": "analysts", "name": "analysts", "path": "/analysts"})

    def list_members_of_keycloak(_request: Request) -> JSONResponse:
        return JSONResponse([{"id": SUBJECT, "username": "ann", "enabled": True}])

    def list_members_of_entra(_request: Request) -> JSONResponse:
        return JSONResponse({"value": [{"@odata.type": "#microsoft.graph.user", "id": OBJECT_ID}]})

    realm = "/admin/realms/platform"
    routes = [
        Route("/realms/platform/protocol/openid-connect/token", issue_token, methods=["POST"]),
        Route(f"{realm}/groups/{GROUP}", find_group),
        Route(f"{realm}/groups/{GROUP}/members", list_members_of_keycloak),
        Route("/contoso.example/oauth2/v2.0/token", issue_token, methods=["POST"]),
        Route(f"/v1.0/groups/{GROUP}", find_group),
        Route(f"/v1.0/groups/{GROUP}/transitiveMembers", list_members_of_entra),
    ]
    with serve(Starlette(routes=routes)) as endpoint:
        yield endpoint


def build_variables(uri: str, **providers: str) -> dict[str, str]:
    """Return the variables that the platform renders for an issuer and further issuers by id."""
    authentication = {
        "oidc": {"provider_uri": uri, "audience": ["lakekeeper"]},
        "providers": {name: {"provider_uri": uri, "audience": ["lakekeeper"]} for name, uri in providers.items()},
    }
    environment = build_server_environment(parse_platform_spec(production(authentication=authentication), "test"))
    return {**environment.plain, **dict.fromkeys(environment.secrets, "a secret")}


def list_registered_members(kind: str, endpoint: str) -> tuple[str, ...]:
    """Return the user ids that a tenant gives a role whose members are the group of a directory."""
    client = {"kind": kind, "client_id": "reader", "client_secret": "env:READER"}
    if kind == "entra":
        places = {"tenant_id": "contoso.example", "login_url": endpoint, "graph_url": endpoint}
        settings = EntraSettings.model_validate(client | places)
    else:
        settings = KeycloakSettings.model_validate(client | {"url": endpoint, "realm": "platform"})
    people = settings.connect(lambda _reference: "a secret").list_members(GROUP)
    document = tenant_spec("acme", {"backend": "aws", "bucket": "acme-lake"})
    spec = parse_spec(document | {"role_members": {"analysts": {"group": GROUP}}, "grants": [GRANT]}, "test")
    return build_memberships(spec, [], {GROUP: people}, "oidc", datetime.now(UTC))["analysts"].users


@pytest.mark.parametrize(
    ("kind", "uri", "user_id"), [("entra", ENTRA, f"oidc~{OBJECT_ID}"), ("keycloak", KEYCLOAK, f"oidc~{SUBJECT}")]
)
def test_user_has_the_id_of_the_directory(
    platform_server: PlatformServer, directory: str, kind: str, uri: str, user_id: str
) -> None:
    endpoint = platform_server.start(build_variables(uri))

    response = platform_server.register(endpoint, oid=OBJECT_ID, sub=SUBJECT).raise_for_status()

    assert response.json()["id"] == user_id
    assert list_registered_members(kind, directory) == (user_id,)


def test_further_provider_has_claims_of_its_own(platform_server: PlatformServer) -> None:
    endpoint = platform_server.start(build_variables(KEYCLOAK, partner=ENTRA))

    responses = [
        platform_server.register(endpoint, issuer, oid=OBJECT_ID, sub=SUBJECT) for issuer in (PRIMARY, FURTHER)
    ]

    assert [response.json()["id"] for response in responses] == [f"oidc~{SUBJECT}", f"partner~{OBJECT_ID}"]


@pytest.mark.parametrize(("uri", "missing"), [(ENTRA, "oid"), (KEYCLOAK, "sub")])
def test_no_other_claim_replaces_a_missing_claim(platform_server: PlatformServer, uri: str, missing: str) -> None:
    endpoint = platform_server.start(build_variables(uri))
    claims: dict[str, Any] = {"oid": OBJECT_ID, "sub": SUBJECT, missing: None}

    response = platform_server.register(endpoint, **claims)

    assert get_refusal(response) == (401, "AuthenticationFailed")


@pytest.mark.parametrize(
    ("required", "scope", "status"),
    [
        ("lake", "lake house", 201),
        ("lake", "lakehouse", 401),
        ("lake", None, 401),
        ("", "lake", 401),
    ],
)
def test_tokens_of_a_provider_need_its_scope(
    platform_server: PlatformServer, required: str, scope: str | None, status: int
) -> None:
    variables = build_variables(KEYCLOAK, partner=ENTRA)
    primary = platform_server.start(variables | {"LAKEKEEPER__OPENID_SCOPE": required})
    partner = platform_server.start(variables | {"LAKEKEEPER__OPENID_PROVIDERS__PARTNER__SCOPE": required})

    assert platform_server.register(primary, scope=scope).status_code == status
    assert platform_server.register(primary, FURTHER, oid=OBJECT_ID, scope=None).status_code == 201
    assert platform_server.register(partner, FURTHER, oid=SUBJECT, scope=scope).status_code == status


@pytest.mark.parametrize(
    ("variable", "prefix"),
    [("OPENID_ADDITIONAL_ISSUERS", "oidc"), ("OPENID_PROVIDERS__PARTNER__ADDITIONAL_ISSUERS", "partner")],
)
def test_further_issuers_of_a_provider_are_accepted(
    platform_server: PlatformServer, variable: str, prefix: str
) -> None:
    issuers = {f"LAKEKEEPER__{variable}": "https://sts.windows.net/one/,https://sts.windows.net/two/"}
    endpoint = platform_server.start(build_variables(KEYCLOAK, partner=ENTRA) | issuers)

    responses = [
        platform_server.register(endpoint, iss=f"https://sts.windows.net/{name}/", sub=name, oid=name)
        for name in ("one", "two", "three")
    ]

    assert [response.json().get("id") for response in responses] == [f"{prefix}~one", f"{prefix}~two", None]
    assert get_refusal(responses[-1]) == (401, "AuthenticationFailed")


def test_audience_chooses_between_providers_of_an_issuer(platform_server: PlatformServer) -> None:
    audience = {"LAKEKEEPER__OPENID_PROVIDERS__PARTNER__AUDIENCE": "partners"}
    issuer = {"LAKEKEEPER__OPENID_PROVIDERS__PARTNER__ADDITIONAL_ISSUERS": platform_server.issuers[PRIMARY]}
    endpoint = platform_server.start(build_variables(KEYCLOAK, partner=ENTRA) | audience | issuer)

    responses = [
        platform_server.register(endpoint, aud=aud, oid=f"object-{number}", sub=f"subject-{number}")
        for number, aud in enumerate(["lakekeeper", "partners", ["other", "partners"], "other"])
    ]

    ids = [response.json().get("id") for response in responses]
    assert ids == ["oidc~subject-0", "partner~object-1", "partner~object-2", None]


def test_first_provider_of_an_issuer_decides(platform_server: PlatformServer) -> None:
    """A later provider is not tried, although it would accept this token."""
    issuers = {"LAKEKEEPER__OPENID_ADDITIONAL_ISSUERS": platform_server.issuers[FURTHER]}
    endpoint = platform_server.start(build_variables(KEYCLOAK, partner=ENTRA) | issuers)

    refused = platform_server.register(endpoint, FURTHER, sub=None, oid=OBJECT_ID)

    assert get_refusal(refused) == (401, "AuthenticationFailed")


# Rules of the real server that the rendered variables alone do not show.


@pytest.mark.parametrize(
    ("names", "claims", "user_id"),
    [
        (None, {"oid": "o", "sub": "s"}, "oidc~o"),
        (None, {"sub": "s"}, "oidc~s"),
        ("sub,oid", {"oid": "o", "sub": "s"}, "oidc~s"),
        ("oid,sub", {"oid": 5, "sub": "s"}, "oidc~s"),
        ("oid", {"oid": "o", "sub": 5}, "oidc~o"),
    ],
)
def test_first_text_of_the_named_claims_is_the_subject(
    platform_server: PlatformServer, names: str | None, claims: dict[str, Any], user_id: str
) -> None:
    variables = build_variables(KEYCLOAK)
    del variables["LAKEKEEPER__OPENID_SUBJECT_CLAIM"]
    endpoint = platform_server.start(variables | ({"LAKEKEEPER__OPENID_SUBJECT_CLAIM": names} if names else {}))

    assert platform_server.register(endpoint, **claims).raise_for_status().json()["id"] == user_id


def test_unusable_subjects_are_refused(platform_server: PlatformServer) -> None:
    endpoint = platform_server.start(build_variables(KEYCLOAK) | {"LAKEKEEPER__OPENID_SUBJECT_CLAIM": "oid,sub"})

    refusals = [get_refusal(platform_server.register(endpoint, oid=oid)) for oid in ("", "x" * 128, "a\nb")]

    assert refusals == [(400, "EmptyUserIdError"), (400, "UserIdTooLongError"), (400, "InvalidUserIdError")]


@pytest.mark.parametrize("names", ["", "oid, sub"])
def test_names_of_claims_are_read_literally(platform_server: PlatformServer, names: str) -> None:
    endpoint = platform_server.start(build_variables(KEYCLOAK) | {"LAKEKEEPER__OPENID_SUBJECT_CLAIM": names})

    assert get_refusal(platform_server.register(endpoint, sub=SUBJECT)) == (401, "AuthenticationFailed")


@pytest.mark.parametrize("provider_id", ["OIDC", "KUBERNETES", "A_B"])
def test_reserved_ids_of_providers_are_refused(provider_id: str) -> None:
    variables = build_variables(KEYCLOAK) | {f"LAKEKEEPER__OPENID_PROVIDERS__{provider_id}__URI": ENTRA}

    with pytest.raises(EnvironmentRefusedError, match=f"OPENID_PROVIDERS__{provider_id}__"):
        Variables(variables, RELEASE).build_settings()
