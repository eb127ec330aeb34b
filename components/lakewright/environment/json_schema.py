"""The JSON Schema of environments/NAME.yaml, which editors use."""

import json
from typing import Any

from lakewright.environment.environment import Environment


def environment_schema() -> dict[str, Any]:
    """Return the schema. `lakekeeper` may be left out where a `sandbox` fills it in."""
    schema = Environment.model_json_schema()
    schema.pop("required")
    schema["$defs"]["LakekeeperServer"].pop("required")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [
            {"required": ["sandbox"]},
            {"required": ["lakekeeper"], "properties": {"lakekeeper": {"required": ["endpoint"]}}},
        ],
    }


def environment_schema_text() -> str:
    """Return the schema as docs/schema/environment.schema.json has it."""
    return json.dumps(environment_schema(), indent=2, sort_keys=True) + "\n"
