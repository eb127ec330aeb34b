"""docs/reference/engines.md has what the registry has."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType


def test_page_is_up_to_date(load_script: Callable[[str], ModuleType]) -> None:
    """`make docs` writes it."""
    engines = load_script("engines")

    assert engines.PAGE.read_text(encoding="utf-8") == engines.page()
