"""`lakewright spec explain`: the documentation of fields, and the values in effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from lakewright.environment.environment import Environment
from lakewright.explanation.effective import ValueSource, effective_values
from lakewright.explanation.fields import UnknownFieldError, example_spec, explain_field
from lakewright.spec import TenantSpec, parse_spec

SCHEMA = TenantSpec.model_json_schema()


def _paths(document: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each value in a document."""
    if path:
        yield path
    entries: Any = document.items() if isinstance(document, Mapping) else ()
    if isinstance(document, list):
        entries = enumerate(document)
    for name, child in entries:
        yield from _paths(child, f"{path}.{name}" if path else str(name))


def test_the_example_is_valid_and_has_every_section() -> None:
    example = example_spec()

    parse_spec(example, "example.yaml")

    rare = {"adopt", "dropped_warehouses", "project", "standard_roles", "checks", "drift", "extends"}
    assert example.keys() >= SCHEMA["properties"].keys() - rare


@pytest.mark.parametrize("path", [*_paths(example_spec())])
def test_every_value_of_the_example_is_explained(path: str) -> None:
    fields = explain_field(SCHEMA, path, example_spec())

    assert fields
    assert all(item.path == path and item.type for item in fields)


@pytest.mark.parametrize("path", ["warehouses.deletion", "warehouses.0.deletion", "warehouses.*.deletion"])
def test_a_field_has_type_default_allowed_values_and_example(path: str) -> None:
    [field] = explain_field(SCHEMA, path, example_spec())

    assert (field.type, field.is_required, field.default) == ("text", False, "protect")
    assert field.allowed == ("protect", "retain", "archive", "purge")
    assert field.example == "archive"
    assert "while tables exist" in field.description


def test_fields_of_several_backends_name_the_backend() -> None:
    fields = explain_field(SCHEMA, "storage.region")

    assert [item.variant for item in fields] == ["backend: aws", "backend: s3", "backend: existing"]


def test_unknown_fields_are_refused_with_those_that_exist() -> None:
    with pytest.raises(UnknownFieldError, match=r"`warehouses` has no field `title`; it has: .*name"):
        explain_field(SCHEMA, "warehouses.title")


def test_each_value_in_effect_names_its_source(tmp_path: Path) -> None:
    document = {
        "version": 1,
        "environment": "production",
        "name": "acme",
        "owner": "tests",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "executions", "namespaces": ["results"]}],
        "computing_units": [{"name": "notebook", "runtime": "spark", "size": {"cpu": "2"}, "warehouse": "executions"}],
    }
    (tmp_path / "production.yaml").write_text(
        "lakekeeper: {endpoint: 'http://127.0.0.1:1', trial: true}\n"
        "aws: {region: us-west-2}\n"
        "kubernetes: {images: {spark: 'example.com/spark:1'}, quota: {memory: 64Gi}, trial: true}\n"
    )
    environment = Environment.load(tmp_path / "production.yaml", {})

    values = effective_values(document, parse_spec(document, "acme"), environment, region=None)

    values_and_sources = {value.path: (value.value, value.source) for value in values}
    assert len(values_and_sources) == len(values)
    assert values_and_sources["owner"] == ("tests", ValueSource.SPEC)
    assert values_and_sources["warehouses.0.deletion"] == ("protect", ValueSource.DEFAULT)
    assert values_and_sources["storage.main.region"] == ("us-west-2", ValueSource.ENVIRONMENT)
    assert values_and_sources["computing_units.0.image"] == ("example.com/spark:1", ValueSource.ENVIRONMENT)
    assert values_and_sources["quota.memory"] == ("64Gi", ValueSource.ENVIRONMENT)
    assert values_and_sources["quota.cpu"] == ("2", ValueSource.DERIVED)
    assert values_and_sources["warehouses.0.key_prefix"] == ("acme/executions", ValueSource.DERIVED)
    assert values_and_sources["warehouses.0.role"] == ("lakewright.acme.executions", ValueSource.DERIVED)
    assert values_and_sources["kubernetes.namespace"] == ("tenant-acme", ValueSource.DERIVED)
    set_region = effective_values(document, parse_spec(document, "acme"), environment, region="eu-west-1")
    [region] = [value for value in set_region if value.path == "storage.main.region"]
    assert (region.value, region.source) == ("eu-west-1", ValueSource.SETTINGS)
