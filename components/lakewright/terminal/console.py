"""The console for tables, colors and live lines. Its own terminal sequences pass; sequences in texts are escaped."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from typing_extensions import override

from lakewright.terminal.escaping import escape_text
from lakewright.terminal.streams import EscapingStream


class EscapingConsole(Console):
    """A console that escapes every text that it renders."""

    @override
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render an object with escaped texts."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else escape_text(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)


def open_console(*, stderr: bool = False, **options: Any) -> Console:
    """Return a console for standard output or error.

    Args:
        stderr: Whether to print to standard error.
        options: Further arguments of `rich.console.Console`, such as `width`.
    """
    console = EscapingConsole(file=sys.stderr if stderr else sys.stdout, stderr=stderr, **options)
    if not console.is_terminal:
        # Text that is written to `console.file` directly is escaped, too.
        console.file = cast("TextIO", EscapingStream(cast("TextIO", console.file)))
    return console
