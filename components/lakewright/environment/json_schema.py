"""The JSON Schema of environments/NAME.yaml, for editors."""

import json
from typing import Any

from lakewright.environment.environment import Environment


def environment_schema() -> dict[str, Any]:
    """Return the schema. `lakekeeper` is optional with a `sandbox` or `platform`."""
    schema = Environment.model_json_schema()
    schema.pop("required")
    schema["$defs"]["LakekeeperSettings"].pop("required")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [
            {"required": ["sandbox"]},
            {"required": ["platform"]},
            {"required": ["lakekeeper"], "properties": {"lakekeeper": {"required": ["endpoint"]}}},
        ],
    }


def environment_schema_text() -> str:
    """Return the content of docs/schema/environment.schema.json."""
    return json.dumps(environment_schema(), indent=2, sort_keys=True) + "\n"
