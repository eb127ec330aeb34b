"""`lakewright undrop`: the choice of a table, the obstacles, and the messages about both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.cli import main

from tests.integration.provider.resource import Props, Resource

Undrop = Callable[..., tuple[int, str, str]]
TYPE = "pulumi-python:dynamic/lakekeeper:Warehouse"


@pytest.fixture
def undrop(
    warehouse: Resource, warehouse_props: Props, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> Undrop:
    """Return a function that runs the command on a stack with the warehouse `main`, which keeps dropped tables.

    The result is the exit code, output and errors.
    """
    soft = {"type": "soft", "expiration_seconds": 86400}
    warehouse.up(**warehouse_props, delete_profile=soft)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "p")
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    resource = {"urn": f"urn:pulumi:dev::lake::{TYPE}::main", "type": TYPE, "custom": True, "id": warehouse.id}
    resource |= {"inputs": warehouse.inputs, "outputs": warehouse.outs}
    (tmp_path / "state.json").write_text(json.dumps({"version": 3, "deployment": {"resources": [resource]}}))

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([*arguments, "--stack", "dev"])
        message = capsys.readouterr()
        return int(end.value.code or 0), message.out, message.err

    assert call("stack", "init")[0] == 0
    assert call("stack", "import", "--file", "state.json")[0] == 0
    return lambda *arguments: call("undrop", *arguments)


@pytest.fixture
def drop(warehouse: Resource, http: httpx.Client, make_table: Any) -> Callable[[str, str], str]:
    """Return a function that makes a table, drops it as a user does, and returns its id."""

    def drop_new_table(namespace: str, name: str) -> str:
        make_table(warehouse.id, namespace, name)
        url = f"/catalog/v1/{warehouse.id}/namespaces/{namespace.replace('.', '%1F')}/tables/{name}"
        table_id = http.get(url).json()["metadata"]["table-uuid"]
        http.delete(url).raise_for_status()
        return table_id

    return drop_new_table


def test_newest_table_of_a_name_is_restored_others_by_id(undrop: Undrop, drop: Any) -> None:
    first, second = drop("sales", "orders"), drop("sales", "orders")

    code, out, _ = undrop("main.SALES.Orders")

    assert code == 0
    assert f"Restored table main.sales.orders ({second}), dropped 20" in out
    assert f"Also dropped under the same name: {first}" in out
    code, out, err = undrop("main.sales.orders")
    assert (code, out) == (1, "")
    assert f"({first}) is not restored: table {second} in warehouse `main`" in err
    assert "Rename it (`ALTER TABLE ... RENAME TO ...`) or drop it, and run this again." in err


def test_quoted_names_and_ids(undrop: Undrop, drop: Any) -> None:
    table_id = drop("sales", "orders.v2")

    assert "main.sales.`orders.v2`" in undrop("--list")[1]
    assert undrop("main.sales.orders.v2")[0] == 1
    assert undrop('main.sales."orders.v2"')[0] == 0
    table_id_of_more = drop("sales", "more")
    code, out, _ = undrop("--id", table_id_of_more.upper(), "--json")
    assert (code, json.loads(out)["name"]) == (0, "more")
    assert table_id not in undrop("--list")[1]


def test_list_is_newest_first_and_filtered_by_namespace(undrop: Undrop, drop: Any) -> None:
    first, other, last = drop("sales", "a"), drop("ops", "b"), drop("sales.daily", "c")

    output = undrop("--list")[1]
    narrow = json.loads(undrop("--list", "main.Sales", "--json")[1])["dropped"]

    assert output.splitlines()[0].split("  ")[-1] == "KEPT UNTIL"
    assert output.index(last) < output.index(other) < output.index(first)
    assert [item["tabular_id"] for item in narrow] == [last, first]
    assert {item["warehouse"] for item in narrow} == {"main"}


MISTAKES = [
    ((), 2, "name the table: `lakewright undrop STACK WAREHOUSE.NAMESPACE.TABLE`, or use --list"),
    (("main.orders",), 2, "expected WAREHOUSE.NAMESPACE.TABLE"),
    (("other.sales.orders",), 2, "the stack has no warehouse `other`; it has: main"),
    (("main.sales.lost",), 1, "`main.sales.lost` cannot be restored in warehouse `main`"),
    (("main.sales.lost",), 1, "Restorable: `main.sales.orders`."),
    (("main.sales.there",), 1, "`main.sales.there` is not dropped: the table exists ("),
    (
        ("main.sales.orders", "--id", "nonsense"),
        1,
        "no dropped table has the ID nonsense; dropped tables: table",
    ),
]


def test_each_failure_is_one_message(undrop: Undrop, drop: Any, warehouse: Resource, make_table: Any) -> None:
    drop("sales", "orders")
    make_table(warehouse.id, "sales", "there")

    for arguments, code, message in MISTAKES:
        exit_code, out, err = undrop(*arguments)

        assert (exit_code, out) == (code, ""), arguments
        assert message in err
        assert "Traceback" not in err


def test_warehouse_without_soft_deletion_or_inactive(
    undrop: Undrop, warehouse: Resource, warehouse_props: Props, http: httpx.Client
) -> None:
    warehouse.up(**warehouse_props)
    assert (
        "The warehouse has no soft deletion: dropped tables are deleted immediately." in undrop("main.sales.orders")[2]
    )
    http.post(f"/management/v1/warehouse/{warehouse.id}/deactivate").raise_for_status()
    assert "does not exist, is inactive, or is hidden from this identity" in undrop("--list")[2]
