"""The report of `lakewright ui`: its sources are collected repeatedly, and each document is shown as it arrives."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakewright.report.errors import ReportSourceError
from lakewright.report.sources import ReportSource, SourceKind

if TYPE_CHECKING:
    from lakewright.report.collection import Progress
    from lakewright.report.requests import ReportRequest


class LiveReport:
    """The latest model of a report as JSON. Thread-safe."""

    def __init__(self, request: ReportRequest, *, interval: float, progress: Progress) -> None:
        """Collect nothing before `start`.

        Args:
            request: The report.
            interval: Seconds from the end of a collection to the next.
            progress: Called with a line before each command.
        """
        self._request, self._interval, self._progress = request, interval, progress
        self._files: list[ReportSource] = []
        self._collected: dict[SourceKind, ReportSource] = {}
        self._lock = threading.Lock()
        self._content, self._version = b"", ""
        self._wake, self._is_stopped = threading.Event(), threading.Event()
        self._publish(is_collecting=True)

    @property
    def content(self) -> tuple[bytes, str]:
        """The model as JSON, and its version, which changes with it."""
        with self._lock:
            return self._content, self._version

    def start(self) -> None:
        """Collect in a thread until `stop`.

        Raises:
            ReportSourceError: A file is not the JSON of a command that the report shows.
        """
        self._files = self._request.read_files()
        threading.Thread(target=self._collect_repeatedly, name="collection", daemon=True).start()

    def refresh(self) -> None:
        """Collect now. A collection that is under way is enough."""
        self._wake.set()

    def stop(self) -> None:
        """Start no other command."""
        self._is_stopped.set()
        self._wake.set()

    def _collect_repeatedly(self) -> None:
        while not self._is_stopped.is_set():
            self._wake.clear()
            self._publish(is_collecting=True)
            for kind in self._request.kinds:
                if not self._is_stopped.is_set():
                    self._collected.update({kind: self._request.collect_sources([kind], self._progress)[0]})
                    self._publish(is_collecting=True)
            self._read_files_again()
            self._publish(is_collecting=False)
            self._wake.wait(self._interval)

    def _read_files_again(self) -> None:
        """Read the files, which other jobs may have replaced. An unreadable file keeps what was read before."""
        try:
            self._files = self._request.read_files()
        except ReportSourceError as error:
            self._progress(str(error))

    def _publish(self, *, is_collecting: bool) -> None:
        sources = [*self._files, *self._collected.values()]
        model: Mapping[str, Any] = {**self._request.build_model(sources), "is_collecting": is_collecting}
        content = json.dumps(model, ensure_ascii=False, separators=(",", ":")).encode()
        with self._lock:
            self._content, self._version = content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
