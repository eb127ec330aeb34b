"""Common parts of storage profiles and credentials: storage layout, stored form, and checks of updates."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import field_validator

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body

TEMPLATE_VARIABLE = re.compile(r"\{(uuid|name)\}")


class StorageLayoutBody(Body):
    """The layout of new namespaces and tables below the warehouse's location; null templates mean the default."""

    type: Literal["default", "tabular-only", "full-hierarchy"]
    namespace: str | None = None
    tabular: str | None = None

    @field_validator("tabular", "namespace")
    @classmethod
    def _template(cls, template: str | None) -> str | None:
        if template is not None and not TEMPLATE_VARIABLE.search(template):
            raise ValueError("storage layout templates need `{uuid}` or `{name}`")
        return template


class StorageProfileBody(Body):
    """A storage profile in requests and responses."""

    def to_stored(self) -> dict[str, Any]:
        """Return the profile as responses contain it: explicit nulls, and a layout without unset templates."""
        document = self.model_dump(by_alias=True)
        if layout := document.get("storage-layout"):
            document["storage-layout"] = {key: value for key, value in layout.items() if value is not None}
        return document


class StorageCredentialBody(Body):
    """A storage credential in requests."""

    def to_stored(self) -> dict[str, Any]:
        """Return the credential as the server stores it."""
        return self.model_dump(by_alias=True, exclude_none=True)


def check_variant(name: Any, variants: tuple[str, ...]) -> Any:
    """Return a known name. Raises ValueError in the server's words for any other."""
    if isinstance(name, str) and name not in variants:
        variant_names = ", ".join(f"`{variant}`" for variant in variants)
        raise ValueError(f"unknown variant `{name}`, expected one of {variant_names}")
    return name


def refuse_changes(old: Body, new: Body, *fields: str) -> None:
    """Raise 400 `UpdateError` if one of the fields changes."""
    for field in fields:
        if getattr(old, field) != getattr(new, field):
            raise ApiError(400, "UpdateError", f"Field `{field}` cannot be updated to prevent loss of data.")


def prefixes_overlap(first: str | None, second: str | None) -> bool:
    """Return whether the prefixes are equal or one is above the other."""
    first_segments, second_segments = _segments(first), _segments(second)
    return (
        first_segments[: len(second_segments)] == second_segments
        or second_segments[: len(first_segments)] == first_segments
    )


def _segments(prefix: str | None) -> list[str]:
    return prefix.split("/") if prefix else []
