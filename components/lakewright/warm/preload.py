"""Import ahead the modules of commands: the command line, the engine, and the imports of earlier commands.

Only Lakewright, its dependencies and the standard library are imported ahead. Other imports of a program may do
anything when it is imported, so each run imports it again, with its own environment.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import threading
from collections.abc import Generator, Iterable
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

FIRST = (
    "lakewright.cli.app",
    "lakewright.cli.commands.operations",
    "lakewright.cli.engines.choice",
    "lakewright.tenant.program",
    "lakewright.tenant.tenant",
    "lakewright_engine.engine",
    "lakewright_engine.display.lines",
    "lakewright_engine.processes.forkserver_host",
    "pulumi.dynamic",
    "pulumi.runtime",
    "lakewright_sandbox.providers.protocol",
    "lakewright_sandbox.providers.aws.package",
    "lakewright_sandbox.providers.kubernetes.package",
)
"""Modules that every command imports. The warm process learns other modules."""

_ROOTS = ("lakewright", "lakewright-engine", "lakewright-sandbox")
_NEVER = {"__main__", "antigravity", "curses", "idlelib", "readline", "rlcompleter", "this", "tkinter", "turtle"}
"""Modules of the standard library that act on the terminal or print when they are imported."""

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def find_importable_packages() -> set[str]:
    """Return the top-level names that may be imported ahead."""
    pending, resolved = [*_ROOTS], set[str]()
    while pending:
        name = _normalize_name(pending.pop())
        if name in resolved:
            continue
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        resolved.add(name)
        # Extras of Lakewright, such as pulumi-aws, are used by its own modules.
        pending += [
            re.split(r"[^A-Za-z0-9._-]", text)[0] for text in requires if name in _ROOTS or "extra ==" not in text
        ]
    ours = {
        top
        for top, names in packages_distributions().items()
        if any(_normalize_name(name) in resolved for name in names)
    }
    return (ours | set(sys.stdlib_module_names) | {name.replace("-", "_") for name in _ROOTS}) - _NEVER


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class Preloader:
    """Imports modules, and keeps the names of the environment variables that were read meanwhile."""

    def __init__(self) -> None:
        """Find out which packages may be imported ahead."""
        self.variables: set[str] = set()
        self._packages = find_importable_packages()

    def load(self, name: str) -> bool:
        """Import a module, if it may be imported ahead and exists. Return whether that imported anything."""
        if name in sys.modules or not _NAME.fullmatch(name) or name.rpartition(".")[2] == "__main__":
            return False
        if name.partition(".")[0] not in self._packages:
            return False
        before = len(sys.modules)
        with self._record_variables():
            try:
                importlib.import_module(name)
            except Exception as error:  # noqa: BLE001 - the command that needs it reports it
                print(f"not imported ahead: {name}: {type(error).__name__}: {error}", flush=True)
        return len(sys.modules) > before

    @contextlib.contextmanager
    def _record_variables(self) -> Generator[None]:
        kind: Any = type(os.environ)
        get_item = kind.__getitem__

        def record_and_get(environment: Any, name: str) -> str:
            self.variables.add(name)
            return get_item(environment, name)

        kind.__getitem__ = record_and_get
        try:
            yield
        finally:
            kind.__getitem__ = get_item


class ImportReports:
    """Finds no module: it reports the name of each module that a forked child imports, through a pipe."""

    def __init__(self, descriptor: int) -> None:
        """Report to the pipe `descriptor`, but not the imports of this process itself."""
        self._descriptor = descriptor
        self._own = os.getpid()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - the protocol's
        """Report a name to the process that waits. The import continues with the next finder."""
        if os.getpid() != self._own:
            with contextlib.suppress(OSError):  # that process has ended, or has enough to do
                os.write(self._descriptor, name.encode() + b"\n")


def read_names(file: Path) -> list[str]:
    """Return the names of modules in a file; none where there is no such file."""
    try:
        return file.read_text(encoding="utf-8").split()
    except OSError:
        return []


def write_names(file: Path, names: Iterable[str]) -> None:
    """Replace a file of names of modules."""
    new = file.with_suffix(".new")
    new.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    new.replace(file)


def is_single_threaded() -> bool:
    """Return whether this process may be forked: a thread of a library would be missing in the child."""
    return threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208
