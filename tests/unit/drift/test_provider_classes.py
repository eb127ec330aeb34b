"""The registry of providers by resource type."""

import ast
from pathlib import Path

import lakewright
from lakewright.drift.provider_classes import PREFIX, PROVIDERS, provider_class


def read_declared_types() -> set[str]:
    """Return `module:Name` of each dynamic resource in the source of the package."""
    types: set[str] = set()
    for file in Path(lakewright.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "Resource" for base in node.bases):
                keywords = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
                types.add(f"{keywords['module']}:{keywords['name']}")
    return types


def test_every_dynamic_resource_has_a_provider() -> None:
    assert read_declared_types() == set(PROVIDERS)


def test_providers_load_by_type() -> None:
    assert {
        type_: provider_class(PREFIX + type_) for type_ in PROVIDERS if provider_class(PREFIX + type_) is None
    } == {}
    assert provider_class(f"{PREFIX}lakekeeper:Warehouse").__name__ == "WarehouseProvider"  # pyright: ignore
    assert provider_class(f"{PREFIX}mine:Thing") is None
