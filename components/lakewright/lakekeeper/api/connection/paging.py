"""Read all pages of a list, and split a sequence into batches."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import BadResponseError

T = TypeVar("T")

PAGE_SIZE = 1000


MOST_PAGES = 10_000
"""Pages after which a list counts as endless: ten million objects."""


Params = dict[str, str | int | bool | list[str]]


CATALOG = "/catalog/"
"""URL path of the lists that are paged only if the request has a page token, which may be empty."""


def pages(
    client: Client, path: str, more: Params | None = None, *, project: str | None = None, most: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the pages of a list. Only a missing token ends it: a page may follow a short or empty page.

    Raises:
        BadResponseError: The list has no end.
    """
    # Management lists are paged by default. Before 0.14 they refuse an empty token.
    first: Params = {"pageToken": ""} if path.startswith(CATALOG) else {}
    params: Params = {"pageSize": PAGE_SIZE, **first, **(more or {})}
    count = 0
    tokens: set[str] = set()
    while most is None or count < most:
        page = client.json("GET", path, project=project, params=params)
        yield page
        count += 1
        token = page.get("next-page-token")
        if not token:
            return
        token = str(token)
        if token in tokens or count >= MOST_PAGES:
            why = "repeats a page token" if token in tokens else f"has no end after {count} pages"
            raise BadResponseError(f"GET {path} at {client.endpoint}: the list {why}. This is a fault of the server.")
        tokens.add(token)
        params = {**params, "pageToken": token}


def parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, in batches of at most `size`; nothing if there are none."""
    return (items[start : start + size] for start in range(0, len(items), size))
