"""The reports of a pre-flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakewright.lakekeeper.preflight import Report, read_reports
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.resource import Props

TAKEN = frozenset({"adopt"})
"""Inputs that `check` refuses when another warehouse has the name."""


def run_preflight(
    file: Path,
    warehouse_props: Props,
    provider: WarehouseProvider | None = None,
    olds: Props | None = None,
    invalid_inputs: frozenset[str] = frozenset(),
) -> Any:
    """Return status and reason of each pre-flight check. `invalid_inputs` are the inputs that `check` refuses."""
    before = len(read_reports(file))
    failures = (provider or WarehouseProvider()).check(olds or {}, warehouse_props).failures
    assert {failure.property for failure in failures} == invalid_inputs
    reports = [Report.model_validate_json(line) for line in file.read_text().splitlines()[before:]]
    assert len(reports) == 1
    return {check.name: (check.status, check.reason) for check in reports[0].checks}
