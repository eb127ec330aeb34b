"""Each package has one exception tree, which the docstring of one `errors.py` draws."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module

import lakewright.errors
import lakewright_engine.model.errors
import lakewright_sandbox.errors
import lakewright_spark.errors
import pytest
from lakewright.ownership.mark import UnreadableMarkError
from lakewright_engine.model.errors import DeploymentStoppedError

ROOTS: dict[str, type[Exception]] = {
    "lakewright": lakewright.errors.LakewrightError,
    "lakewright_engine": lakewright_engine.model.errors.EngineError,
    "lakewright_sandbox": lakewright_sandbox.errors.SandboxError,
    "lakewright_spark": lakewright_spark.errors.LakewrightSparkError,
}
OUTSIDE: dict[str, dict[type[Exception], str]] = {
    "lakewright_engine": {DeploymentStoppedError: "code that reports an EngineError must let it pass"},
}
"""Exceptions of a package that are not below its root, with the reason."""
ENTRY = re.compile(r"^((?:[│ ] {3})*[├└]── |)(\w+Error)\b", re.MULTILINE)
"""A line of a drawn tree. Each level is indented by four characters."""


def find_exceptions(package: str) -> set[type[BaseException]]:
    """Return the exception classes that the modules of a package define."""
    modules = [info.name for info in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")]
    return {
        value
        for name in modules
        if not name.endswith("__main__")
        for value in vars(import_module(name)).values()
        if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__ == name
    }


def read_tree(docstring: str) -> dict[str, str]:
    """Return the parents of the exceptions in a drawn tree, by name."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for indent, name in ENTRY.findall(docstring):
        path = [*path[: len(indent) // 4], name]
        if indent:
            parents[name] = path[-2]
    return parents


@pytest.mark.parametrize("package", ROOTS)
def test_every_exception_is_below_the_root(package: str) -> None:
    outside = {error for error in find_exceptions(package) if not issubclass(error, ROOTS[package])}
    assert outside == set(OUTSIDE.get(package, {}))


@pytest.mark.parametrize("package", ROOTS)
def test_the_tree_is_drawn_as_it_is(package: str) -> None:
    root = ROOTS[package]
    below = {error for error in find_exceptions(package) if issubclass(error, root)} - {root}
    drawn = read_tree(inspect.getdoc(import_module(root.__module__)) or "")
    assert sorted(drawn) == sorted(error.__name__ for error in below)
    bases = {error.__name__: [base.__name__ for base in error.__bases__] for error in below}
    assert {name: parent for name, parent in drawn.items() if parent not in bases[name]} == {}


def test_an_unreadable_mark_is_also_a_value_error() -> None:
    assert issubclass(UnreadableMarkError, ValueError)
