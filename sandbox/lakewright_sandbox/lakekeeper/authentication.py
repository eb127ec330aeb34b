"""Authenticate callers: verify bearer tokens with the keys of an OpenID provider. Disabled without a provider."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, cast

import httpx
import jwt
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import validate_user_id
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal
from lakewright_sandbox.lakekeeper.protocol.settings import OpenidProvider, Settings
from lakewright_sandbox.lakekeeper.token_review import TokenReviewer, names_audience

log = logging.getLogger(__name__)

PROJECT_NEEDED = (
    "Default project must be set or X-Project-ID header must be provided if roles are extracted from tokens"
)

OPEN = frozenset({"/health"})
"""Paths without authentication."""

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
WELL_KNOWN = ".well-known/openid-configuration"
REFETCH_SECONDS = 1.0
"""Minimum interval between fetches of a provider's issuer and keys."""


Claims = dict[str, Any]


class TokenVerifier:
    """Verify signature, issuer, audience, scope and times of JWTs. The provider's keys are fetched on demand.

    User ids are `ID~SUBJECT`, with the id of the provider; `subject` returns the subject of a token's claims, or None.
    As on the real server, a subject that no user id may have is a 400.
    """

    def __init__(
        self, provider: OpenidProvider, subject: Callable[[Claims], str | None], *, ca_file: str | None = None
    ) -> None:
        """Verify tokens of one provider.

        Args:
            provider: The OpenID provider. Without audiences, any audience is accepted.
            subject: Returns the subject of claims.
            ca_file: File of certificate authorities for the provider.
        """
        self._provider, self._subject = provider, subject
        verify = ssl.create_default_context(cafile=ca_file) if ca_file else True
        self._http = httpx.Client(timeout=10, trust_env=False, verify=verify)
        address = provider.uri.rstrip("/").removesuffix(WELL_KNOWN).rstrip("/")
        self._configuration_url = f"{address}/{WELL_KNOWN}"
        self._lock = threading.Lock()
        self._issuers, self._keys, self._fetched_at = list[str](), dict[str, jwt.PyJWK](), -REFETCH_SECONDS

    def can_connect(self) -> bool:
        """Return whether the provider responds with its configuration."""
        try:
            self._read_configuration()
        except (httpx.HTTPError, ValueError, KeyError):
            return False
        return True

    def handles(self, claims: Claims) -> bool:
        """Return whether unverified claims are of this provider and for this server; False if it cannot be reached."""
        with self._lock:
            if not self._issuers:
                self._fetch()
        return claims.get("iss") in self._issuers and names_audience(claims, self._provider.audiences)

    def principal(self, token: str) -> TokenPrincipal:
        """Return the principal of a token.

        Raises 401 `AuthenticationFailed`, also if the provider cannot be reached, and 400 for an invalid subject.
        """
        try:
            key = self._find_key(jwt.get_unverified_header(token).get("kid", ""))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                issuer=self._issuers,
                audience=self._provider.audiences or None,
                options={"require": ["exp", "iss"], "verify_aud": bool(self._provider.audiences), "verify_sub": False},
            )
        except (jwt.InvalidTokenError, jwt.PyJWKError) as error:
            raise _build_refusal(type(error).__name__) from None
        if self._provider.scope is not None and self._provider.scope not in (_text(claims, "scope") or "").split():
            raise _build_refusal("NoScope")
        subject = self._subject(claims)
        if subject is None:
            raise _build_refusal("NoSubject")
        return TokenPrincipal(
            id=validate_user_id(f"{self._provider.id}~{subject}"),
            name=_text(claims, "name", "preferred_username"),
            email=_text(claims, "email"),
            is_human=_is_human(claims),
            has_roles=isinstance(claims.get(self._provider.roles_claim or ""), list),
        )

    def _find_key(self, key_id: str) -> jwt.PyJWK:
        with self._lock:
            if key_id not in self._keys:
                self._fetch()
            if key_id not in self._keys:
                raise _build_refusal("UnknownKey")
            return self._keys[key_id]

    def _fetch(self) -> None:
        """Fetch issuer and keys, unless that was tried within REFETCH_SECONDS."""
        if time.monotonic() - self._fetched_at < REFETCH_SECONDS:
            return
        try:
            issuer, keys_url = self._read_configuration()
            keys = self._http.get(keys_url).raise_for_status().json()
            self._keys = {key.key_id or "": key for key in jwt.PyJWKSet.from_dict(keys).keys}
            self._issuers = [issuer, *self._provider.additional_issuers]
        except (httpx.HTTPError, ValueError, KeyError, jwt.PyJWTError) as error:
            log.warning("cannot fetch the keys of the OpenID provider %s: %s", self._provider.uri, type(error).__name__)
        self._fetched_at = time.monotonic()

    def _read_configuration(self) -> tuple[str, str]:
        """Return the issuer and the address of the keys. Raises HTTPError, ValueError and KeyError."""
        configuration = self._http.get(self._configuration_url).raise_for_status().json()
        return str(configuration["issuer"]), str(configuration["jwks_uri"])


