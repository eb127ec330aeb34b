"""The reports of a pre-flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakewright.lakekeeper.preflight import Report, read_reports
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.resource import Props

TAKEN = frozenset({"adopt"})
"""Inputs that `check` refuses when another warehouse has the name."""


def validated(
    file: Path,
    declared: Props,
    provider: WarehouseProvider | None = None,
    olds: Props | None = None,
    refused: frozenset[str] = frozenset(),
) -> Any:
    """Return the pre-flight report of a declaration: status and reason by check. `refused` are its invalid inputs."""
    before = len(read_reports(file))
    failures = (provider or WarehouseProvider()).check(olds or {}, declared).failures
    assert {failure.property for failure in failures} == refused
    found = [Report.model_validate_json(line) for line in file.read_text().splitlines()[before:]]
    assert len(found) == 1
    return {check.name: (check.status, check.reason) for check in found[0].checks}
