"""Help of commands as plain text: Typer's boxes take three times as long to start and make lines shorter."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getdoc
from typing import Any

from typer import Typer
from typing_extensions import override


class PlainHelpTyper(Typer):
    """A Typer application whose help is plain text, with the whole first line of each command."""

    def __init__(self, **options: Any) -> None:
        """Take the options of the base class."""
        plain: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
        super().__init__(**(plain | options))

    @override
    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Return the decorator that adds a command."""

        def add_command(function: Any) -> Any:
            # click shortens the first line of `help`, and leaves `short_help` as it is.
            options.setdefault("short_help", (options.get("help") or getdoc(function) or "").partition("\n")[0])
            return super(PlainHelpTyper, self).command(name, **options)(function)

        return add_command
