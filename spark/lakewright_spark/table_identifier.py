"""TableIdentifier: the full name of a table, parsed from text and quoted for Spark SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakewright_spark.errors import BadAddressError

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def quote_name(part: str) -> str:
    """Quote one part of a name for Spark SQL."""
    return f"`{part.replace('`', '``')}`"


@dataclass(frozen=True)
class TableIdentifier:
    """A table of a warehouse, which is a Spark catalog of the same name."""

    warehouse: str
    namespace: tuple[str, ...]
    """Levels, outermost first."""
    name: str

    @classmethod
    def parse(cls, warehouse: str, text: str) -> TableIdentifier:
        """Parse NAMESPACE.TABLE of a warehouse. Parts that contain a dot are in backquotes.

        Raises:
            BadAddressError: The text has another form.
        """
        parts: list[str] = []
        at = 0
        while match := _PART.match(text, at):
            parts.append(match[1].replace("``", "`") if match[1] else match[2])
            at = match.end() + 1
            if text[match.end() : at] != ".":
                break
        if len(parts) < 2 or at != len(text) + 1:
            raise BadAddressError(
                f"expected NAMESPACE.TABLE, with parts that contain a dot in backquotes, found {text!r}"
            )
        return cls(warehouse, tuple(parts[:-1]), parts[-1])

    @property
    def within(self) -> tuple[str, ...]:
        """Name within the warehouse, for PyIceberg."""
        return (*self.namespace, self.name)

    @property
    def sql(self) -> str:
        """Full name for Spark SQL."""
        return ".".join(quote_name(part) for part in (self.warehouse, *self.within))

    @property
    def argument(self) -> str:
        """Name within the warehouse as a literal of Spark SQL, for the argument `table` of procedures."""
        return literal(".".join(quote_name(part) for part in self.within))

    def __str__(self) -> str:
        """Return the text form."""
        parts = (self.warehouse, *self.within)
        return ".".join(quote_name(part) if re.search(r"[.`]", part) else part for part in parts)


def literal(text: str) -> str:
    """Return a text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
