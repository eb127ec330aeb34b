"""Calls to the API of a forge: JSON, pages, retries, and errors without tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from lakewright.ci.errors import ForbiddenError, MissingError, PostError, SettingError
from lakewright.lakekeeper.api.connection.responses import retry_after
from lakewright.lakekeeper.api.connection.retry import RetryableError, RetryPolicy
from lakewright.names.host_kinds import leaves_without_tls

_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_PAGE = 100
"""Entries of a page."""
MOST_PAGES = 100
"""Pages of a list that are read at most."""
_WITHIN = httpx.Timeout(30.0)

Entry = dict[str, Any]


class ForgeApi:
    """The API of a forge at one address. Other addresses get no token, as redirections are not followed."""

    def __init__(self, title: str, base_url: str, headers: dict[str, str], retry: RetryPolicy | None = None) -> None:
        """Create the client; it makes no call. Raises SettingError if a token would be sent without TLS."""
        if leaves_without_tls(base_url) or urlsplit(base_url).scheme not in ("http", "https"):
            raise SettingError(f"address of {title}: expected `https://`, as a token is sent; found {base_url}")
        self.title = title
        self._base, self._retry = base_url.rstrip("/"), retry or RetryPolicy()
        self._http = httpx.Client(headers={"accept": "application/json", **headers}, timeout=_WITHIN)

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
        """Send a change. One that creates is not repeated after an answer is lost: it may have been applied."""
        is_repeatable = method != "POST"
        return self._retry.run(lambda: self._call(method, path, body=body, is_repeatable=is_repeatable))

    def remove(self, path: str) -> None:
        """Delete something that another run may have deleted already."""
        try:
            self.send("DELETE", path)
        except MissingError:
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
        where = f"{self.title} at {urlsplit(self._base).hostname}"
        try:
            answer = self._http.request(method, f"{self._base}{path}", json=body, params=parameters)
        except httpx.HTTPError as error:
            failed = PostError(f"{where} did not answer {method} {path}: {type(error).__name__}. Try again later.")
            if is_repeatable or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                raise RetryableError(failed) from None
            raise failed from None
        if answer.is_success:
            return _json(answer)
        said = f"{where} answered {answer.status_code} to {method} {path}{_message(answer)}"
        match answer.status_code:
            case 429:  # refused before anything was applied
                raise RetryableError(
                    PostError(f"{said}. Try again later."), retry_after(answer.headers.get("retry-after", ""))
                )
            case status if status in _PASSING and is_repeatable:
                raise RetryableError(PostError(f"{said}. Try again later."))
            case 401:
                raise PostError(f"{said}. Check the token.")
            case 403:
                raise ForbiddenError(f"{said}. The token has no right to do this: check `permissions` of the job.")
            case 404:
                raise MissingError(f"{said}. It does not exist, or the token may not see it.")
            case status if 300 <= status < 400:
                raise PostError(f"{said}: it has moved. Run the job in the repository's new place.")
            case _:
                raise PostError(f"{said}.")


def _json(answer: httpx.Response) -> Any:
    if answer.status_code == 204 or not answer.content:
        return None
    try:
        return answer.json()
    except ValueError:
        raise PostError(
            f"{answer.request.url.host} answered with something other than JSON. Check its address."
        ) from None


def _message(answer: httpx.Response) -> str:
    """Return the message in an error's body, on one line."""
    try:
        body = answer.json()
    except ValueError:
        return ""
    found = cast(Entry, body).get("message") if isinstance(body, dict) else None
    return f" ({' '.join(found.split())[:200]})" if isinstance(found, str) else ""
