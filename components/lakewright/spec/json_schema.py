"""The spec's JSON Schema, which editors use while one writes a stack's file."""

import json
from typing import Any

from lakewright.spec.tenant import TenantSpec


def stack_file_schema() -> dict[str, Any]:
    """JSON Schema of a `Pulumi.<stack>.yaml` whose `lakewright:tenant` holds a spec; other keys are Pulumi's."""
    spec = TenantSpec.model_json_schema()
    definitions = spec.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A stack's configuration with a tenant's spec",
        "type": "object",
        "properties": {
            "config": {"type": "object", "properties": {"lakewright:tenant": {"$ref": "#/$defs/TenantSpec"}}},
        },
        "$defs": {**definitions, "TenantSpec": spec},
    }


def schema_text() -> str:
    """The schema as it is kept in docs/schema/tenant.schema.json."""
    return json.dumps(stack_file_schema(), indent=2, sort_keys=True) + "\n"
