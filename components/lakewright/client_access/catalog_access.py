"""Requests to Lakekeeper with the identity of a computing unit. Refusals are results, not errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from typing_extensions import override

from lakewright.client_access.check import AttemptResult, ProbeFailedError
from lakewright.lakekeeper.api.connection.client import Client, Method, Params
from lakewright.lakekeeper.api.connection.errors import NotAuthenticatedError, RefusedError
from lakewright.lakekeeper.api.connection.paging import pages

HIDDEN_WAREHOUSE = frozenset({"NoSuchWarehouseException", "WarehouseNotFound"})
"""Types of a 404 for a warehouse that the caller cannot see. Other 404s come from inside a visible warehouse."""


@dataclass(frozen=True)
class CatalogResponse:
    """Status and error type of a response."""

    status: int
    kind: str = ""
    body: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        """Return the evidence, without the body."""
        return f"{self.status} {self.kind}".strip()

    @property
    def is_success(self) -> bool:
        """Return whether the request was allowed."""
        return 200 <= self.status < 300

    def judge_denial(self, *hidden: str) -> AttemptResult:
        """Return whether the request was denied.

        Args:
            hidden: Types of a 404 (or 400) that mean "you cannot see this". A 404 without a type comes from a gateway.
        """
        if self.is_success:
            return "allowed"
        # 401: to anonymous requests, and to known users by the permission API. An unaccepted token raises an error.
        if self.status in {401, 403} or self.kind in hidden:
            return "denied"
        return "not proven"


class CatalogAccess:
    """One identity's access to one address."""

    def __init__(self, client: Client) -> None:
        """Use a client with the identity of a computing unit."""
        self._client = client

    @property
    def endpoint(self) -> str:
        """Return the address without `/catalog`."""
        return self._client.endpoint

    def request(
        self,
        method: Method,
        path: str,
        *,
        body: dict[str, Any] | None = None,
        params: Params | None = None,
        project: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> CatalogResponse:
        """Send a request and return its response, also if it is refused.

        Raises:
            LakekeeperError: There is no usable response, or the request had no accepted token, which proves no denial.
        """
        try:
            response = self._client.call(
                method, path, body=body, params=params, project=project, headers=headers, idempotent=method == "GET"
            )
        except RefusedError as refused:
            return CatalogResponse(refused.status, refused.kind)
        return CatalogResponse(response.status_code, body=_parse_json_object(response))

    def require(self, method: Method, path: str, **options: Any) -> CatalogResponse:
        """Send a request that must succeed. The options are the options of `request`.

        Raises:
            ProbeFailedError: It was refused.
        """
        response = self.request(method, path, **options)
        if not response.is_success:
            raise ProbeFailedError(f"{method} {path}: expected success, found {response}")
        return response

    def list_pages(self, path: str, project: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list, none if the server refuses the list.

        Raises:
            LakekeeperError: There is no usable response.
        """
        try:
            yield from pages(self._client, path, project=project)
        except RefusedError:
            return

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class AnonymousAccess(CatalogAccess):
    """Access without a token, to which a server that requires one responds with 401."""

    @override
    def request(self, method: Method, path: str, **options: Any) -> CatalogResponse:
        """Send a request and return its response, also a 401. The options are the options of `CatalogAccess`."""
        try:
            return super().request(method, path, **options)
        except NotAuthenticatedError:
            return CatalogResponse(401, "not authenticated")

    @override
    def list_pages(self, path: str, project: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list, none if the server requires a token."""
        try:
            yield from super().list_pages(path, project)
        except NotAuthenticatedError:
            return


def _parse_json_object(response: Any) -> dict[str, Any]:
    if not response.content:
        return {}
    try:
        body = response.json()
    except ValueError:
        return {}
    return cast(dict[str, Any], body) if isinstance(body, dict) else {}
