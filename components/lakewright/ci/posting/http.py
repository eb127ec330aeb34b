"""Calls to the API of a forge: JSON, pages, retries, and errors without tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from lakewright.ci.errors import ForbiddenPostError, MissingTargetError, PostError, SettingError
from lakewright.http.responses import retry_after
from lakewright.http.retry import RetryableError, RetryPolicy
from lakewright.names.host_kinds import leaves_without_tls

_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_PAGE = 100
"""Entries of a page."""
MOST_PAGES = 100
"""Pages of a list that are read at most."""
_TIMEOUT = httpx.Timeout(30.0)

Entry = dict[str, Any]


class ForgeApi:
    """The API of a forge at one address. Other addresses get no token, as redirections are not followed."""

    def __init__(self, title: str, base_url: str, headers: dict[str, str], retry: RetryPolicy | None = None) -> None:
        """Create the client; it makes no call. Raises SettingError if a token would be sent without TLS."""
        if leaves_without_tls(base_url) or urlsplit(base_url).scheme not in ("http", "https"):
            raise SettingError(f"address of {title}: expected `https://`, as a token is sent; found {base_url}")
        self.title = title
        self._base, self._retry = base_url.rstrip("/"), retry or RetryPolicy()
        self._http = httpx.Client(headers={"accept": "application/json", **headers}, timeout=_TIMEOUT)

    def get(self, path: str, **parameters: str | int) -> Any:
        """Return the JSON of a path. Raises PostError."""
        return self._retry.run(lambda: self._call("GET", path, parameters=parameters))

    def list(self, path: str, **parameters: str | int) -> Iterator[Entry]:
        """Yield the entries of all pages of a list."""
        for number in range(1, MOST_PAGES + 1):
            page = self.get(path, **parameters, per_page=_PAGE, page=number)
            entries = cast(list[Any], page) if isinstance(page, list) else []
            yield from (cast(Entry, entry) for entry in entries if isinstance(entry, dict))
            if len(entries) < _PAGE:
                return

    def send(self, method: str, path: str, body: Entry | None = None) -> Any:
        """Send a change. A creation is not repeated after its response is lost: it may have been applied."""
        is_repeatable = method != "POST"
        return self._retry.run(lambda: self._call(method, path, body=body, is_repeatable=is_repeatable))

    def remove(self, path: str) -> None:
        """Delete something that another run may have deleted already."""
        try:
            self.send("DELETE", path)
        except MissingTargetError:
            return

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Entry | None = None,
        parameters: dict[str, str | int] | None = None,
        is_repeatable: bool = True,
    ) -> Any:
        server = f"{self.title} at {urlsplit(self._base).hostname}"
        try:
            response = self._http.request(method, f"{self._base}{path}", json=body, params=parameters)
        except httpx.HTTPError as error:
            failure = PostError(
                f"{server} did not respond to {method} {path}: {type(error).__name__}. Try again later."
            )
            if is_repeatable or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                raise RetryableError(failure) from None
            raise failure from None
        if response.is_success:
            return _parse_json(response)
        message = f"{server} responded with {response.status_code} to {method} {path}{_format_message(response)}"
        match response.status_code:
            case 429:  # refused before anything was applied
                raise RetryableError(
                    PostError(f"{message}. Try again later."), retry_after(response.headers.get("retry-after", ""))
                )
            case status if status in _TRANSIENT_STATUSES and is_repeatable:
                raise RetryableError(PostError(f"{message}. Try again later."))
            case 401:
                raise PostError(f"{message}. Check the token.")
            case 403:
                raise ForbiddenPostError(
                    f"{message}. The token has no right to do this: check `permissions` of the job."
                )
            case 404:
                raise MissingTargetError(f"{message}. It does not exist, or the token may not see it.")
            case status if 300 <= status < 400:
                raise PostError(f"{message}: it has moved. Run the job in the repository's new location.")
            case _:
                raise PostError(f"{message}.")


def _parse_json(response: httpx.Response) -> Any:
    if response.status_code == 204 or not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise PostError(
            f"{response.request.url.host} responded with something other than JSON. Check its address."
        ) from None


def _format_message(response: httpx.Response) -> str:
    """Return the message in an error's body, on one line."""
    try:
        body = response.json()
    except ValueError:
        return ""
    message = cast(Entry, body).get("message") if isinstance(body, dict) else None
    return f" ({' '.join(message.split())[:200]})" if isinstance(message, str) else ""
