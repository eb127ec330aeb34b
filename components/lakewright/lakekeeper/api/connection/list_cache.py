"""Lists that many readers share: asked for once by all who read at about the same time, forgotten at every write.

A refresh reads each resource by itself; with one list for all of them it costs a few calls instead of one per object.
Lists are filtered by rights and may be refused: what is absent from one is looked up by itself before it is "gone".
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from lakewright.lakekeeper.api.connection.errors import RefusedError

T = TypeVar("T")

MAX_AGE = 1.0
"""Seconds after its answer in which a list is shared: within one refresh, and never with what comes after it."""


RUN_AGE = 60.0
"""Seconds in which a list is shared by readers that know what their own writes change in it."""


class _CachedList:
    def __init__(self) -> None:
        self.result: Future[Any] = Future()
        self.came: float | None = None
        """When; None while the call is under way."""


class SharedAnswers:
    """Answers by key. Readers that come while a list is under way wait for it. Safe to share between threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic, max_age: float = MAX_AGE) -> None:
        """Create it; no call is made."""
        self._now, self._max_age = now, max_age
        self._lock = threading.Lock()
        self._answers: dict[Hashable, _CachedList] = {}

    def get_cached(self, key: Hashable, fetch: Callable[[], T]) -> T:
        """What `fetch` answers, or answered a moment ago. Its error reaches those who waited, and is not kept."""
        answer, ours = self._answer_for(key)
        if ours:
            try:
                found = fetch()
                answer.came = self._now()
                answer.result.set_result(found)
            except BaseException as error:  # noqa: BLE001 - raised below, here and wherever somebody waits
                with self._lock:
                    if self._answers.get(key) is answer:
                        del self._answers[key]
                answer.result.set_exception(error)
        return answer.result.result()

    def _answer_for(self, key: Hashable) -> tuple[_CachedList, bool]:
        """The answer to wait for, and whether it is the caller who asks for it."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is not None and (answer.came is None or self._now() - answer.came <= self._max_age):
                return answer, False
            answer = self._answers[key] = _CachedList()
            return answer, True

    def forget(self) -> None:
        """Share nothing that was asked for until now."""
        with self._lock:
            self._answers.clear()


class Index:
    """The objects of a list by their ids, read page by page as far as somebody looks. Safe to share between threads.

    Pages of some lists name a next one for as long as they are not empty: most readers never need that one.
    """

    def __init__(self, pages: Iterable[Iterable[dict[str, Any]]]) -> None:
        """Reads the first page. Raises what that call raises."""
        self._pages: Iterator[Iterable[dict[str, Any]]] = iter(pages)
        self._known: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._read()

    def get(self, key: str) -> dict[str, Any] | None:
        """An object, or None where no page has it, or where the server refuses to go on."""
        with self._lock:
            try:
                while key not in self._known and self._read():
                    pass
            except RefusedError:
                return None
            return self._known.get(key)

    def _read(self) -> bool:
        page = next(self._pages, None)
        self._known |= {str(one["id"]): one for one in page or ()}
        return page is not None


class ListCache:
    """Lists that the clients of one run share. A key holds the client, since rights differ. Safe between threads."""

    def __init__(self) -> None:
        """Create an empty cache."""
        self._recent = SharedAnswers()
        self._of_run = SharedAnswers(max_age=RUN_AGE)

    def get_cached(self, key: Hashable, fetch: Callable[[], T]) -> T:
        """Return a list that was read a moment ago, or read it."""
        return self._recent.get_cached(key, fetch)

    def get_cached_unless_refused(self, key: Hashable, fetch: Callable[[], T]) -> T | None:
        """Return a list, or None if the server refuses it: the caller then reads the object by itself."""

        def attempt() -> T | None:
            try:
                return fetch()
            except RefusedError:
                return None

        return self.get_cached(key, attempt)

    def get_cached_in_run(self, key: Hashable, fetch: Callable[[], T]) -> T:
        """Return a list that is kept for longer than others and through writes, until `forget_run`."""
        return self._of_run.get_cached(key, fetch)

    def forget(self) -> None:
        """Drop every list that a write may have changed. Each client calls it before and after a write."""
        self._recent.forget()

    def forget_run(self) -> None:
        """Drop the lists of `get_cached_in_run`. Called when a write adds to what they list."""
        self._of_run.forget()
