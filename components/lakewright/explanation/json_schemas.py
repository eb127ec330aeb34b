"""JSON Schemas for editors: of stack files, of environments/NAME.yaml, and of platform stacks."""

import json
from typing import Any

from pydantic import BaseModel

from lakewright.environment.environment import Environment
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.spec.tenant import TenantSpec


def stack_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of a `Pulumi.<stack>.yaml` with a spec under `lakewright:tenant`."""
    return _wrap_spec(TenantSpec, "lakewright:tenant", "A stack's configuration with a tenant's spec")


def schema_text() -> str:
    """Return the content of docs/schema/tenant.schema.json."""
    return json.dumps(stack_file_schema(), indent=2, sort_keys=True) + "\n"


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


def build_platform_schema() -> dict[str, Any]:
    """Return the JSON Schema of a platform's `Pulumi.<stack>.yaml`."""
    return _wrap_spec(PlatformSpec, "lakewright-platform:spec", "A stack's configuration with a platform's spec")


def format_platform_schema() -> str:
    """Return the content of docs/schema/platform.schema.json."""
    return json.dumps(build_platform_schema(), indent=2, sort_keys=True) + "\n"


def _wrap_spec(model: type[BaseModel], key: str, title: str) -> dict[str, Any]:
    """Return the schema of a stack file that has a spec under a key of its configuration."""
    spec = model.model_json_schema()
    definitions = spec.pop("$defs")
    if "extends" in spec["properties"]:
        # The files that a spec extends may have what it requires.
        required = spec.pop("required")
        spec |= {"anyOf": [{"required": ["extends"]}, {"required": required}], "required": ["name"]}
    reference = {"$ref": f"#/$defs/{model.__name__}"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": {"config": {"type": "object", "properties": {key: reference}}},
        "$defs": {**definitions, model.__name__: spec},
    }
