"""A validator of JSON documents, for tests of published schemas."""

from __future__ import annotations

from typing import Any


def make_validator(schema: dict[str, Any]) -> Any:
    """Return a validator of JSON Schema 2020-12.

    The module is slow to load, and each worker would load it to collect the tests.
    """
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema)
