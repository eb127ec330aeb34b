"""The JSON Schema of stack files, for editors."""

import json
from typing import Any

from lakewright.spec.tenant import TenantSpec


def stack_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of a `Pulumi.<stack>.yaml` with a spec under `lakewright:tenant`."""
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
    """Return the content of docs/schema/tenant.schema.json."""
    return json.dumps(stack_file_schema(), indent=2, sort_keys=True) + "\n"
