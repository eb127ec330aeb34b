"""Storage layout: the folders of new tables below a warehouse's prefix. Every storage profile has a layout."""

from typing import Literal, Self

from pydantic import model_validator

from lakewright.lakekeeper.provider.inputs import Declared, has_unknown


class StorageLayout(Declared):
    """Layout of the folders of new tables below the warehouse's prefix. Existing tables do not move."""

    type: Literal["default", "tabular-only", "full-hierarchy"]
    """`default`, `tabular-only` (all tables side by side) or `full-hierarchy` (nested folders of namespaces)."""
    tabular: str | None = None
    """Name of a table's folder, with `{uuid}` or `{name}`."""
    namespace: str | None = None
    """Name of a namespace's folder, with `{uuid}` or `{name}`."""

    @model_validator(mode="after")
    def _templates(self) -> Self:
        if has_unknown([self.type, self.tabular, self.namespace]):
            return self
        expected = {"default": set[str](), "tabular-only": {"tabular"}, "full-hierarchy": {"tabular", "namespace"}}[
            self.type
        ]
        templates = {name for name in ("tabular", "namespace") if getattr(self, name)}
        if templates != expected:
            names = " and ".join(f"`{name}`" for name in sorted(expected)) or "no template"
            raise ValueError(f"a layout of type `{self.type}` needs exactly: {names}")
        if self.type == "tabular-only" and "{uuid}" not in (self.tabular or ""):
            raise ValueError("`tabular` must contain {uuid}: without namespaces in the path, names alone would collide")
        for name in sorted(templates):
            if not any(part in getattr(self, name) for part in ("{uuid}", "{name}")):
                raise ValueError(f"`{name}` must contain {{uuid}} or {{name}}")
        return self
