"""Which warehouses and roles a stack's state has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from lakewright.verify.session.stack_warehouses import (
    StackWarehouse,
    is_same_server,
    is_same_store,
    read_other_tenants,
    read_stack_warehouses,
)
from lakewright_engine.model.errors import StateError

ROLE = "arn:aws:iam::123456789012:role/lakewright/acme"


class Backend:
    """A backend with the state of one stack with one warehouse."""

    def __init__(self, storage: dict[str, Any]) -> None:
        self._storage = storage

    def export(self, _project: str, _stack: str) -> dict[str, Any]:
        outputs = {"name": "executions", "storage": {"type": "s3", "bucket": "lake"} | self._storage}
        kind = "pulumi-python:dynamic/lakekeeper:Warehouse"
        return {"deployment": {"resources": [{"type": kind, "id": "1", "outputs": outputs}]}}


@pytest.mark.parametrize(
    ("storage", "roles"),
    [
        ({"assume_role_arn": ROLE}, (ROLE,)),
        ({"flavor": "aws", "assume_role_arn": ROLE, "sts_role_arn": ROLE}, (ROLE,)),
        ({"flavor": "s3-compat", "endpoint": "https://store.example", "sts_role_arn": ROLE}, ()),
    ],
)
def test_only_roles_on_aws_are_read(storage: dict[str, Any], roles: tuple[str, ...]) -> None:
    (warehouse,) = read_stack_warehouses(cast(Any, Backend(storage)), "lake", "acme")

    assert warehouse.role_arns == roles


def place(endpoint: str = "https://lakekeeper.example", server_id: str = "1", store: str = "") -> StackWarehouse:
    return StackWarehouse("globex", "globex", "executions", "9", endpoint, "lake", "globex", store, server_id=server_id)


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (place("http://127.0.0.1:8181"), True),
        (place("HTTPS://Lakekeeper.example:443/", server_id=""), True),
        (place("http://127.0.0.1:8181", server_id="2"), False),
        (place("http://127.0.0.1:8181", server_id=""), False),
    ],
)
def test_server_is_recognized_by_its_id(other: StackWarehouse, *, is_same: bool) -> None:
    assert is_same_server(other, [place()], "https://lakekeeper.example") is is_same


def test_store_is_recognized_by_its_normalized_address() -> None:
    assert is_same_store(place(store="https://store.example:443"), place(store="https://STORE.example/"))
    assert is_same_store(place(store="https://s3.eu-west-1.amazonaws.com"), place())
    assert not is_same_store(place(store="https://store.example"), place())


class SeveralStates(Backend):
    """A backend with a state that cannot be read, and one of a stack without warehouses."""

    def stacks(self, _project: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in ("acme", "broken", "empty", "globex")]

    def export(self, _project: str, _stack: str) -> dict[str, Any]:
        if _stack == "broken":
            raise StateError("broken.json: expected JSON")
        return super().export(_project, _stack) if _stack == "globex" else {"deployment": None}


def test_other_tenants_that_are_not_read_are_named() -> None:
    tenants = read_other_tenants(cast(Any, SeveralStates({})), "lake", "acme")

    assert [other.stack for other in tenants.warehouses] == ["globex"]
    assert tenants.unread == (
        "stack broken: its state cannot be read: broken.json: expected JSON",
        "stack empty: its state has no warehouse",
    )


@pytest.mark.parametrize(
    "storage",
    [{"type": "adls", "bucket": None, "filesystem": "lake", "account_name": "acme"}, {"type": "gcs"}],
    ids=["adls", "gcs"],
)
def test_warehouses_outside_s3_are_read(storage: dict[str, Any]) -> None:
    (warehouse,) = read_stack_warehouses(cast(Any, Backend(storage)), "lake", "acme")

    assert (warehouse.service, warehouse.bucket, warehouse.role_arns) == (storage["type"], "lake", ())
    assert not is_same_store(warehouse, place())
