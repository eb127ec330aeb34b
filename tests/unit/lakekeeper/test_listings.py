"""Shared lists: one call for all who ask at about the same time, none for those who ask after a write or later."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from lakewright.lakekeeper.api.connection import list_cache as listings
from lakewright.lakekeeper.api.connection.errors import Forbidden, Refused, TooSlow
from lakewright.lakekeeper.api.connection.list_cache import MAX_AGE, Listings


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_readers_that_come_while_a_list_is_under_way_share_it() -> None:
    shared, calls, go = Listings(), [], threading.Event()

    def fetch() -> str:
        calls.append(1)
        go.wait(10)
        return "list"

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(shared.shared, "key", fetch) for _ in range(8)]
        go.set()
        assert [answer.result(10) for answer in answers] == ["list"] * 8
    assert len(calls) == 1


def test_a_list_is_shared_for_a_moment_and_then_asked_for_again() -> None:
    clock = Clock()
    shared, answers = Listings(clock), iter(["first", "second"])
    assert shared.shared("key", lambda: next(answers)) == "first"
    clock.now += MAX_AGE
    assert shared.shared("key", lambda: next(answers)) == "first"
    clock.now += 0.01
    assert shared.shared("key", lambda: next(answers)) == "second"


def test_the_age_of_a_list_counts_from_its_answer() -> None:
    clock = Clock()
    shared, answers = Listings(clock), iter(["first", "second"])

    def slow() -> str:
        clock.now += 10
        return next(answers)

    assert shared.shared("key", slow) == "first"
    assert shared.shared("key", slow) == "first"


def test_a_write_has_all_of_them_asked_for_again() -> None:
    shared, answers = Listings(), iter(["before", "after"])
    assert shared.shared("key", lambda: next(answers)) == "before"
    shared.forget()
    assert shared.shared("key", lambda: next(answers)) == "after"


def test_a_list_that_a_write_overtook_is_for_those_alone_who_waited_for_it() -> None:
    shared = Listings()

    def overtaken() -> str:
        shared.forget()
        return "before"

    assert shared.shared("key", overtaken) == "before"
    assert shared.shared("key", lambda: "after") == "after"


def test_lists_of_different_keys_are_different() -> None:
    shared = Listings()
    assert shared.shared(("a", 1), lambda: "one") == "one"
    assert shared.shared(("a", 2), lambda: "two") == "two"


def test_an_error_is_raised_and_not_kept() -> None:
    shared = Listings()

    def fails() -> str:
        raise TooSlow("no answer")

    with pytest.raises(TooSlow):
        shared.shared("key", fails)
    assert shared.shared("key", lambda: "list") == "list"


def test_a_refused_list_is_refused_once_for_all() -> None:
    listings.forget()
    calls: list[int] = []

    def refused() -> str:
        calls.append(1)
        raise Forbidden("no", status=403, kind="ProjectActionForbidden")

    for _ in range(3):
        assert listings.shared_unless_refused("refused", refused) is None
    assert len(calls) == 1


def test_a_list_that_does_not_come_is_an_error_and_no_absence() -> None:
    listings.forget()

    def slow() -> str:
        raise TooSlow("no answer")

    with pytest.raises(TooSlow):
        listings.shared_unless_refused("slow", slow)


def test_an_index_reads_as_many_pages_as_somebody_needs() -> None:
    read: list[str] = []

    def pages() -> Iterator[list[dict[str, str]]]:
        for page in ("a", "b", ""):
            read.append(page)
            yield [{"id": page, "name": page.upper()}] if page else []

    index = listings.Index(pages())
    assert index.get("a") == {"id": "a", "name": "A"}
    assert read == ["a"]
    assert index.get("b") == {"id": "b", "name": "B"}
    assert read == ["a", "b"]
    assert index.get("c") is None
    assert read == ["a", "b", ""]


def test_an_index_that_is_refused_in_the_middle_knows_what_it_has_read() -> None:
    def pages() -> Iterator[list[dict[str, str]]]:
        yield [{"id": "a"}]
        raise Refused("no more")

    index = listings.Index(pages())
    assert index.get("b") is None
    assert index.get("a") == {"id": "a"}
    assert index.get("b") is None


def test_an_index_whose_first_page_is_refused_is_refused() -> None:
    def pages() -> Iterator[list[dict[str, str]]]:
        raise Refused("no")
        yield []

    with pytest.raises(Refused):
        listings.Index(pages())
