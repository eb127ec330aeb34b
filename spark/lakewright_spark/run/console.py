"""Console: print a script's output and store it as console messages."""

from __future__ import annotations

from lakewright_spark.errors import LakewrightSparkError
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.results.schemas import CONSOLE_MESSAGES
from lakewright_spark.results.writer import ResultStream, ResultWriter

ATTEMPTS = 3
"""Streams that are opened for one script; each commit retries conflicts by itself, as the table's properties say."""


class Console:
    """Keeps lines. Nothing is made for a script that is silent, and no failure of the catalog's ends the script.

    `line` is called on one thread, `close` after it.
    """

    def __init__(self, writer: ResultWriter, uri: ResultUri) -> None:
        """Keep the messages under this address."""
        self._writer, self._uri = writer, uri
        self._stream: ResultStream | None = None
        self._failures: list[Exception] = []
        self._lines = self._committed = 0
        self._shows = True

    def line(self, text: str) -> None:
        """Show a line and keep it. Never raises, since the caller has to continue reading the script's output."""
        self._show(text)
        self._lines += 1
        if len(self._failures) >= ATTEMPTS:
            return
        try:
            if self._stream is None:
                self._stream = self._writer.open(self._uri, CONSOLE_MESSAGES, reuse=self._committed > 0)
            self._stream.append((text,))
        except Exception as error:  # noqa: BLE001  # any error: the script continues
            self._fail(error)

    def close(self, *, is_complete: bool = True) -> list[str]:
        """Commit the remaining lines.

        Args:
            is_complete: Whether all output was passed to `line`. If not, `line` is still busy with a commit.

        Returns:
            Lines that could not be kept, in sentences.
        """
        if not is_complete:
            return ["console messages: the last lines are not kept: a commit to the catalog did not end in time"]
        if self._stream is not None:
            try:
                self._stream.close()
                self._committed += self._stream.committed
            except Exception as error:  # noqa: BLE001  # as above
                self._fail(error)
        if not self._failures:
            return []
        last = self._failures[-1]
        reason = str(last) if isinstance(last, LakewrightSparkError) else f"{type(last).__name__}: {last}"
        missing = self._lines - self._committed
        return [f"console messages: {missing} of {self._lines} lines are not kept: {reason}"]

    def _show(self, text: str) -> None:
        if self._shows:
            try:
                print(text, flush=True)
            except OSError:
                self._shows = False  # the reader has closed the output

    def _fail(self, error: Exception) -> None:
        self._failures.append(error)
        if self._stream is not None:
            self._stream.abandon()
            self._committed += self._stream.committed
            self._stream = None
