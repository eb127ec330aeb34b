"""Each package has one exception tree, which the docstring of one `errors.py` draws."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOTS = {
    "components/lakewright/errors.py": "LakewrightError",
    "engine/lakewright_engine/model/errors.py": "EngineError",
    "sandbox/lakewright_sandbox/errors.py": "SandboxError",
    "spark/lakewright_spark/errors.py": "LakewrightSparkError",
}
"""The root of each package's exceptions, by the file that draws the tree."""
OUTSIDE = {"DeploymentStoppedError": "code that reports an EngineError as the failure of a resource must let it pass"}
"""Exceptions that are not below the root of their package, with the reason."""
ENTRY = re.compile(r"^((?:[│ ] {3})*[├└]── |)(\w+Error)\b", re.MULTILINE)
"""A line of a drawn tree. Each level is indented by four characters."""
FOREIGN = re.compile(r"\w*(Error|Exception|Warning|Exit|Abort|Interrupt)")
"""Names of exceptions of Python and of other packages."""


def find_exceptions(package: Path) -> dict[str, list[str]]:
    """Return the bases of the exception classes of a package, by name. Each class name is used once.

    It reads the sources: importing every module of a package would change the process of other tests.
    """
    bases = {
        node.name: [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    }

    def is_exception(name: str) -> bool:
        return any(map(is_exception, bases[name])) if name in bases else bool(FOREIGN.fullmatch(name))

    return {name: parents for name, parents in bases.items() if is_exception(name)}


def is_below(name: str, root: str, bases: dict[str, list[str]]) -> bool:
    return name == root or any(is_below(parent, root, bases) for parent in bases.get(name, []))


def read_tree(docstring: str) -> dict[str, str]:
    """Return the parents of the exceptions in a drawn tree, by name."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for indent, name in ENTRY.findall(docstring):
        path = [*path[: len(indent) // 4], name]
        if indent:
            parents[name] = path[-2]
    return parents


@pytest.fixture(params=ROOTS.items(), ids=lambda item: item[1])
def tree(request: pytest.FixtureRequest) -> tuple[Path, str, dict[str, list[str]]]:
    """The file that draws a tree, its root, and the exceptions of the package."""
    path, root = request.param
    return REPOSITORY / path, root, find_exceptions(REPOSITORY.joinpath(*Path(path).parts[:2]))


def test_every_exception_is_below_the_root(tree: tuple[Path, str, dict[str, list[str]]]) -> None:
    _, root, bases = tree
    assert len(bases) > 10
    assert [name for name in bases if not is_below(name, root, bases) and name not in OUTSIDE] == []


def test_the_tree_is_drawn_as_it_is(tree: tuple[Path, str, dict[str, list[str]]]) -> None:
    file, root, bases = tree
    drawn = read_tree(ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "")
    assert sorted(drawn) == sorted(name for name in bases if name != root and name not in OUTSIDE)
    assert {name: parent for name, parent in drawn.items() if parent not in bases[name]} == {}
