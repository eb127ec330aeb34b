"""The page of features names tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROWS: list[tuple[str, str, str]] = re.findall(
    r"^\| (?!feature \|)(?!---)(.+?) \| (.+?) \| (.+?) \|$",
    (REPOSITORY / "docs" / "concepts" / "features.md").read_text("utf-8"),
    re.MULTILINE,
)


@cache
def list_tests(file: Path) -> set[str]:
    """Return the names of the tests of a module, also of its classes."""
    functions = (node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.FunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_page_covers_the_whole_list() -> None:
    assert len(ROWS) == 102
    assert len({feature for feature, _, _ in ROWS}) == 102


@pytest.mark.parametrize(("feature", "delivery", "tests"), ROWS, ids=[row[0] for row in ROWS])
def test_tests_of_a_feature_exist(feature: str, delivery: str, tests: str) -> None:
    if tests == "-":
        assert delivery.startswith("not built: ")
        return
    for name in re.findall(r"`([^`]+)`", tests):
        file, _, function = name.partition("::")
        assert (REPOSITORY / file).is_file(), f"{feature}: {file}"
        assert function in list_tests(REPOSITORY / file), f"{feature}: {name}"
