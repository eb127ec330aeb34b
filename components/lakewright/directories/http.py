"""Calls to the API of a directory: tokens, retries, pages, and errors in plain words."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from lakewright.directories.directory import DirectoryRefusedError, DirectoryUnavailableError, Resolve
from lakewright.http.deadline import call_within
from lakewright.http.responses import UnusableResponseError, retry_after
from lakewright.http.retry import RetryableError, RetryPolicy
from lakewright.lakekeeper.api.connection.auth import BearerAuth, ClientCredentials, make_token_client
from lakewright.lakekeeper.api.connection.errors import NotAuthenticatedError
from lakewright.lakekeeper.api.connection.server import ServerClientCredentialsAuth
from lakewright.names.host_kinds import leaves_without_tls

TIMEOUT_SECONDS = 30.0
"""Seconds for a whole response."""
_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


class DirectoryApi:
    """The API of one directory. A token that was rejected is renewed once; temporary errors are repeated."""

    def __init__(
        self,
        title: str,
        base_url: str,
        auth: ServerClientCredentialsAuth,
        resolve: Resolve,
        retry: RetryPolicy | None = None,
    ) -> None:
        """Create the client; it makes no call.

        Args:
            title: Name of the directory in messages.
            base_url: Address of the API; other addresses get no token.
            auth: Client of the directory that may read groups.
            resolve: Returns the secret behind a reference.
            retry: Number of tries and waits.
        """
        for url in (base_url, auth.token_url):
            if leaves_without_tls(url):
                raise DirectoryRefusedError(
                    f"{title}: expected `https://`, as secrets and tokens are sent; found {url}."
                )
        self.title = title
        self._base, self._retry = base_url.rstrip("/"), retry or RetryPolicy()
        self._http = make_token_client()
        self.client_id = auth.client_id
        self._auth = BearerAuth(ClientCredentials(auth, resolve, make_token_client()))

    def get(self, path: str, parameters: dict[str, str | int] | None = None) -> Any:
        """Return the JSON of a path, or of the address of a next page; None if there is no such object.

        Raises:
            DirectoryRefusedError: The credential or the client's rights are not sufficient.
            DirectoryUnavailableError: There is no usable response after the last try.
        """
        url = path if "://" in path else f"{self._base}{path}"
        if urlsplit(url)[:2] != urlsplit(self._base)[:2]:
            raise DirectoryUnavailableError(
                f"{self.title} named the page {urlsplit(url).hostname}, expected one of {self._base}: the token is"
                " sent to no other server"
            )
        return self._retry.run(lambda: self._send(url, parameters))

    def _send(self, url: str, parameters: dict[str, str | int] | None) -> Any:
        server = f"{self.title} at {self._base}"
        try:
            with call_within(TIMEOUT_SECONDS):
                response = self._http.get(url, params=parameters, auth=self._auth)
        except NotAuthenticatedError as refused:
            raise DirectoryRefusedError(f"{server}: {refused}. Check `directory` of the environment.") from None
        except UnusableResponseError as unusable:
            raise DirectoryUnavailableError(f"{server}: the response {unusable}.") from None
        except httpx.HTTPError as error:
            raise RetryableError(
                DirectoryUnavailableError(f"{server} did not respond: {type(error).__name__}. Try again later.")
            ) from None
        match response.status_code:
            case 200:
                return self._parse_json(response)
            case 404:
                return None
            case 401 | 403:
                code = _format_error_code(response)
                raise DirectoryRefusedError(
                    f"{server} responded with {response.status_code} to client `{self.client_id}`{code}. Give it the"
                    " right to read groups and users, and check its secret."
                )
            case status:
                code = _format_error_code(response)
                unavailable = DirectoryUnavailableError(
                    f"{server} responded with {status}{code}; expected the members of a group. Try again later."
                )
                wait = retry_after(response.headers.get("retry-after", ""))
                raise RetryableError(unavailable, wait) if status in _TRANSIENT_STATUSES else unavailable

    def _parse_json(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError:
            raise DirectoryUnavailableError(
                f"{self.title} at {self._base} responded with something other than JSON. Check its address."
            ) from None


def _format_error_code(response: httpx.Response) -> str:
    """Return the error code of a response. Its text is omitted: it may repeat the request."""
    try:
        body = response.json()
    except ValueError:
        return ""
    error = cast(dict[str, Any], body).get("error") if isinstance(body, dict) else None
    code = cast(dict[str, Any], error).get("code") if isinstance(error, dict) else error
    return f" ({code})" if isinstance(code, str) else ""
