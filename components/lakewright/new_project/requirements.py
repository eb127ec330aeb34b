"""The pinned requirements of a project: the versions that are installed beside this package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAD = "# Written by Lakewright: the versions that it was tried with. `lakewright upgrade` writes them again.\n"
"""First line of the file, by which `lakewright upgrade` knows it."""


def build_requirements(extras: Iterable[str]) -> str:
    """Return the text of requirements.txt: Lakewright with extras, and a pin for each package that they install.

    A package of an extra that is not installed here has no pin, and pip chooses its version.
    """
    extras = sorted(extras)
    version = distribution("lakewright").version
    pins = _list_pins(Requirement(f"lakewright[{','.join(extras)}]"))
    pins.pop("lakewright")
    lines = [f"lakewright[{','.join(extras)}]=={version}", *(f"{name}=={pins[name]}" for name in sorted(pins))]
    return HEAD + "\n".join(lines) + "\n"


def find_extras(text: str) -> list[str]:
    """Return the extras of `lakewright` in requirements; empty if they do not name it."""
    for line in text.splitlines():
        requirement = line.partition("#")[0].strip()
        if canonicalize_name(requirement.partition("=")[0].partition("[")[0].strip() or "-") == "lakewright":
            return sorted(Requirement(requirement).extras)
    return []


def _list_pins(root: Requirement) -> dict[str, str]:
    """Return the versions of the installed packages that a requirement needs, itself included."""
    pins: dict[str, str] = {}
    visited: set[tuple[str, str]] = set()
    pending = [root]
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *sorted(requirement.extras)):
            if (name, extra) in visited:
                continue
            visited.add((name, extra))
            try:
                pins[name] = distribution(name).version
            except PackageNotFoundError:
                continue
            pending += _list_dependencies(name, extra)
    return pins


def _list_dependencies(name: str, extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an installed package, with an extra or, for an empty name, without one."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        needs_extra = requirement.marker is not None and "extra" in str(requirement.marker)
        if needs_extra != bool(extra):
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement
