"""Run the searches of many projects at the same time. A failed search hides no result of other searches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from lakewright_engine.model.errors import EngineError
from pydantic import ValidationError

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.discovery.unmanaged.finding import UnmanagedObject
from lakewright.discovery.unmanaged.project_scan import PartialSearch
from lakewright.lakekeeper.api.connection.errors import (
    LakekeeperError,
    ResponseTimeoutError,
    UnconfirmedError,
    UnreachableError,
)

_EXPECTED = (LakekeeperError, UnresolvedCredentialError, EngineError, ValidationError)
"""Errors of servers, credentials and states. Other errors are defects of this program."""
_NO_RESPONSE = (UnreachableError, ResponseTimeoutError, UnconfirmedError)
"""Errors after which a server gets no further request of a project: each request would wait as long."""


@dataclass(frozen=True)
class FailedSearch:
    """A search that could not be finished."""

    error: Exception


Result = UnmanagedObject | FailedSearch
_Entry: TypeAlias = "Result | Future[list[_Entry]]"


class ProjectSearch:
    """The searches of one project."""

    def __init__(self, pool: ThreadPoolExecutor, search: PartialSearch) -> None:
        """Start to search.

        Args:
            pool: Runs the searches. No search waits for another search of the pool.
            search: The first search, which returns further searches.
        """
        self._pool = pool
        self._has_no_response = threading.Event()
        self._first = pool.submit(self._run, search)

    def results(self) -> Iterator[Result]:
        """Yield all results, in the order of a search without concurrency."""
        yield from _flatten(self._first)

    def _run(self, search: PartialSearch) -> list[_Entry]:
        entries: list[_Entry] = []
        if self._has_no_response.is_set():
            return entries
        try:
            for entry in search():
                if isinstance(entry, UnmanagedObject):
                    entries.append(entry)
                else:
                    entries.append(self._pool.submit(self._run, entry))
        except _EXPECTED as error:
            if isinstance(error, _NO_RESPONSE):
                self._has_no_response.set()
            entries.append(FailedSearch(error))
        return entries


def _flatten(future: Future[list[_Entry]]) -> Iterator[Result]:
    for entry in future.result():
        if isinstance(entry, Future):
            yield from _flatten(entry)
        else:
            yield entry
