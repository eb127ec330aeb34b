"""A table's whole name: warehouse, namespace and table, read from what people write and quoted for Spark SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakewright_spark.errors import BadAddressError

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def quoted(part: str) -> str:
    """One part of a name, as Spark SQL reads it whatever it holds."""
    return f"`{part.replace('`', '``')}`"


@dataclass(frozen=True)
class TableIdentifier:
    """A table of a warehouse, which is a Spark catalog of the same name."""

    warehouse: str
    namespace: tuple[str, ...]
    """Its levels, outermost first."""
    name: str

    @classmethod
    def parse(cls, warehouse: str, text: str) -> TableIdentifier:
        """Read NAMESPACE.TABLE of a warehouse; a part with a dot in it stands in backquotes. BadAddressError."""
        parts: list[str] = []
        at = 0
        while match := _PART.match(text, at):
            parts.append(match[1].replace("``", "`") if match[1] else match[2])
            at = match.end() + 1
            if text[match.end() : at] != ".":
                break
        if len(parts) < 2 or at != len(text) + 1:
            raise BadAddressError(f"expected NAMESPACE.TABLE, a part with a dot in it in backquotes, found {text!r}")
        return cls(warehouse, tuple(parts[:-1]), parts[-1])

    @property
    def within(self) -> tuple[str, ...]:
        """The name within the warehouse, as PyIceberg takes it."""
        return (*self.namespace, self.name)

    @property
    def sql(self) -> str:
        """The whole name for Spark SQL."""
        return ".".join(quoted(part) for part in (self.warehouse, *self.within))

    @property
    def argument(self) -> str:
        """The name within the warehouse, for a procedure's `table =>`: a literal of Spark SQL."""
        return literal(".".join(quoted(part) for part in self.within))

    def __str__(self) -> str:
        parts = (self.warehouse, *self.within)
        return ".".join(quoted(part) if re.search(r"[.`]", part) else part for part in parts)


def literal(text: str) -> str:
    """A text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
