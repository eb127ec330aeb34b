"""Edits of a spec, and the document that they are made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewright.field_map.marks import NotExpressibleError
from lakewright.validation.documents import as_list, as_mapping, list_items

Path = tuple[str | int, ...]


class _Removed:
    """Marks an entry that is removed."""


REMOVED: Final = _Removed()


@dataclass(frozen=True)
class SpecEdit:
    """A new value at a path of the spec; `REMOVED` deletes the entry."""

    path: Path
    value: Any


@dataclass(frozen=True)
class WrittenSpec:
    """A spec as written."""

    document: Mapping[str, Any]

    @property
    def tenant(self) -> str:
        """Name of the tenant."""
        return str(self.document.get("name") or "")

    def warehouse(self, resource: str) -> tuple[int, Mapping[str, Any]]:
        """Return position and document of the warehouse of a resource.

        Raises:
            NotExpressibleError: The spec does not declare it.
        """
        for index, item in list_items(self.document, "warehouses"):
            if resource == f"{self.tenant}-{item.get('name')}":
                return index, item
        raise NotExpressibleError(f"the spec declares no warehouse {resource}; run `lakewright preview --refresh`")

    def get_list(self, *path: str | int) -> list[Any]:
        """Return a list of the document; empty if there is none."""
        return as_list(self.get_value(*path))

    def get_value(self, *path: str | int) -> Any:
        """Return a value of the document; None if there is none."""
        value: Any = self.document
        for step in path:
            if isinstance(step, int):
                items = as_list(value)
                value = items[step] if step < len(items) else None
            else:
                value = as_mapping(value).get(step)
        return value


def edit_list(spec: WrittenSpec, path: Path, target: list[Any]) -> list[SpecEdit]:
    """Return edits that change a list to the target; single items are removed and appended where that is enough."""
    written = spec.get_list(*path)
    remaining = [item for item in written if item in target]
    added = [item for item in target if item not in written]
    if not target:
        return [SpecEdit(path, REMOVED)] if spec.get_value(*path) is not None else []
    if not written or remaining + added != target:
        return [SpecEdit(path, target)]
    removed = [index for index, item in enumerate(written) if item not in target]
    edits = [SpecEdit((*path, index), REMOVED) for index in reversed(removed)]
    return edits + [SpecEdit((*path, len(remaining) + offset), item) for offset, item in enumerate(added)]
