"""Caches of lists that many readers share: one request for all readers at about the same time, dropped at writes.

A refresh reads each resource separately. A shared list costs a few calls instead of one per object.
Lists are filtered by rights and may be refused, so an object that a list lacks is read before it counts as deleted.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from lakewright.lakekeeper.api.connection.errors import RefusedError

T = TypeVar("T")

MAX_AGE = 1.0
"""Seconds for which a list is shared after its response: long enough for one refresh, too short for two."""


RUN_AGE = 60.0
"""Seconds for which a list is shared by readers that know how their own writes change it."""


class _CachedList:
    def __init__(self) -> None:
        self.result: Future[Any] = Future()
        self.came: float | None = None
        """Time of the response; None while the call is running."""


class SharedAnswers:
    """Responses by key. Readers that arrive while a call is running wait for its response. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic, max_age: float = MAX_AGE) -> None:
        """Create an empty cache; it makes no call."""
        self._now, self._max_age = now, max_age
        self._lock = threading.Lock()
        self._answers: dict[Hashable, _CachedList] = {}

    def get_cached(self, key: Hashable, fetch: Callable[[], T]) -> T:
        """Return the recent result of `fetch`, or call it. Its error reaches all waiting readers and is not cached."""
        response, ours = self._find_cached(key)
        if ours:
            try:
                listed_objects = fetch()
                response.came = self._now()
                response.result.set_result(listed_objects)
            except BaseException as error:  # noqa: BLE001 - raised below, here and in all waiting readers
                with self._lock:
                    if self._answers.get(key) is response:
                        del self._answers[key]
                response.result.set_exception(error)
        return response.result.result()

    def _find_cached(self, key: Hashable) -> tuple[_CachedList, bool]:
        """Return the result to wait for, and whether the caller has to fetch it."""
        with self._lock:
            response = self._answers.get(key)
            if response is not None and (response.came is None or self._now() - response.came <= self._max_age):
                return response, False
            response = self._answers[key] = _CachedList()
            return response, True

    def forget(self) -> None:
        """Drop everything that was requested until now."""
        with self._lock:
            self._answers.clear()


class Index:
    """Objects of a list by id. Pages are read only as far as a reader needs them. Thread-safe.

    Some lists name a next page unless a page is empty. Most readers never need that last page.
    """

    def __init__(self, pages: Iterable[Iterable[dict[str, Any]]]) -> None:
        """Read the first page. Raises the errors of that call."""
        self._pages: Iterator[Iterable[dict[str, Any]]] = iter(pages)
        self._known: dict[str, dict[str, Any]] = {}
        self._error: Exception | None = None
        """Why the list is incomplete: a page could not be read."""
        self._lock = threading.Lock()
        self._read()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return an object; None if no page has it, or if the server refuses to continue."""
        with self._lock:
            try:
                while key not in self._known and self._read():
                    pass
            except RefusedError:
                return None
            return self._known.get(key)

    def values(self) -> list[dict[str, Any]]:
        """Return the objects of all pages. Raises the error of a page's call."""
        with self._lock:
            while self._read():
                pass
            if self._error is not None:
                raise self._error
            return list(self._known.values())

    def _read(self) -> bool:
        try:
            page = next(self._pages, None)
        except Exception as error:
            self._error = error
            raise
        self._known |= {str(entry["id"]): entry for entry in page or ()}
        return page is not None


class ListCache:
    """Lists that the clients of one run share. A key contains the client, since rights differ. Thread-safe."""

    def __init__(self, max_age: float = MAX_AGE) -> None:
        """Create an empty cache of lists that are kept for some seconds."""
        self._recent = SharedAnswers(max_age=max_age)
        self._of_run = SharedAnswers(max_age=max(RUN_AGE, max_age))

    def get_cached(self, key: Hashable, fetch: Callable[[], T]) -> T:
        """Return a recently read list, or read it."""
        return self._recent.get_cached(key, fetch)

    def get_cached_unless_refused(self, key: Hashable, fetch: Callable[[], T]) -> T | None:
        """Return a list; None if the server refuses it, so that the caller reads the object separately."""

        def attempt() -> T | None:
            try:
                return fetch()
            except RefusedError:
                return None

        return self.get_cached(key, attempt)

    def get_cached_in_run(self, key: Hashable, fetch: Callable[[], T]) -> T:
        """Return a list that is kept longer than others, and through writes, until `forget_run`."""
        return self._of_run.get_cached(key, fetch)

    def forget(self) -> None:
        """Drop all lists that a write may have changed. Each client calls it before and after a write."""
        self._recent.forget()

    def forget_run(self) -> None:
        """Drop the lists of `get_cached_in_run`. Called when a write adds objects to them."""
        self._of_run.forget()
