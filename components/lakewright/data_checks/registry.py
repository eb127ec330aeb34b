"""The kinds of checks. A new kind is a model in `spec/data_check.py`, a module beside this module, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.data_checks import access_kind, table_kind, warehouse_kind
from lakewright.data_checks.result import Verdict
from lakewright.data_checks.session import CheckSession
from lakewright.spec.data_check import AccessCheck, DataCheck, TableCheck, WarehouseCheck


@dataclass(frozen=True)
class CheckKind:
    """The functions that evaluate the entries of a kind."""

    title: Callable[[Any], str]
    evaluate: Callable[[Any, CheckSession], Iterator[Verdict]]


CHECKS: Mapping[type[DataCheck], CheckKind] = {
    TableCheck: CheckKind(table_kind.format_title, table_kind.evaluate),
    WarehouseCheck: CheckKind(warehouse_kind.format_title, warehouse_kind.evaluate),
    AccessCheck: CheckKind(access_kind.format_title, access_kind.evaluate),
}
"""Kinds by the model of their entry in the spec."""