class Verifier(Protocol):
    """Finds out whose token it is."""

    def handles(self, claims: Claims) -> bool:
        """Return whether a token with these unverified claims is for this verifier."""
        ...

    def principal(self, token: str) -> TokenPrincipal:
        """Return the principal of a token. Raises ApiError."""
        ...


def create_verifiers(settings: Settings) -> list[Verifier]:
    """Return the verifiers of accepted tokens; callers are not authenticated without any."""
    verifiers: list[Verifier] = [
        create_token_verifier(provider, settings.ca_file) for provider in list_openid_providers(settings)
    ]
    if settings.kubernetes_issuer:
        subject = partial(_service_account, settings.kubernetes_subject)
        # A TokenReview without audiences checks the API server's own, which is its issuer by default.
        audiences = settings.kubernetes_audiences or (settings.kubernetes_issuer.rstrip("/"),)
        verifiers.append(TokenVerifier(OpenidProvider("kubernetes", settings.kubernetes_issuer, audiences), subject))
    if settings.kubeconfig or settings.in_cluster:
        verifiers.append(TokenReviewer(settings.kubeconfig, settings.kubernetes_audiences, settings.kubernetes_subject))
    return verifiers


def list_openid_providers(settings: Settings) -> tuple[OpenidProvider, ...]:
    """Return all OpenID providers in the order in which they are asked, the primary one first."""
    if not settings.openid_provider_uri:
        return settings.openid_providers
    primary = OpenidProvider(
        id="oidc",
        uri=settings.openid_provider_uri,
        audiences=settings.openid_audiences,
        subject_claims=settings.openid_subject_claims,
        roles_claim=settings.openid_roles_claim,
        additional_issuers=settings.openid_additional_issuers,
        scope=settings.openid_scope,
    )
    return (primary, *settings.openid_providers)


def create_token_verifier(provider: OpenidProvider, ca_file: str | None) -> TokenVerifier:
    """Return the verifier of a provider's tokens."""
    return TokenVerifier(provider, partial(_find_subject, provider.subject_claims), ca_file=ca_file)


def _find_subject(names: tuple[str, ...], claims: Claims) -> str | None:
    """Return the first of these claims that is a text; the text may be empty."""
    return _text(claims, *names)


def _service_account(source: str, claims: Claims) -> str | None:
    cluster = claims.get("kubernetes.io")
    account = cast(Claims, cluster).get("serviceaccount") if isinstance(cluster, dict) else None
    if not isinstance(account, dict):
        return None
    return _text(cast(Claims, account), "uid") if source == "uid" else _text(claims, "sub")


class Authentication:
    """Middleware that stores the caller in the request's state, or responds 401."""

    def __init__(self, app: ASGIApp, verifiers: Sequence[Verifier], *, needs_project: bool) -> None:
        """Wrap an application.

        Args:
            app: The application.
            verifiers: Verifiers of accepted tokens.
            needs_project: Whether a caller whose token has roles must name their project.
        """
        self._app, self._verifiers, self._needs_project = app, verifiers, needs_project

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate and forward one request."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        try:
            token = _bearer(scope)
            principal = await run_in_threadpool(self._principal, token)
            if self._needs_project and principal.has_roles:
                _check_project_named(scope)
        except ApiError as refused:
            await refused.response()(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)

    def _principal(self, token: str) -> TokenPrincipal:
        """Return the principal by the first verifier that handles the token. A sole verifier gets every token."""
        first, *further = self._verifiers
        if not further:
            return first.principal(token)
        try:
            claims: Claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.InvalidTokenError:
            raise _build_refusal("NoToken") from None
        for verifier in self._verifiers:
            if verifier.handles(claims):
                return verifier.principal(token)
        raise _build_refusal("NoProvider")


def _check_project_named(scope: Scope) -> None:
    headers = cast(list[tuple[bytes, bytes]], scope["headers"])
    if not any(name in {b"x-project-id", b"x-project-ident"} and value for name, value in headers):
        raise ApiError(400, "MissingProjectId", PROJECT_NEEDED)


def _is_human(claims: Claims) -> bool:
    """Return whether the token is a person's: it has an address, and no client got it for itself."""
    return bool(_text(claims, "email")) and _text(claims, "sub") != _text(claims, "azp", "client_id")


def _bearer(scope: Scope) -> str:
    headers = cast(list[tuple[bytes, bytes]], scope["headers"])
    value = next((value for name, value in headers if name == b"authorization"), b"").decode("latin-1")
    if not value:
        raise ApiError(401, "MissingAuthorizationHeader", "Authorization header is missing")
    scheme, _, token = value.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise _build_refusal("NoBearerToken")
    return token.strip()


def _build_refusal(reason: str) -> ApiError:
    """Return the error; `reason` is a kind of fault, never a part of the token."""
    return ApiError(401, "AuthenticationFailed", f"The token was not accepted: {reason}")


def _text(claims: dict[str, Any], *names: str) -> str | None:
    return next((claims[name] for name in names if isinstance(claims.get(name), str)), None)
