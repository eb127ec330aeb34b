"""What every part of a spec has in common: no unknown keys, no change after reading."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of the spec. Its docstring and its fields' docstrings become the JSON Schema's descriptions."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
