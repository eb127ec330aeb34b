"""Each field of the spec declares the property that it sets, and a way back or the reason why none exists."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any, get_args

import pytest
from lakewright.field_map.arguments import build_args
from lakewright.field_map.marks import Makes, NotExpressibleError, NoWayBack, Sets, WayBack, list_marked_fields
from lakewright.field_map.read_back import find_field, read_fields
from lakewright.lakekeeper.grants.grant import GrantArgs
from lakewright.lakekeeper.identity.role_members import RoleMembersArgs
from lakewright.lakekeeper.server.project import ProjectArgs
from lakewright.lakekeeper.storage.profiles import S3Profile
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.warehouse.model import WIRED, WarehouseArchive, WarehouseArgs, WarehouseInfo, read_properties
from lakewright.spec.grant import GrantSpec
from lakewright.spec.identity import RoleMembersSpec
from lakewright.spec.table import TableSpec
from lakewright.spec.tenant import ProjectSpec, TenantSpec
from lakewright.spec.warehouse import WarehouseSpec
from pydantic import BaseModel

SECTIONS: list[tuple[type[BaseModel], type[BaseModel]]] = [
    (WarehouseSpec, WarehouseArgs),
    (TableSpec, TableArgs),
    (GrantSpec, GrantArgs),
    (RoleMembersSpec, RoleMembersArgs),
    (ProjectSpec, ProjectArgs),
]
"""Sections of the spec, and the properties of the resources that they declare."""
RESPONSE: dict[str, Any] = {
    "warehouse-id": "w1",
    "project-id": "acme",
    "name": "main",
    "status": "active",
    "delete-profile": {"type": "hard"},
    "allowed-format-versions": [1, 2, 3],
    "storage-profile": {"type": "s3", "key-prefix": "acme/main", "sts-enabled": True, "remote-signing-enabled": False},
}


class WarehouseWithDefaultVersion(WarehouseSpec):
    """A section with a field that the real one lacks."""

    default_format_version: Annotated[int | None, Sets("default_format_version")] = None


def list_unmapped_fields(section: type[BaseModel]) -> Iterator[str]:
    """Yield the fields without a mark, through the sections inside a section."""
    for name, field in section.model_fields.items():
        if any(isinstance(mark, Sets | Makes | NoWayBack | WayBack) for mark in field.metadata):
            continue
        inner_sections = [*list_models(field.annotation)]
        if not inner_sections:
            yield f"{section.__name__}.{name}"
        for inner_section in inner_sections:
            yield from list_unmapped_fields(inner_section)


def list_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from list_models(argument)


def test_each_field_has_a_way_back_or_a_reason() -> None:
    assert [*list_unmapped_fields(TenantSpec)] == []


def test_a_field_without_mark_is_found() -> None:
    class Incomplete(WarehouseSpec):
        forgotten: bool = False

    assert [*list_unmapped_fields(Incomplete)] == ["Incomplete.forgotten"]


def test_functions_that_read_fields_exist() -> None:
    for _, mark in list_marked_fields(TenantSpec, WayBack):
        module, _, function = mark.function.partition(":")
        assert callable(getattr(import_module(f"lakewright.{module}"), function))


@pytest.mark.parametrize(("section", "model"), SECTIONS)
def test_fields_set_properties_that_exist(section: type[BaseModel], model: type[BaseModel]) -> None:
    paths = [mark.path for field in section.model_fields.values() for mark in field.metadata if isinstance(mark, Sets)]

    for path in paths:
        name, _, inner = path.partition(".")
        assert name in model.model_fields
        inside = WarehouseArchive if name == "archive" else S3Profile
        assert not inner or inner in inside.model_fields


@pytest.mark.parametrize(
    "fields",
    [
        {"soft_delete_days": 7, "protected": True},
        {"format_versions": [2, 3], "token_seconds": 900, "session_tags": {"team": "a"}},
        {"delegation": "remote-signing", "key_prefix": "elsewhere"},
        {"remote_signing": True},
    ],
    ids="-".join,
)
def test_warehouse_is_read_back_as_declared(fields: dict[str, Any]) -> None:
    document = {"name": "main", "key_prefix": "acme/main"} | fields
    spec = WarehouseSpec.model_validate(document)
    args = build_args(spec)
    storage = args["storage"]
    signs = storage["remote_signing_enabled"] or not storage["sts_enabled"]

    live = args | {"storage": storage | {"remote_signing_enabled": signs}, "Namespace": [], "TaskQueueConfig": {}}

    assert read_fields(WarehouseSpec, live) == document


def test_values_that_servers_choose_are_left_out() -> None:
    live = read_properties(
        RESPONSE | {"storage-profile": RESPONSE["storage-profile"] | {"sts-token-validity-seconds": 3600}}
    )

    document = read_fields(WarehouseSpec, live | {"Namespace": [], "TaskQueueConfig": {}})

    assert document == {"name": "main", "key_prefix": "acme/main"}


def test_inexpressible_value_is_refused() -> None:
    live = read_properties(RESPONSE | {"delete-profile": {"type": "soft", "expiration-seconds": 90}})

    with pytest.raises(NotExpressibleError, match="expire after 90 seconds; `soft_delete_days` counts whole days"):
        read_fields(WarehouseSpec, live | {"Namespace": [], "TaskQueueConfig": {}})


def test_table_is_read_back_as_declared() -> None:
    document = {
        "name": "main.sales.orders",
        "columns": [{"name": "id", "type": "long", "required": True}],
        "identifier": ["id"],
        "properties": {"comment": "orders"},
        "format_version": 3,
        "protected": True,
        "policies": {"orphan_files": {"older_than_days": 9}},
    }

    args = build_args(TableSpec.model_validate(document))

    written_by_engine = {"owner": "spark", "write.parquet.compression-codec": "zstd"}
    live = args | {"full_name": document["name"], "properties": args["properties"] | written_by_engine}
    assert args["name"] == "orders"
    assert read_fields(TableSpec, live) == document


def test_grant_names_a_user_or_a_role() -> None:
    on = {"warehouse": "main", "table": "sales.orders"}

    of_user = build_args(GrantSpec.model_validate({"to": "user:oidc~ann", "privilege": "select", "on": on}))
    of_role = build_args(GrantSpec.model_validate({"to": "role:analysts", "privilege": "select", "on": on}))

    target = {"type": "table", "namespace": "sales", "name": "orders"}
    assert of_user == {"user": "oidc~ann", "privilege": "select", "on": target}
    assert of_role == {"role": "analysts", "privilege": "select", "on": target}


def test_new_field_needs_its_mark_alone() -> None:
    spec = WarehouseWithDefaultVersion(name="main", format_versions=[2, 3], default_format_version=3)
    live = read_properties(RESPONSE | {"default-format-version": 3})

    field = find_field(WarehouseWithDefaultVersion, "default_format_version")

    assert build_args(spec)["default_format_version"] == 3
    assert read_fields(WarehouseWithDefaultVersion, live | {"Namespace": [], "TaskQueueConfig": {}}) == {
        "name": "main",
        "key_prefix": "acme/main",
        "default_format_version": 3,
    }
    assert field
    assert field.name == "default_format_version"


def test_lookups_return_each_wired_property() -> None:
    renamed = {"delete_profile": "soft_delete_seconds"}

    assert {renamed.get(name, name) for name in WIRED} <= WarehouseInfo.model_fields.keys()
