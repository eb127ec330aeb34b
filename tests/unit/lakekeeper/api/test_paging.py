"""Lists in pages: read until a page has no token, even if pages are empty."""

from __future__ import annotations

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import RefusedError
from lakewright.lakekeeper.api.connection.paging import pages

from tests.unit.lakekeeper.scripted_server import Script, refusal


def page(*names: str, **token: str | None) -> httpx.Response:
    return httpx.Response(200, json={"names": list(names), **{key.replace("_", "-"): v for key, v in token.items()}})


CATALOG = "/catalog/v1/w/namespaces"


def list_names(script: Script, path: str = CATALOG) -> list[list[str]]:
    return [item["names"] for item in pages(script.client(), path)]


@pytest.mark.parametrize(
    "last", [{}, {"next_page_token": None}, {"next_page_token": ""}], ids=["absent", "null", "empty"]
)
def test_page_without_a_token_is_the_last_one(last: dict[str, str | None]) -> None:
    script = Script(page("a", next_page_token="MQ"), page("b", **last))
    assert list_names(script) == [["a"], ["b"]]
    assert [dict(request.url.params) for request in script.requests] == [
        {"pageSize": "1000", "pageToken": ""},
        {"pageSize": "1000", "pageToken": "MQ"},
    ]


def test_management_lists_get_no_empty_page_token() -> None:
    """Lakekeeper 0.11 to 0.13 respond with 400 InvalidPaginationToken to one."""
    script = Script(page("a", next_page_token="MQ"), page("b"))
    assert list_names(script, "/management/v1/warehouse/w/deleted-tabulars") == [["a"], ["b"]]
    assert [dict(request.url.params) for request in script.requests] == [
        {"pageSize": "1000"},
        {"pageSize": "1000", "pageToken": "MQ"},
    ]


def test_short_or_empty_page_with_a_token_is_not_the_end() -> None:
    script = Script(page("a", next_page_token="1"), page(next_page_token="2"), page("b", next_page_token="3"), page())
    assert list_names(script) == [["a"], [], ["b"], []]


def test_unknown_page_token_is_an_error() -> None:
    script = Script(page("a", next_page_token="1"), refusal(400, "InvalidPaginationToken"))
    with pytest.raises(RefusedError, match="InvalidPaginationToken"):
        list_names(script)
