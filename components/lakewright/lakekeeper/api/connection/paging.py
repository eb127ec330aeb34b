"""Lists that come in pages, followed to their end; and lists that are sent in parts."""

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
"""Root of the lists that come in pages only when a page token is sent, be it an empty one."""


def pages(
    client: Client, path: str, more: Params | None = None, *, project: str | None = None, most: int | None = None
) -> Iterator[dict[str, Any]]:
    """The pages of a list, at most so many; a short or empty page is no sign of the end, only its token.

    Raises BadResponseError for a list without an end.
    """
    # Management lists page by default, and before 0.14 refuse an empty token.
    first: Params = {"pageToken": ""} if path.startswith(CATALOG) else {}
    params: Params = {"pageSize": PAGE_SIZE, **first, **(more or {})}
    count = 0
    seen: set[str] = set()
    while most is None or count < most:
        page = client.json("GET", path, project=project, params=params)
        yield page
        count += 1
        token = page.get("next-page-token")
        if not token:
            return
        token = str(token)
        if token in seen or count >= MOST_PAGES:
            why = "names a page again that it named before" if token in seen else f"has no end after {count} pages"
            raise BadResponseError(f"GET {path} at {client.endpoint}: the list {why}. Look for a fault of the server.")
        seen.add(token)
        params = {**params, "pageToken": token}


def parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in order, so many at once; nothing if there are none."""
    return (items[start : start + size] for start in range(0, len(items), size))
