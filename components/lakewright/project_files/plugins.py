"""The provider plugins that a stack needs, and the plugins that the Pulumi CLI lacks."""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.project_files.stack_files import read_text

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject
    from lakewright_engine.state.backend import StateBackend


PROVIDER_TYPE = "pulumi:providers:"
BUNDLED = ("pulumi", "pulumi-python", "policy")
"""Providers that come with the CLI and the SDK, and SDK packages without a provider."""


def find_needed_plugins(project: PulumiProject, stack: str) -> set[str]:
    """Return the plugins of the providers in the stack's state, and of the SDKs that the program imports."""
    return (_find_in_state(project, stack) | _find_imported(project)) - {*BUNDLED}


def find_missing_plugins(plugins: set[str]) -> list[str]:
    """Return the plugins that the Pulumi CLI would not find on this machine."""
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"
    return sorted(
        name
        for name in find_unattached_plugins(plugins)
        if shutil.which(f"pulumi-resource-{name}") is None and not any(home.glob(f"resource-{name}-v*/"))
    )


def find_unattached_plugins(plugins: set[str]) -> list[str]:
    """Return the plugins that PULUMI_DEBUG_PROVIDERS does not name."""
    return sorted(
        plugins - {entry.partition(":")[0] for entry in os.environ.get("PULUMI_DEBUG_PROVIDERS", "").split(",")}
    )


def _find_in_state(project: PulumiProject, stack: str) -> set[str]:
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - only where an engine is to be chosen

    try:
        backend: StateBackend = project.backend()
        if not backend.exists(project.name, stack):
            return set()
        resources: list[dict[str, str]] = backend.export(project.name, stack)["deployment"].get("resources") or []
    except EngineError:  # another kind of backend, which only the CLI can read
        return set()
    types = (resource["type"] for resource in resources)
    return {type_.removeprefix(PROVIDER_TYPE) for type_ in types if type_.startswith(PROVIDER_TYPE)}


def _find_imported(project: PulumiProject) -> set[str]:
    """Return the `pulumi_*` packages that the program imports, and installed dependencies of its imported packages."""
    program = project.program
    files = [program] if program.is_file() else sorted(program.glob("*.py"))
    modules = {module for file in files for module in parse_imports(file)}
    plugins = {module.removeprefix("pulumi_") for module in modules if module.startswith("pulumi_")}
    installed = {_normalize_name(entry.metadata["Name"]): entry for entry in _list_installed(project)}
    for name, distribution in installed.items():
        if name.replace("-", "_") in modules:
            # An extra's package is needed only where it is installed.
            plugins |= {plugin for plugin in _list_required(distribution) if f"pulumi-{plugin}" in installed}
    return {name.replace("_", "-") for name in plugins}


def parse_imports(file: Path) -> set[str]:
    """Return the top-level modules that a Python file imports; none if it cannot be parsed."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError):  # the run reports it
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _list_installed(project: PulumiProject) -> Iterable[Distribution]:
    if project.virtualenv is None:
        return distributions()
    folders = [str(folder) for folder in project.virtualenv.glob("lib/python*/site-packages")]
    return distributions(path=folders)


def _list_required(distribution: Distribution) -> set[str]:
    names = (
        _normalize_name(re.split(r"[^A-Za-z0-9._-]", requirement)[0]) for requirement in distribution.requires or []
    )
    return {name.removeprefix("pulumi-") for name in names if name.startswith("pulumi-")}


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


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
