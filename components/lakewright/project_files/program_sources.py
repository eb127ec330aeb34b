"""Read the sources of a project's program, without running it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from lakewright.project_files.plugins import parse_imports
from lakewright.project_files.stack_files import read_text

_LAKEWRIGHT = "lakewright"


def reads_specs(program: Path) -> bool:
    """Return whether a program in Python may read tenants' specs.

    It cannot if `lakewright` is nowhere in its files, and they import nothing but Python's own modules, the SDKs of
    Pulumi and each other. A program that imports other packages may read specs in another package.

    Args:
        program: File or folder of the program.
    """
    files = [program] if program.is_file() else [*_find_sources(program)]
    if any(_LAKEWRIGHT in read_text(file) for file in files):
        return True
    modules = {module for file in files for module in parse_imports(file)}
    local = {file.stem for file in files} | {file.parent.name for file in files}
    foreign_modules = modules - sys.stdlib_module_names - local
    return any(module != "pulumi" and not module.startswith("pulumi_") for module in foreign_modules)


def _find_sources(folder: Path) -> Iterator[Path]:
    """Yield the Python files of a program, without the files of its environment."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix == ".py":
            yield path
        elif path.is_dir() and (path / "__init__.py").is_file():
            yield from path.rglob("*.py")
