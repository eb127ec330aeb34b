"""The base of all models of specs and environments: no unknown keys, immutable, with helpful errors."""

from __future__ import annotations

from typing import Any, LiteralString, Self, cast

from lakewright_spark.documented_model import DocumentedModel
from lakewright_spark.suggestions import suggest_name
from pydantic import ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError


class StrictModel(DocumentedModel):
    """A model that refuses unknown keys. Docstrings of class and fields become descriptions of the JSON Schema."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _name_known_keys(cls, raw: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Add the known keys to the error of an unknown key."""
        try:
            return handler(raw)
        except ValidationError as error:
            keys = ", ".join(cls.model_fields)
            raise ValidationError.from_exception_data(
                cls.__name__,
                [
                    restate(
                        details,
                        f"unknown key; expected one of {keys}{suggest_name(details['loc'][0], cls.model_fields)}",
                    )
                    if details["type"] == "extra_forbidden" and len(details["loc"]) == 1
                    else restate(details)
                    for details in error.errors(include_url=False, include_context=False)
                ],
            ) from None


def restate(details: ErrorDetails, message: str | None = None) -> InitErrorDetails:
    """Return an error of pydantic to raise again, with another message if one is given."""
    kind = cast(LiteralString, "unknown_key" if message else details["type"])
    error_type = PydanticCustomError(kind, "{message}", {"message": message or details["msg"]})
    return InitErrorDetails(type=error_type, loc=details["loc"], input=details["input"])
