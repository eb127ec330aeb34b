"""What every part of a spec has in common: no unknown keys, no change after reading, mistakes told in full."""

from __future__ import annotations

from typing import Any, LiteralString, Self, cast

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError


class StrictModel(BaseModel):
    """A part of the spec. Its docstring and its fields' docstrings become the JSON Schema's descriptions."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="wrap")
    @classmethod
    def _tell_the_keys(cls, raw: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """An unknown key is answered with the keys that there are."""
        try:
            return handler(raw)
        except ValidationError as error:
            keys = ", ".join(cls.model_fields)
            raise ValidationError.from_exception_data(
                cls.__name__,
                [
                    restated(details, f"unknown key; expected one of {keys}")
                    if details["type"] == "extra_forbidden" and len(details["loc"]) == 1
                    else restated(details)
                    for details in error.errors(include_url=False, include_context=False)
                ],
            ) from None


def restated(details: ErrorDetails, message: str | None = None) -> InitErrorDetails:
    """One of pydantic's findings, to be raised again, perhaps in better words."""
    kind = cast(LiteralString, "unknown_key" if message else details["type"])
    told = PydanticCustomError(kind, "{message}", {"message": message or details["msg"]})
    return InitErrorDetails(type=told, loc=details["loc"], input=details["input"])
