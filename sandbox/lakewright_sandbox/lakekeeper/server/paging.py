"""Pages of listings. A token is base64url of `1&<micros>&<id>`, the position of the last returned row."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Query
from sqlalchemy import Select, tuple_

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.server.server import Server

Selection = TypeVar("Selection", bound=Select[*tuple[Any, ...]])


class PagedRow(Protocol):
    """A row that can be paged: ordered by creation time (an int), then by id (a str).

    The types are `Any` because SQLAlchemy's columns are descriptors, which fit no protocol's plain type.
    """

    @property
    def created_at(self) -> Any:
        """Return the creation time in microseconds."""
        ...

    @property
    def id(self) -> Any:
        """Return the id."""
        ...


Dated = TypeVar("Dated", bound=PagedRow)


@dataclass(frozen=True)
class ListPage:
    """A requested page. `after` is time and id of the last row before it, None at the start."""

    size: int
    after: tuple[int, str] | None

    @classmethod
    def from_request(
        cls, settings: Settings, token: str | None, size: int | None, *, whole: bool = False, strict: bool = False
    ) -> ListPage:
        """Return the page that a token and a size request.

        Args:
            settings: Settings of the server.
            token: The page token.
            size: The page size.
            whole: Return as much as possible at once if there is no token.
            strict: Refuse an empty token.
        """
        default = settings.page_size_max if whole and token is None else settings.page_size_default
        from_request = default if size is None or (whole and token is None) else size
        is_start = token is None or (not token and not strict)
        return cls(max(1, min(from_request, settings.page_size_max)), None if is_start else _read(token or ""))

    def select(self, query: Selection, time: Any, key: Any) -> Selection:
        """Return the query of this page, oldest first."""
        if self.after:
            query = query.where(tuple_(time, key) > self.after)
        return query.order_by(time, key).limit(self.size)

    def slice_rows(self, rows: Iterable[Dated]) -> list[Dated]:
        """Return this page of a listing that is not a query."""
        ordered = sorted(rows, key=lambda row: (row.created_at, row.id))
        return [row for row in ordered if not self.after or (row.created_at, row.id) > self.after][: self.size]

    def next_token(self, rows: Any) -> str | None:
        """Return a token if the page is full; it may lead to an empty last page."""
        return self.build_token(rows) if len(rows) >= self.size else None

    def build_token(self, rows: Any) -> str | None:
        """Return a token after every page that is not empty, as listings of users, roles and grants do."""
        return page_token(rows[-1].created_at, rows[-1].id) if rows else None


def page_token(micros: int, key: str) -> str:
    """Return the token of a position."""
    return base64.urlsafe_b64encode(f"1&{micros}&{key}".encode()).decode().rstrip("=")


def _read(token: str) -> tuple[int, str]:
    try:
        decoded = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _invalid("Invalid paginate token format", token) from None
    try:
        version, *parts = decoded.decode().split("&", 2)
    except UnicodeDecodeError:
        raise _invalid("Invalid paginate token encoding", token) from None
    if version != "1":
        raise _invalid("Unsupported paginate token version", decoded.decode())
    if len(parts) != 2:
        raise _invalid("Invalid paginate token structure", decoded.decode())
    micros, key = parts
    try:
        return int(micros), key
    except ValueError:
        raise _invalid("Invalid paginate token timestamp", token) from None


def _invalid(reason: str, token: str) -> ApiError:
    return ApiError(400, "InvalidPaginationToken", f"Invalid pagination token - {reason}. Got: `{token}`")


async def read_page(
    server: Server,
    page_token: Annotated[str | None, Query(alias="pageToken")] = None,
    page_size: Annotated[int | None, Query(alias="pageSize")] = None,
) -> ListPage:
    """Return the page of a management listing. Released servers refuse an empty token."""
    return ListPage.from_request(server.settings, page_token, page_size, strict=not server.settings.is_at_least("0.14"))


AskedPage = Annotated[ListPage, Depends(read_page)]
"""The page that the query parameters of a management listing request."""
