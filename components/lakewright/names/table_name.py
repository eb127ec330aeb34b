"""WAREHOUSE.NAMESPACE.TABLE as people write it; parts with dots in them stand in quotes. A pure function."""

from __future__ import annotations

import re
from typing import NamedTuple

_PART = re.compile(r"""\s*(?:"(?P<double>(?:[^"]|"")+)"|`(?P<back>(?:[^`]|``)+)`|(?P<plain>[^."`]+))\s*(?P<dot>\.|$)""")


class QualifiedName(NamedTuple):
    """A table or view in a warehouse."""

    warehouse: str
    namespace: tuple[str, ...]
    """Its levels, outermost first."""
    name: str

    @property
    def levels(self) -> tuple[str, ...]:
        """All parts, without regard to upper and lower case, which the server does not tell apart."""
        return tuple(part.casefold() for part in (self.warehouse, *self.namespace, self.name))

    def same_as(self, other: QualifiedName) -> bool:
        """Whether the server takes both for one."""
        return self.levels == other.levels

    def __str__(self) -> str:
        return ".".join(quoted(part) for part in (self.warehouse, *self.namespace, self.name))


def parse_table_name(text: str) -> QualifiedName:
    """Read `curated.sales.daily.orders`, or ``curated.sales.`orders.v2` ``. Raises ValueError."""
    parts = parse_parts(text)
    if len(parts) < 3:
        raise ValueError(
            "expected WAREHOUSE.NAMESPACE.TABLE, the namespace perhaps of several levels; a part with a dot in it"
            " stands in quotes"
        )
    return QualifiedName(parts[0], tuple(parts[1:-1]), parts[-1])


def parse_parts(text: str) -> list[str]:
    """The parts of a name between its dots; none if it is no such name."""
    parts: list[str] = []
    at, more = 0, True
    while more:
        found = _PART.match(text, at)
        if found is None:
            return []
        double, back = found["double"], found["back"]
        parts.append(
            double.replace('""', '"') if double else back.replace("``", "`") if back else found["plain"].strip()
        )
        at, more = found.end(), found["dot"] == "."
    return parts if at == len(text) and all(parts) else []


def quoted(part: str) -> str:
    """A part as it has to be written: in backquotes where it holds what would end it."""
    return f"`{part.replace('`', '``')}`" if re.search(r"""[."`]|^\s|\s$""", part) else part
