"""Find out whether an imported file of this process was changed, added or removed since."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[int, int, int] | None
"""Modification time in nanoseconds, size and inode of a file; None for a file that does not exist."""

_MARGIN_SECONDS = 2
"""Clock steps of file systems that count in whole seconds."""


class Freshness:
    """Stamps of the interpreter, of all imported files and of the folders that modules are looked up in."""

    def __init__(self, began: float) -> None:
        """Start with nothing.

        Args:
            began: When the first of the modules was imported, in seconds since the epoch.
        """
        self._began_ns = int((began - _MARGIN_SECONDS) * 1e9)
        self._stamps: dict[str, Stamp] = {}

    def stamp_imports(self) -> None:
        """Stamp the files that were imported since the last call."""
        for file in _list_files():
            if file not in self._stamps:
                self._stamps[file] = _read_stamp(file)

    def find_change(self) -> str:
        """Return the first file that differs from its imported version; empty if no file differs."""
        for file, stamp in self._stamps.items():
            if _read_stamp(file) != stamp or (stamp is not None and stamp[0] >= self._began_ns):
                return file
        return ""


def _list_files() -> Iterable[str]:
    yield sys.executable
    yield os.path.realpath(sys.executable)
    yield str(Path(sys.prefix, "pyvenv.cfg"))
    for entry in sys.path:
        yield entry or "."
        yield from (str(file) for file in Path(entry or ".").glob("*.pth"))
    for module in [*sys.modules.values()]:
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield file


def _read_stamp(file: str) -> Stamp:
    try:
        status = os.stat(file)  # noqa: PTH116 - thousands of files at every command
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
