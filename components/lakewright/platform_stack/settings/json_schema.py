"""The JSON Schema of a platform's spec, for editors."""

import json
from typing import Any

from lakewright.platform_stack.settings.platform import PlatformSpec


def platform_schema() -> dict[str, Any]:
    """Return the schema of the spec."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **PlatformSpec.model_json_schema()}


def platform_schema_text() -> str:
    """Return the content of docs/schema/platform.schema.json."""
    return json.dumps(platform_schema(), indent=2, sort_keys=True) + "\n"
