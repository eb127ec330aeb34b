"""Values that pass between Python and Java, and errors of Java while Python iterates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lakewright_spark.maintenance.table.iceberg import IcebergTable, iterate
from py4j.protocol import Py4JJavaError

from tests.spark.maintenance.conftest import Maintained

pytestmark = pytest.mark.spark


@pytest.fixture
def opened(create_table: Callable[..., Maintained]) -> IcebergTable:
    table = create_table("passed", "(n int) USING iceberg")
    return IcebergTable.open(table.spark, table.table)


def test_strings_with_line_breaks_stay_whole(opened: IcebergTable) -> None:
    """A part of a path may be the path of another file."""
    strings = ["a\nb", "c\\d", "'e'"]
    assert opened.to_strings(opened.to_stream(strings).toList()) == strings
    assert opened.to_strings(opened.find_class("java.util.ArrayList")()) == []


def test_maps_become_dicts(opened: IcebergTable) -> None:
    java = opened.find_class("java.util.HashMap")()
    java.put("a\n1", '"b"')
    assert opened.to_dict(java) == {"a\n1": '"b"'}
    assert opened.to_dict(None) == {}


def test_errors_of_java_end_an_iteration(opened: IcebergTable) -> None:
    """py4j takes each error for the end of the iteration."""
    java: Any = opened.find_class("java.util.ArrayList")()
    java.add("a")
    values = iterate(java)
    java.add(next(values))
    java.add("c")
    with pytest.raises(Py4JJavaError, match="ConcurrentModificationException"):
        list(values)
