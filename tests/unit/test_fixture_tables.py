"""The tables of `tests/conftest.py` name fixtures: a renamed fixture would run, or be left out, without a reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
FIXTURE = re.compile(r"^@pytest\.fixture[^\n]*\n(?:async )?def (\w+)\(", re.MULTILINE)


@pytest.mark.parametrize("table", ["STAND_IN_ONLY", "NOT_IN_THE_MATRIX", "PORTABLE"])
def test_tables_name_existing_fixtures(table: str, pytestconfig: pytest.Config) -> None:
    conftest: Any = pytestconfig.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    fixtures = {name for file in TESTS.rglob("*.py") for name in FIXTURE.findall(file.read_text())}

    assert set(getattr(conftest, table)) - fixtures == set()
