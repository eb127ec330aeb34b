"""The base of the models of a catalog configuration, and the mark of fields that came later."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

_SINCE: dict[str, Any] = {"x-since": "0.2"}
ADDED_LATER = Field(json_schema_extra=_SINCE)
"""Marks a field that `version: 1` did not have in its first release."""


class ConfigModel(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_serializer(mode="wrap")
    def _omit_default_of_added_fields(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Readers of the first release reject fields that they do not know.
        fields = type(self).model_fields
        added = {name for name, field in fields.items() if field.json_schema_extra == _SINCE}
        values: dict[str, Any] = serialize(self)
        return {
            key: value
            for key, value in values.items()
            if not (key in added and getattr(self, key) == fields[key].default)
        }
