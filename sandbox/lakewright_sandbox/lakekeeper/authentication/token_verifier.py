"""Verify bearer tokens with the keys of an OpenID provider."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import jwt

from lakewright_sandbox.lakekeeper.authentication.openid_configuration import (
    ProviderUnreachableError,
    open_client,
    read_configuration,
    read_keys,
)
from lakewright_sandbox.lakekeeper.authentication.token_claims import (
    Claims,
    build_refusal,
    get_roles,
    get_text,
    names_audience,
)
from lakewright_sandbox.lakekeeper.protocol.identities import validate_user_id
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal
from lakewright_sandbox.lakekeeper.protocol.settings import OpenidConfiguration, OpenidProvider

log = logging.getLogger(__name__)

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
KEY_SECONDS = 3600.0
"""Time after which keys are fetched again."""
REFETCH_SECONDS = 1.0
"""Minimum interval between requests to a provider."""


class TokenVerifier:
    """Verify signature, issuer, audience, scope and times of JWTs.

    A provider without a configuration is asked for it at the first token. Keys are fetched when a token needs them.

    User ids are `ID~SUBJECT`, with the id of the provider; `find_subject` returns the subject of a token's claims, or
    None. As on the real server, a subject that no user id may have is a 400.
    """

    def __init__(
        self, provider: OpenidProvider, find_subject: Callable[[Claims], str | None], *, ca_file: str | None = None
    ) -> None:
        """Verify tokens of one provider.

        Args:
            provider: The OpenID provider. Without audiences, any audience is accepted.
            find_subject: Returns the subject of claims.
            ca_file: File of certificate authorities for the provider.
        """
        self._provider, self._find_subject = provider, find_subject
        self._client = open_client(ca_file)
        self._lock = threading.Lock()
        self._configuration = provider.configuration
        self._keys, self._keys_expire_at = dict[str, jwt.PyJWK](), 0.0
        self._asked_at = -REFETCH_SECONDS

    def handles(self, claims: Claims) -> bool:
        """Return whether unverified claims are of this provider and for this server; False before it responded once."""
        with self._lock:
            configuration = self._find_configuration()
        if configuration is None:
            return False
        return claims.get("iss") in self._list_issuers(configuration) and names_audience(
            claims, self._provider.audiences
        )

    def principal(self, token: str) -> TokenPrincipal:
        """Return the principal of a token.

        Raises 401 `AuthenticationFailed`, also if the provider cannot be reached, and 400 for an invalid subject.
        """
        try:
            issuers, key = self._find_key(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                issuer=issuers,
                audience=self._provider.audiences or None,
                options={"require": ["exp", "iss"], "verify_aud": bool(self._provider.audiences), "verify_sub": False},
            )
        except jwt.InvalidTokenError as error:
            raise build_refusal(type(error).__name__) from None
        if self._provider.scope is not None and self._provider.scope not in (get_text(claims, "scope") or "").split():
            raise build_refusal("NoScope")
        subject = self._find_subject(claims)
        if subject is None:
            raise build_refusal("NoSubject")
        return TokenPrincipal(
            id=validate_user_id(f"{self._provider.id}~{subject}"),
            name=get_text(claims, "name", "preferred_username"),
            email=get_text(claims, "email"),
            is_human=_is_human(claims),
            has_roles=bool(self._provider.roles_claim and get_roles(claims, self._provider.roles_claim)),
        )

    def _find_key(self, key_id: str | None) -> tuple[list[str], jwt.PyJWK]:
        """Return the accepted issuers and the key with an id."""
        with self._lock:
            configuration = self._find_configuration()
            if configuration is None:
                raise build_refusal("NoProvider")
            key = self._keys.get(key_id or "")
            if key_id and (key is None or time.monotonic() > self._keys_expire_at) and self._may_ask():
                self._fetch_keys(configuration)
                # As on the real server, the token that makes it fetch the keys again is verified with the earlier key.
                key = self._keys.get(key_id, key)
            if key is None:
                raise build_refusal("UnknownKey")
            return self._list_issuers(configuration), key

    def _fetch_keys(self, configuration: OpenidConfiguration) -> None:
        try:
            self._keys = read_keys(self._client, configuration.keys_url)
        except ProviderUnreachableError as error:
            self._warn(error)
        else:
            self._keys_expire_at = time.monotonic() + KEY_SECONDS

    def _find_configuration(self) -> OpenidConfiguration | None:
        if self._configuration is None and self._may_ask():
            try:
                self._configuration = read_configuration(self._client, self._provider.uri)
            except ProviderUnreachableError as error:
                self._warn(error)
            else:
                self._asked_at = -REFETCH_SECONDS
        return self._configuration

    def _list_issuers(self, configuration: OpenidConfiguration) -> list[str]:
        return [configuration.issuer, *self._provider.additional_issuers]

    def _may_ask(self) -> bool:
        """Return whether the provider may be asked again, and take note of the time if it may."""
        if time.monotonic() - self._asked_at < REFETCH_SECONDS:
            return False
        self._asked_at = time.monotonic()
        return True

    def _warn(self, error: ProviderUnreachableError) -> None:
        log.warning("cannot ask the OpenID provider %s: %s", self._provider.uri, error)


def _is_human(claims: Claims) -> bool:
    """Return whether the token is a person's: it has an address, and no client got it for itself."""
    return bool(get_text(claims, "email")) and get_text(claims, "sub") != get_text(claims, "azp", "client_id")
