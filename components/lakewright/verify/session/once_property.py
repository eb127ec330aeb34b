"""A property that is computed once, also if several threads read it concurrently."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, Self, TypeVar, overload

T = TypeVar("T")
Owner = TypeVar("Owner")


class OnceProperty(Generic[Owner, T]):
    """A cached property for threads. An error is raised again, too: readers do not repeat a failed computation.

    The standard library's `cached_property` computes a value several times if threads meet, from Python 3.12 on.
    """

    def __init__(self, compute: Callable[[Owner], T]) -> None:
        """Decorate a method without parameters."""
        self.__doc__ = compute.__doc__
        self._compute, self._lock = compute, threading.Lock()
        self._key = f"_once_{compute.__name__}"

    @overload
    def __get__(self, instance: None, owner: type[Owner]) -> Self: ...
    @overload
    def __get__(self, instance: Owner, owner: type[Owner]) -> T: ...
    def __get__(self, instance: Owner | None, owner: type[Owner]) -> T | Self:
        """Return the value. The first reader computes it, other readers wait for it."""
        if instance is None:
            return self
        with self._lock:
            future: Future[T] | None = vars(instance).get(self._key)
            if is_first := future is None:
                future = vars(instance)[self._key] = Future[T]()
        if is_first:
            try:
                future.set_result(self._compute(instance))
            except BaseException as error:  # noqa: BLE001 - raised below, here and in all waiting readers
                future.set_exception(error)
        return future.result()
