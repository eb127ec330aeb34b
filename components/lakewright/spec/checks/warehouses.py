"""What must fit together where warehouses are renamed or dropped, checked on the document as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from lakewright.validation.problems import Path

Finding = tuple[Path, str]


def warehouse_checks(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Every `renamed_from` and `dropped_warehouses` that contradicts the names that are declared."""
    warehouses = [cast(Mapping[str, Any], one) for one in _list(document, "warehouses") if isinstance(one, Mapping)]
    names = [str(one.get("name")) for one in warehouses]
    first_at: dict[str, str] = {}
    for index, one in enumerate(_list(document, "warehouses")):
        earlier = cast(Mapping[str, Any], one).get("renamed_from") if isinstance(one, Mapping) else None
        if not isinstance(earlier, str):
            continue
        path: Path = ("warehouses", index, "renamed_from")
        if earlier in names:
            yield path, f"expected a name that no warehouse has now; `{earlier}` is still declared"
        elif earlier in first_at:
            yield path, f"expected one new name for `{earlier}`; `{first_at[earlier]}` is renamed from it already"
        first_at.setdefault(earlier, str(cast(Mapping[str, Any], one).get("name")))
    for index, name in enumerate(_list(document, "dropped_warehouses")):
        if name in names:
            yield ("dropped_warehouses", index), f"expected a warehouse that has left; `{name}` is still declared"
        elif name in first_at:
            yield ("dropped_warehouses", index), f"expected a warehouse that has left; it is `{first_at[name]}` now"


def _list(document: Mapping[str, Any], section: str) -> list[Any]:
    entries = document.get(section)
    return cast(list[Any], entries) if isinstance(entries, list) else []
