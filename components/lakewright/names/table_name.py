"""Names of tables as users write them: WAREHOUSE.NAMESPACE.TABLE.

Parts that contain dots are in quotes. Commands load this file without pydantic. Known
applications write to namespaces of `PRESETS`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_PART = re.compile(r"""\s*(?:"(?P<double>(?:[^"]|"")+)"|`(?P<back>(?:[^`]|``)+)`|(?P<plain>[^."`]+))\s*(?P<dot>\.|$)""")


class QualifiedName(NamedTuple):
    """A table or view in a warehouse."""

    warehouse: str
    namespace: tuple[str, ...]
    """Levels, outermost first."""
    name: str

    @property
    def levels(self) -> tuple[str, ...]:
        """All parts in lower case, as the server ignores case."""
        return tuple(part.casefold() for part in (self.warehouse, *self.namespace, self.name))

    @property
    def in_warehouse(self) -> str:
        """Dotted name without the warehouse, with quotes where needed."""
        return ".".join(quote(part) for part in (*self.namespace, self.name))

    def same_as(self, other: QualifiedName) -> bool:
        """Return whether the server treats both names as the same."""
        return self.levels == other.levels

    def __str__(self) -> str:
        """Return the dotted name, with quotes where needed."""
        return ".".join(quote(part) for part in (self.warehouse, *self.namespace, self.name))


def parse_table_name(text: str) -> QualifiedName:
    """Parse `curated.sales.daily.orders` or ``curated.sales.`orders.v2` ``. Raises ValueError."""
    parts = parse_parts(text)
    if len(parts) < 3:
        raise ValueError(
            "expected WAREHOUSE.NAMESPACE.TABLE; the namespace may have several levels. Quote a part that has a dot"
        )
    return QualifiedName(parts[0], tuple(parts[1:-1]), parts[-1])


def parse_parts(text: str) -> list[str]:
    """Return the parts of a dotted name; an empty list if it cannot be parsed."""
    parts: list[str] = []
    at, more = 0, True
    while more:
        match = _PART.match(text, at)
        if match is None:
            return []
        double, back = match["double"], match["back"]
        parts.append(
            double.replace('""', '"') if double else back.replace("``", "`") if back else match["plain"].strip()
        )
        at, more = match.end(), match["dot"] == "."
    return parts if at == len(text) and all(parts) else []


def quote(part: str) -> str:
    """Return a part as it is written: in backquotes if it contains a dot, a quote or outer spaces."""
    return f"`{part.replace('`', '``')}`" if re.search(r"""[."`]|^\s|\s$""", part) else part


PRESETS: Mapping[str, tuple[str, ...]] = {
    "texera": (
        "operator-port-result",
        "operator-console-messages",
        "workflow-runtime-statistics",
        "operator-port-state",
    ),
}
"""Namespaces by application, under the names that it uses by default."""


def match_preset(paths: Sequence[str]) -> str | None:
    """Return the preset whose namespaces are all among the paths."""
    return next((name for name, preset in PRESETS.items() if set(preset) <= set(paths)), None)
