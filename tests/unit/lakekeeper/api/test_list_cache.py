"""Shared lists: one call for concurrent readers, and a new call after a write or a moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, RefusedError, ResponseTimeoutError
from lakewright.lakekeeper.api.connection.list_cache import MAX_AGE, Index, ListCache, SharedAnswers


class CacheClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_concurrent_readers_share_a_list() -> None:
    shared, calls, go = SharedAnswers(), [], threading.Event()

    def fetch() -> str:
        calls.append(1)
        go.wait(10)
        return "list"

    with ThreadPoolExecutor(8) as pool:
        responses = [pool.submit(shared.get_cached, "key", fetch) for _ in range(8)]
        go.set()
        assert [response.result(10) for response in responses] == ["list"] * 8
    assert len(calls) == 1


def test_list_is_shared_for_a_moment_and_then_read_again() -> None:
    clock = CacheClock()
    shared, responses = SharedAnswers(clock), iter(["first", "second"])
    assert shared.get_cached("key", lambda: next(responses)) == "first"
    clock.now += MAX_AGE
    assert shared.get_cached("key", lambda: next(responses)) == "first"
    clock.now += 0.01
    assert shared.get_cached("key", lambda: next(responses)) == "second"


def test_age_of_a_list_counts_from_its_response() -> None:
    clock = CacheClock()
    shared, responses = SharedAnswers(clock), iter(["first", "second"])

    def slow() -> str:
        clock.now += 10
        return next(responses)

    assert shared.get_cached("key", slow) == "first"
    assert shared.get_cached("key", slow) == "first"


def test_write_invalidates_all_lists() -> None:
    shared, responses = SharedAnswers(), iter(["before", "after"])
    assert shared.get_cached("key", lambda: next(responses)) == "before"
    shared.forget()
    assert shared.get_cached("key", lambda: next(responses)) == "after"


def test_list_overtaken_by_a_write_serves_its_waiters_only() -> None:
    shared = SharedAnswers()

    def forget_and_list() -> str:
        shared.forget()
        return "before"

    assert shared.get_cached("key", forget_and_list) == "before"
    assert shared.get_cached("key", lambda: "after") == "after"


def test_lists_of_different_keys_are_separate() -> None:
    shared = SharedAnswers()
    assert shared.get_cached(("a", 1), lambda: "one") == "one"
    assert shared.get_cached(("a", 2), lambda: "two") == "two"


def test_error_is_raised_and_not_kept() -> None:
    shared = SharedAnswers()

    def fails() -> str:
        raise ResponseTimeoutError("no answer")

    with pytest.raises(ResponseTimeoutError):
        shared.get_cached("key", fails)
    assert shared.get_cached("key", lambda: "list") == "list"


def test_refused_list_is_refused_once_for_all_readers() -> None:
    lists = ListCache()
    calls: list[int] = []

    def refuse() -> str:
        calls.append(1)
        raise ForbiddenError("no", status=403, kind="ProjectActionForbidden")

    for _ in range(3):
        assert lists.get_cached_unless_refused("refused", refuse) is None
    assert len(calls) == 1


def test_list_that_times_out_is_an_error() -> None:
    lists = ListCache()

    def slow() -> str:
        raise ResponseTimeoutError("no answer")

    with pytest.raises(ResponseTimeoutError):
        lists.get_cached_unless_refused("slow", slow)


def test_index_reads_only_the_needed_pages() -> None:
    read: list[str] = []

    def pages() -> Iterator[list[dict[str, str]]]:
        for page in ("a", "b", ""):
            read.append(page)
            yield [{"id": page, "name": page.upper()}] if page else []

    index = Index(pages())
    assert index.get("a") == {"id": "a", "name": "A"}
    assert read == ["a"]
    assert index.get("b") == {"id": "b", "name": "B"}
    assert read == ["a", "b"]
    assert index.get("c") is None
    assert read == ["a", "b", ""]


def test_index_refused_half_way_keeps_what_it_has_read() -> None:
    def pages() -> Iterator[list[dict[str, str]]]:
        yield [{"id": "a"}]
        raise RefusedError("no more")

    index = Index(pages())
    assert index.get("b") is None
    assert index.get("a") == {"id": "a"}
    assert index.get("b") is None


def test_index_refused_at_its_first_page_is_refused() -> None:
    def pages() -> Iterator[list[dict[str, str]]]:
        raise RefusedError("no")
        yield []

    with pytest.raises(RefusedError):
        Index(pages())
