"""The files and registries that CONTRIBUTING names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def rows() -> list[tuple[str, str, str]]:
    """Return the cells of the table "To add something"."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
    section = text.partition("## To add something\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return [row for row in cells if row[0] != "To add"]


def names(file: Path) -> set[str]:
    """Return the names that a module defines at its top level."""
    defined: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                defined.add(name)
            case ast.Assign(targets=targets):
                defined |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                defined.add(name)
            case _:
                pass
    return defined


def test_the_first_hour_names_files_that_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
    section = text.partition("## The first hour\n")[2].partition("\n## ")[0]
    paths = re.findall(r"`?((?:components|engine|spark|sandbox|tests|docs|examples)/[\w./-]+)", section)
    assert len(paths) > 10
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    (selected,) = re.findall(r"^\$ pytest (\S+) -k (\w+)$", section, re.MULTILINE)
    assert f"def test_{selected[1]}" in (REPOSITORY / selected[0]).read_text("utf-8")


def test_ten_kinds_of_additions() -> None:
    assert len(rows()) >= 10


@pytest.mark.parametrize(("kind", "files", "registries"), rows(), ids=[row[0] for row in rows()])
def test_files_and_registries_exist(kind: str, files: str, registries: str) -> None:
    paths = [text for text in re.findall(r"`([^`]+)`", files) if "/" in text]
    assert paths
    for path in paths:
        target = REPOSITORY / path
        assert (target.parent if "NAME" in target.name else target).exists(), f"{kind}: {path}"
    registered = re.findall(r"`(\w+)` in `([^`]+)`", registries)
    assert registered or "README.md" in registries
    for name, path in registered:
        assert name in names(REPOSITORY / path), f"{kind}: {name} in {path}"
