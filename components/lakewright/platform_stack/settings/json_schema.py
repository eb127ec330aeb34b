"""The JSON Schema of a platform's spec, for editors."""

import json
from typing import Any

from lakewright.platform_stack.settings.platform import PlatformSpec


def build_platform_schema() -> dict[str, Any]:
    """Return the schema of the spec."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **PlatformSpec.model_json_schema()}


def format_platform_schema() -> str:
    """Return the content of docs/schema/platform.schema.json."""
    return json.dumps(build_platform_schema(), indent=2, sort_keys=True) + "\n"
