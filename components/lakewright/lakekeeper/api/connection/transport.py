"""One try of an HTTP call: its response, the error of a failure, and whether the call may be retried.

Separate from the client, since the import of httpx is slow and a program that only declares resources sends nothing.
"""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast
from urllib.parse import quote, urlencode

import httpx

from lakewright.http.deadline import call_within, enforce_deadlines
from lakewright.http.responses import (
    ENCODINGS,
    UnusableResponseError,
    limit_size,
    retry_after,
)
from lakewright.http.retry import RetryableError
from lakewright.http.tls import CaBundleError, hint, trust
from lakewright.lakekeeper.api.connection import errors, settings
from lakewright.lakekeeper.api.connection.auth import Resolve, make_auth
from lakewright.lakekeeper.api.connection.response_body import parse_json
from lakewright.lakekeeper.api.connection.server import ServerRef


class Sender:
    """The connections to one server. Thread-safe."""

    def __init__(
        self,
        server: ServerRef,
        resolve: Resolve,
        transport: httpx.BaseTransport | None,
        limit: AbstractContextManager[object] | None = None,
    ) -> None:
        """Create the sender; it makes no call. `limit` is entered for each request, and not while a retry waits."""
        self.endpoint = server.endpoint
        self._limit = limit or nullcontext()
        try:
            verify = trust(server.ca_bundle)
        except CaBundleError as error:
            raise errors.UnreachableError(str(error)) from None
        self._http = httpx.Client(
            base_url=server.endpoint,
            auth=make_auth(server, resolve, verify=verify),
            # Loading the certificate authorities is slow, and without TLS they are not used.
            verify=verify if server.endpoint.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            timeout=_make_timeout(settings.answer_within()),
            transport=transport,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=64, keepalive_expiry=60),
            headers={"user-agent": "lakewright", "accept-encoding": ENCODINGS},
            event_hooks={"response": [limit_size(settings.answer_limit())]},
        )
        enforce_deadlines(self._http)

    def send(self, call: errors.Call, options: dict[str, Any], *, probes: bool, idempotent: bool) -> httpx.Response:
        """Send a call and return its successful response. Raises RetryableError, or a final error."""
        seconds = settings.validation_within() if probes else settings.answer_within()
        request: dict[str, Any] = {**options, "timeout": _make_timeout(seconds)}
        query = request.pop("params", None)
        # One complete URL: httpx parses it once instead of four times.
        url = f"{self.endpoint.rstrip('/')}{call.path}{f'?{urlencode(query, quote_via=quote)}' if query else ''}"
        try:
            with self._limit, call_within(seconds):
                response = self._http.request(call.method, url, **request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol) as error:
            reason = "timed out" if isinstance(error, httpx.TimeoutException) else str(error) or type(error).__name__
            raise RetryableError(
                errors.UnreachableError(
                    f"Lakekeeper at {self.endpoint} cannot be reached for {call.method} {call.path}: {reason}."
                    f"{hint(reason) or ' Check the endpoint and that the server runs.'}"
                )
            ) from None
        except httpx.TimeoutException:
            why = "; the server probes the storage in this call, which can be slow" if probes else ""
            slow = errors.ResponseTimeoutError(f"{call} did not respond within {seconds:g} s{why}")
            # A retry after so long a wait would multiply the time that the user waits.
            raise slow from None
        except UnusableResponseError as unusable:
            raise errors.BadResponseError(
                f"{call}: the response {unusable}. Is this a Lakekeeper server? LAKEWRIGHT_ANSWER_LIMIT sets the"
                " largest size, in MiB."
            ) from None
        except httpx.HTTPError as error:
            broken = errors.UnconfirmedError(
                f"{call}: the connection was lost before a response arrived ({type(error).__name__})"
            )
            raise (RetryableError(broken) if idempotent else broken) from None
        if response.is_success or response.status_code == 304:
            return response
        kind, message = _reason(call, response)
        message = _remove_secrets(message, response.request.headers, request.get("json"))
        error = errors.refusal(call, response.status_code, kind, message)
        if _again(response.status_code, kind, idempotent=idempotent):
            raise RetryableError(error, retry_after(response.headers.get("retry-after", "")))
        if response.status_code == 503 and not idempotent:
            raise errors.UnconfirmedError(str(error))
        raise error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _make_timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=settings.CONNECT_TIMEOUT_SECONDS)


def _again(status: int, kind: str, *, idempotent: bool) -> bool:
    if status == 429 or kind == "MaintenanceModeError" or (status == 409 and kind in errors.CONCURRENT):
        return True  # refused before processing: nothing was applied
    return idempotent and status in {408, 502, 503, 504}


def _reason(call: errors.Call, response: httpx.Response) -> tuple[str, str]:
    """Return type and message of a refusal. A plain text body is a message without a type."""
    if response.next_request is not None:
        origin = _origin(response.next_request.url)
        return "", f"it redirects to {origin}. If that is the server's address, set `endpoint` to it"
    body = parse_json(call, response)
    if body is None:
        return "", response.text if response.headers.get("content-type", "").startswith("text/plain") else ""
    error = cast(dict[str, Any], body).get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return "", ""
    error = cast(dict[str, Any], error)
    return str(error.get("type") or ""), str(error.get("message") or "")


def _origin(url: httpx.URL) -> str:
    """Return the URL without path and query, which may hold secrets of a log-in page."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def _remove_secrets(message: str, headers: httpx.Headers, body: object) -> str:
    """Return a message without the secrets of the request: some gateways return the request itself."""
    for secret in [headers.get("authorization", "").removeprefix("Bearer "), *_confidential(body)]:
        if secret:
            message = message.replace(secret, "[secret]").replace(json.dumps(secret)[1:-1], "[secret]")
    return message


def _confidential(body: object, *, inside: bool = False) -> Iterator[str]:
    """Yield the strings within the credentials of a request's body."""
    if isinstance(body, Mapping):
        for key, value in cast(Mapping[str, object], body).items():
            if not key.endswith("type"):  # types such as `s3` and `access-key` are not secrets
                yield from _confidential(value, inside=inside or key.endswith("credential"))
    elif isinstance(body, str) and inside:
        yield body
