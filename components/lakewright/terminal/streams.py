"""Standard output and error that escape all text written to them. `lakewright` installs them for every command."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, TextIO, cast

from lakewright.terminal.escaping import escape_text


class EscapingStream:
    """A text stream that writes escaped text to another stream. Other attributes are read from that stream."""

    def __init__(self, stream: TextIO) -> None:
        """Take the stream to write to."""
        self._stream = stream
        self._line_start = ""

    def write(self, text: str) -> int:
        """Write escaped text. Return the length of the text before."""
        escaped = escape_text(text, line_start=self._line_start)
        self._stream.write(escaped)
        _, is_new_line, line = text.rpartition("\n")
        # Two characters after white space decide whether the line begins with a command.
        self._line_start = (line if is_new_line else self._line_start + line).lstrip()[:2]
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts without adding line breaks."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream that is written to."""
        return getattr(self._stream, name)


class StandardStream(EscapingStream):
    """Standard output or error. Rich writes its own terminal sequences around it."""

    @property
    def rich_proxied_file(self) -> TextIO:
        """The stream that Rich's consoles write to, by a convention of Rich. `EscapingConsole` escapes their texts."""
        return self._stream


@contextmanager
def escape_standard_streams() -> Generator[None]:
    """Replace standard output and error by streams that escape, until the end of the context."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", StandardStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
