"""The schema of the Pulumi package has every field of a spec, and inputs are checked before anything is declared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
from lakewright.explanation.package_schema import TENANT_TOKEN, build_package_schema
from lakewright.spec import TenantSpec
from lakewright.storage.registry import BACKENDS
from lakewright.tenant.package import read_inputs
from pulumi.errors import InputPropertyError

SPEC = TenantSpec.model_json_schema()
SCHEMA = build_package_schema(SPEC, "1.2.3")
COMPONENT = SCHEMA["resources"][TENANT_TOKEN]
ENVIRONMENT = "/project/environments/prod.yaml"


def find_nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Yield the mappings in a document."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from find_nodes(child)


def test_inputs_are_the_fields_of_a_spec() -> None:
    assert COMPONENT["inputProperties"].keys() == SPEC["properties"].keys() - {"version"}
    assert set(COMPONENT["requiredInputs"]) == {"environment", *SPEC["required"]} - {"version", "name"}
    assert all(node["plain"] for node in COMPONENT["inputProperties"].values())


def test_each_type_of_the_spec_is_declared() -> None:
    references = {node["$ref"] for node in find_nodes(SCHEMA) if "$ref" in node} - {"pulumi.json#/Any"}

    assert references <= {f"#/types/{name}" for name in SCHEMA["types"]}
    for name, definition in SPEC["$defs"].items():
        if "properties" in definition:
            assert SCHEMA["types"][f"lakewright:index:{name}"]["properties"].keys() == definition["properties"].keys()


def test_backends_are_a_choice_by_their_name() -> None:
    storage = COMPONENT["inputProperties"]["storage"]["additionalProperties"]

    assert storage["discriminator"]["propertyName"] == "backend"
    assert storage["discriminator"]["mapping"].keys() == BACKENDS.keys()


def test_whole_numbers_become_integers() -> None:
    """Pulumi's protocol has floating-point numbers only, which a spec refuses where it expects text or an integer."""
    inputs = {
        "environment": ENVIRONMENT,
        "warehouses": [{"soft_delete_days": 7.0}],
        "quota": {"x": 0.5},
        "labels": None,
    }
    file, spec = read_inputs("acme", inputs)

    assert (file, spec["environment"], spec["name"], spec["version"]) == (Path(ENVIRONMENT), "prod", "acme", 1)
    assert type(spec["warehouses"][0]["soft_delete_days"]) is int
    assert spec["quota"] == {"x": 0.5}
    assert "labels" not in spec


@pytest.mark.parametrize(
    ("inputs", "path", "reason"),
    [
        ({"environment": "environments/prod.yaml"}, "environment", "absolute path"),
        ({}, "environment", "absolute path"),
        ({"environment": ENVIRONMENT, "name": "globex"}, "name", "expected `acme`"),
        ({"environment": ENVIRONMENT, "owner": pulumi.Output.secret("x")}, "owner", "plain value"),
    ],
    ids=["relative", "missing", "another name", "output"],
)
def test_unusable_inputs_are_named(inputs: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(InputPropertyError) as caught:
        read_inputs("acme", inputs)

    assert caught.value.property_path == path
    assert reason in caught.value.reason
