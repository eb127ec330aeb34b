"""The schema of the Pulumi package: the spec's JSON Schema in the form that Pulumi's SDKs are generated from. Pure.

Source: https://www.pulumi.com/docs/iac/guides/building-extending/packages/schema/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.validation.documents import as_list, as_mapping

PACKAGE = "lakewright"
TENANT_TOKEN = f"{PACKAGE}:index:Tenant"
_FIXED_FIELDS = ("version", "environment")
"""Fields of a spec that the package sets: its own version, and the name of the environment's file."""
_ENVIRONMENT_FILE = {
    "type": "string",
    "plain": True,
    "description": "Absolute path of environments/NAME.yaml, such as `${pulumi.cwd}/environments/prod.yaml`.",
}
_ANY = {"$ref": "pulumi.json#/Any"}
_OUTPUTS: Mapping[str, Mapping[str, Any]] = {
    "warehouse_ids": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Ids of the warehouses, by name.",
    },
    "role_arns": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Roles that the catalog assumes, by warehouse.",
    },
    "computing_units": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Names of the computing units.",
    },
    "catalog_config": {**_ANY, "description": "The configuration of jobs, as `lakewright config` prints it."},
}


def build_package_schema(spec: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return the schema of the package, with a component whose inputs are the fields of a spec.

    Names are the spec's, so that a spec can be copied into a program.

    Args:
        spec: JSON Schema of the spec, with `$defs`.
        version: Version of the package.
    """
    definitions = as_mapping(spec.get("$defs"))
    fields = {name: node for name, node in as_mapping(spec["properties"]).items() if name not in _FIXED_FIELDS}
    inputs = {name: _convert_property(node, definitions) for name, node in fields.items()}
    # The name of the resource is the name of the tenant.
    required = [name for name in as_list(spec.get("required")) if name in inputs and name != "name"]
    return {
        "name": PACKAGE,
        "version": version,
        "description": "Tenants of Apache Iceberg on Lakekeeper, from storage to compute.",
        "license": "Apache-2.0",
        "types": {
            _name_type(name): _convert_definition(as_mapping(node), definitions)
            for name, node in definitions.items()
            if "properties" in node
        },
        "resources": {
            TENANT_TOKEN: {
                "isComponent": True,
                "description": "All resources of a tenant. The inputs are the fields of its spec.",
                "inputProperties": {"environment": _ENVIRONMENT_FILE, **inputs},
                "requiredInputs": ["environment", *required],
                "properties": _OUTPUTS,
                "required": [*_OUTPUTS],
            }
        },
        "language": {"nodejs": {"respectSchemaVersion": True}, "python": {"respectSchemaVersion": True}},
    }


def _name_type(name: str) -> str:
    return f"{PACKAGE}:index:{name}"


def _convert_definition(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    properties = as_mapping(node.get("properties"))
    return {
        "type": "object",
        "description": str(node.get("description", "")),
        "properties": {name: _convert_property(child, definitions) for name, child in properties.items()},
        "required": as_list(node.get("required")),
    }


def _convert_property(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    converted = _convert_type(node, definitions)
    text = str(node.get("description", ""))
    allowed = as_list(node.get("enum"))
    if allowed:
        text = f"{text} One of {', '.join(str(value) for value in allowed)}.".strip()
    constant = {"const": node["const"]} if "const" in node else {}
    return {**converted, **constant, "plain": True} | ({"description": text} if text else {})


def _convert_type(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of a node. Choices of values become the type of the values, which the provider checks."""
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        definition = as_mapping(definitions.get(name))
        if "properties" in definition:
            return {"$ref": f"#/types/{_name_type(name)}", "plain": True}
        return _convert_type(definition, definitions)
    choices = [as_mapping(choice) for choice in (*as_list(node.get("oneOf")), *as_list(node.get("anyOf")))]
    if choices:
        return _convert_choices(node, [choice for choice in choices if choice.get("type") != "null"], definitions)
    match node.get("type"):
        case "array":
            converted = {"type": "array", "items": _convert_type(as_mapping(node.get("items")), definitions)}
        case "object":
            converted = {"type": "object", "additionalProperties": _convert_entries(node, definitions)}
        case "string" | "integer" | "number" | "boolean" as kind:
            converted = {"type": kind}
        case _:
            converted = _ANY
    return {**converted, "plain": True}


def _convert_entries(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of the entries of a map."""
    schemas = [node.get("additionalProperties"), *as_mapping(node.get("patternProperties")).values()]
    entries = [entry for schema in schemas if (entry := as_mapping(schema))]
    return _convert_type(entries[0], definitions) if entries else dict(_ANY)


def _convert_choices(
    node: Mapping[str, Any], choices: list[Mapping[str, Any]], definitions: Mapping[str, Any]
) -> dict[str, Any]:
    unique: dict[str, dict[str, Any]] = {}
    for choice in choices:
        converted = _convert_type(choice, definitions)
        unique.setdefault(repr(converted), converted)
    types = [*unique.values()]
    if len(types) == 1:
        return types[0]
    discriminator = as_mapping(node.get("discriminator"))
    if not discriminator:
        return {"oneOf": types, "plain": True}
    mapping = {
        value: f"#/types/{_name_type(str(reference).rpartition('/')[2])}"
        for value, reference in as_mapping(discriminator.get("mapping")).items()
    }
    property_name = discriminator["propertyName"]
    return {"oneOf": types, "discriminator": {"propertyName": property_name, "mapping": mapping}, "plain": True}
