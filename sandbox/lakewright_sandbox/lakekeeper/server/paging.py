"""Pages of a listing. A token is base64url of `1&<micros>&<id>`: the place of the last row that was given."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Query
from sqlalchemy import Select, tuple_

from ..protocol.errors import ApiError
from ..protocol.settings import Settings
from .server import Server

Selection = TypeVar("Selection", bound=Select[*tuple[Any, ...]])


class PagedRow(Protocol):
    """What a listing is ordered by: the time a row was made (an int), then its id (a str).

    `Any`, as SQLAlchemy's columns are descriptors, which no protocol's plain type fits.
    """

    @property
    def created_at(self) -> Any: ...
    @property
    def id(self) -> Any: ...


Dated = TypeVar("Dated", bound=PagedRow)


@dataclass(frozen=True)
class ListPage:
    """`after` is the last row's time and id, None at the start."""

    size: int
    after: tuple[int, str] | None

    @classmethod
    def asked(
        cls, settings: Settings, token: str | None, size: int | None, *, whole: bool = False, strict: bool = False
    ) -> ListPage:
        """`whole` listings give as much as they may at once unless a page token was sent, be it an empty one.

        `strict` listings refuse an empty token.
        """
        default = settings.page_size_max if whole and token is None else settings.page_size_default
        asked = default if size is None or (whole and token is None) else size
        is_start = token is None or (not token and not strict)
        return cls(max(1, min(asked, settings.page_size_max)), None if is_start else _read(token or ""))

    def of(self, query: Selection, time: Any, key: Any) -> Selection:
        """The query for this page, oldest first."""
        if self.after:
            query = query.where(tuple_(time, key) > self.after)
        return query.order_by(time, key).limit(self.size)

    def cut(self, rows: Iterable[Dated]) -> list[Dated]:
        """The page of a listing that the server put together itself rather than the database."""
        ordered = sorted(rows, key=lambda row: (row.created_at, row.id))
        return [row for row in ordered if not self.after or (row.created_at, row.id) > self.after][: self.size]

    def next_token(self, rows: Any) -> str | None:
        """A token when the page is full; it may lead to an empty last page."""
        return self.token_behind(rows) if len(rows) >= self.size else None

    def token_behind(self, rows: Any) -> str | None:
        """As users, roles and grants are listed: a token with every page that is not empty."""
        return page_token(rows[-1].created_at, rows[-1].id) if rows else None


def page_token(micros: int, key: str) -> str:
    return base64.urlsafe_b64encode(f"1&{micros}&{key}".encode()).decode().rstrip("=")


def _read(token: str) -> tuple[int, str]:
    try:
        decoded = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _invalid("Invalid paginate token format", token) from None
    try:
        version, *rest = decoded.decode().split("&", 2)
    except UnicodeDecodeError:
        raise _invalid("Invalid paginate token encoding", token) from None
    if version != "1":
        raise _invalid("Unsupported paginate token version", decoded.decode())
    if len(rest) != 2:
        raise _invalid("Invalid paginate token structure", decoded.decode())
    micros, key = rest
    try:
        return int(micros), key
    except ValueError:
        raise _invalid("Invalid paginate token timestamp", token) from None


def _invalid(reason: str, token: str) -> ApiError:
    return ApiError(400, "InvalidPaginationToken", f"Invalid pagination token - {reason}. Got: `{token}`")


async def asked_page(
    server: Server,
    page_token: Annotated[str | None, Query(alias="pageToken")] = None,
    page_size: Annotated[int | None, Query(alias="pageSize")] = None,
) -> ListPage:
    return ListPage.asked(server.settings, page_token, page_size, strict=not server.settings.since("0.14"))


AskedPage = Annotated[ListPage, Depends(asked_page)]
"""The page that the query parameters of a management listing ask for. Released servers refuse an empty token."""
