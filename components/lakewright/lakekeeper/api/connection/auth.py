"""Bearer tokens for requests: none, fixed, from a file, or from an identity provider by OAuth2 client credentials."""

import re
import ssl
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Protocol, cast

import httpx
from typing_extensions import override

from lakewright.http.deadline import call_within, enforce_deadlines
from lakewright.http.responses import (
    ENCODINGS,
    MEBIBYTE,
    UnusableResponseError,
    limit_size,
)
from lakewright.http.retry import RetryableError, RetryPolicy
from lakewright.http.tls import hint
from lakewright.lakekeeper.api.connection.errors import Call, NotAuthenticatedError
from lakewright.lakekeeper.api.connection.response_body import parse_json
from lakewright.lakekeeper.api.connection.server import (
    NoServerAuth,
    ServerClientCredentialsAuth,
    ServerRef,
    ServerTokenAuth,
    ServerTokenFileAuth,
    require_tls,
)

Resolve = Callable[[str], str]
"""Returns the secret behind a reference."""

RENEWAL_FRACTION = 0.2
"""A token is renewed when this fraction of its lifetime is left."""

TOKEN = re.compile(r"[\x21-\x7e]+")
"""Characters allowed in a token. Wider than RFC 6750, section 2.1, since servers may issue other tokens."""

RETRY = RetryPolicy(attempts=3)
TOKEN_TIMEOUT_SECONDS = 30.0
"""Seconds for the whole response of a token endpoint."""

PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Status codes of a token endpoint that are not caused by the request."""


class Tokens(Protocol):
    """Source of tokens."""

    def current(self) -> str:
        """Return a token that is expected to be valid."""
        ...

    def renew(self, rejected: str) -> str:
        """Return another token after the server rejected one; the same token if there is no other."""
        ...


class FixedToken(Tokens):
    """A token behind a reference, which is resolved again when the token is rejected."""

    def __init__(self, reference: str, resolve: Resolve) -> None:
        """Create the source; it makes no call."""
        self._reference, self._resolve = reference, resolve
        self._token: str | None = None

    def current(self) -> str:
        """Return the token to send."""
        if self._token is None:
            self._token = self._look_up()
        return self._token

    @override
    def renew(self, rejected: str) -> str:
        self._token = self._look_up()
        return self._token

    def _look_up(self) -> str:
        """Return the token without the newline that secrets in variables often end with."""
        return self._resolve(self._reference).strip()


class TokenFile(Tokens):
    """A token in a file, read at each use."""

    def __init__(self, path: str) -> None:
        """Create the source; it makes no call."""
        self._path = Path(path)

    def current(self) -> str:
        """Return the token to send."""
        try:
            return self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotAuthenticatedError(f"token file {self._path} cannot be read: {type(error).__name__}") from None

    @override
    def renew(self, rejected: str) -> str:
        return self.current()


class ClientCredentials(Tokens):
    """OAuth2 client credentials (RFC 6749, section 4.4). Makes one request at a time and renews tokens early."""

    def __init__(
        self,
        settings: ServerClientCredentialsAuth,
        resolve: Resolve,
        http: httpx.Client,
        now: Callable[[], float] = time.monotonic,
        retry: RetryPolicy = RETRY,
    ) -> None:
        """Create the source; it makes no call."""
        self._settings, self._resolve, self._http, self._now, self._retry = settings, resolve, http, now, retry
        self._lock = threading.Lock()
        self._token, self._renew_at = "", 0.0

    def current(self) -> str:
        """Return the token to send."""
        with self._lock:
            if not self._token or self._now() >= self._renew_at:
                self._fetch()
            return self._token

    def renew(self, rejected: str) -> str:
        """Return another token than the rejected one."""
        with self._lock:
            if self._token == rejected:  # otherwise another thread has renewed it
                self._fetch()
            return self._token

    def _fetch(self) -> None:
        settings = self._settings
        form = {
            "grant_type": "client_credentials",
            "client_id": settings.client_id,
            "client_secret": self._resolve(settings.client_secret),
        }
        form |= {"scope": settings.scope} if settings.scope else {}
        form |= {"audience": settings.audience} if settings.audience else {}
        self._token, lifetime = self._retry.run(lambda: self._request_token(form))
        self._renew_at = self._now() + lifetime * (1 - RENEWAL_FRACTION)

    def _request_token(self, form: dict[str, str]) -> tuple[str, float]:
        """Return a token and its lifetime in seconds. Requests are repeatable, so temporary errors are retried."""
        settings = self._settings
        try:
            with call_within(TOKEN_TIMEOUT_SECONDS):
                response = self._http.post(settings.token_url, data=form)
        except UnusableResponseError as unusable:
            raise NotAuthenticatedError(f"token endpoint {settings.token_url}: the response {unusable}.") from None
        except httpx.HTTPError as error:
            reason = str(error) if isinstance(error, httpx.ConnectError) else ""
            because = f" ({reason})" if reason else ""
            raise RetryableError(
                NotAuthenticatedError(
                    f"token endpoint {settings.token_url} did not respond: {type(error).__name__}{because}."
                    f"{hint(reason)}"
                )
            ) from None
        token, lifetime = _read_token(response)
        if response.status_code == 200 and token:
            return token, lifetime
        refused = NotAuthenticatedError(
            f"token endpoint {settings.token_url} gave no token to client {settings.client_id}:"
            f" it responded with {response.status_code} {_reason(response)}".rstrip()
        )
        raise RetryableError(refused) if response.status_code in PASSING else refused


def make_token_client(
    *, verify: ssl.SSLContext | bool = True, transport: httpx.BaseTransport | None = None
) -> httpx.Client:
    """Return the HTTP client for a token endpoint. It limits the size of responses."""
    client = httpx.Client(
        timeout=TOKEN_TIMEOUT_SECONDS,
        verify=verify,
        transport=transport,
        headers={"accept-encoding": ENCODINGS},
        event_hooks={"response": [limit_size(MEBIBYTE)]},
    )
    enforce_deadlines(client)
    return client


def _body(response: httpx.Response) -> dict[str, Any]:
    body = parse_json(Call("POST", response.request.url.path, str(response.request.url.host)), response)
    return cast(dict[str, Any], body) if isinstance(body, dict) else {}


def _read_token(response: httpx.Response) -> tuple[str, float]:
    body = _body(response)
    token, lifetime = body.get("access_token"), body.get("expires_in", 300)
    return (token if isinstance(token, str) else ""), (float(lifetime) if isinstance(lifetime, int | float) else 300.0)


def _reason(response: httpx.Response) -> str:
    """Return the error code of RFC 6749, section 5.2. The description is omitted: it may repeat the request."""
    code = _body(response).get("error")
    return code if isinstance(code, str) else ""


class BearerAuth(httpx.Auth):
    """Adds the token to requests. After a 401 it tries once more with another token."""

    def __init__(self, tokens: Tokens) -> None:
        """Create the authentication; it makes no call."""
        self._tokens = tokens

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send the request with the token, and after a 401 once more with another token."""
        token = self._tokens.current()
        request.headers["Authorization"] = _bearer(token)
        response = yield request
        if response.status_code == 401:
            request.headers["Authorization"] = _bearer(self._tokens.renew(token))
            yield request


def _bearer(token: str) -> str:
    """Return the header for a token.

    Raises:
        NotAuthenticatedError: No header can hold the token. The message does not contain it.
    """
    if not TOKEN.fullmatch(token):
        problem = "is empty" if not token else "has spaces, line breaks or other characters that tokens cannot have"
        raise NotAuthenticatedError(f"the token {problem}. Check what `auth` of the server's settings refers to.")
    return f"Bearer {token}"


def make_auth(server: ServerRef, resolve: Resolve, *, verify: ssl.SSLContext | bool = True) -> httpx.Auth | None:
    """Return httpx's authentication for a server's `auth`.

    Args:
        server: The server and how to authenticate.
        resolve: Returns the secret behind a reference.
        verify: TLS verification of the token endpoint.

    Raises:
        InsecureEndpointError: A token or secret would be sent to another machine without TLS.
    """
    require_tls(server)
    match auth := server.auth:
        case NoServerAuth():
            return None
        case ServerTokenAuth(token=reference):
            return BearerAuth(FixedToken(reference, resolve))
        case ServerTokenFileAuth(path=path):
            return BearerAuth(TokenFile(path))
        case ServerClientCredentialsAuth():
            return BearerAuth(ClientCredentials(auth, resolve, make_token_client(verify=verify)))
