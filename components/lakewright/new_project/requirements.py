"""The requirements of a project: Lakewright with extras, and the versions of all packages that it was tried with.

`make lock` writes the versions. Versions of installed packages would not do: `uvx lakewright init` has few of them, and
the newest of those may not go with what the extras need.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

CONSTRAINTS = "constraints.txt"
HEAD = "# Written by Lakewright: the versions that it was tried with. `lakewright upgrade` writes them again.\n"
"""First line of both files, by which `lakewright upgrade` knows them."""


def build_requirements(extras: Iterable[str]) -> str:
    """Return the text of requirements.txt: Lakewright with extras, within the constraints beside it."""
    return f"{HEAD}-c {CONSTRAINTS}\n{pin_lakewright(extras)}\n"


def pin_lakewright(extras: Iterable[str] = ()) -> str:
    """Return the requirement of the installed version of Lakewright with extras."""
    names = ",".join(sorted(extras))
    return f"lakewright{f'[{names}]' if names else ''}=={version('lakewright')}"


def build_constraints() -> str:
    """Return the text of constraints.txt: a version of each package that any extra may install."""
    return HEAD + Path(__file__).with_name(CONSTRAINTS).read_text(encoding="utf-8")
