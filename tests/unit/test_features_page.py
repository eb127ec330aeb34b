"""The page of features names tests that exist."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROWS: list[tuple[str, str, str]] = re.findall(
    r"^\| (?!feature \|)(?!---)(.+?) \| (.+?) \| (.+?) \|$",
    (REPOSITORY / "docs" / "concepts" / "features.md").read_text("utf-8"),
    re.MULTILINE,
)

OWN_FOLDERS: list[str] = [
    folder
    for folder in tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"][
        "norecursedirs"
    ]
    if folder.startswith("tests/")
]
"""Folders that plain `pytest` leaves out."""


@cache
def read_recipes() -> dict[str, str]:
    """Return the commands of each target of the Makefile, with the values of its variables."""
    text = (REPOSITORY / "Makefile").read_text("utf-8")
    for _ in range(2):  # values of variables name variables
        for name, value in re.findall(r"^([A-Z_]+) :?= (.*)$", text, re.MULTILINE):
            text = text.replace(f"$({name})", value)
    return dict(re.findall(r"^([a-z0-9-]+):.*\n((?:\t.*\n)+)", text, re.MULTILINE))


def list_runners(folder: str) -> set[str]:
    """Return the targets that run the tests of a folder."""
    command = re.compile(rf"\bpytest (-\S+ (\w+ )?)*{folder}(\s|$)", re.MULTILINE)
    return {target for target, recipe in read_recipes().items() if command.search(recipe)}


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
        for folder in OWN_FOLDERS:
            assert not file.startswith(f"{folder}/") or list_runners(folder), f"{feature}: no target runs {folder}"


@pytest.mark.parametrize("folder", OWN_FOLDERS)
def test_all_folders_run_in_test_all(folder: str) -> None:
    # A message also names the targets that it leaves out.
    recipe = re.sub(r'\becho "[^"]*"', "", read_recipes()["test-all"])
    steps = {"test-all", *re.findall(r"\btest-[a-z0-9]+\b", recipe)}

    assert list_runners(folder) & steps
