"""Collect sources: run the commands whose JSON a report shows, and read files that other jobs wrote."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from lakewright.report.errors import ReportSourceError
from lakewright.report.sources import ReportSource, SourceKind, read_source

DEFAULT_KINDS = tuple(kind for kind in SourceKind if kind is not SourceKind.VERIFY)
"""Kinds that a report collects by default: their commands only read. `fleet verify` writes probe tables."""
_CONCURRENT_COMMANDS = 2

Progress = Callable[[str], None]


def collect_sources(
    kinds: Sequence[SourceKind], selection: Sequence[str], folder: Path, progress: Progress
) -> list[ReportSource]:
    """Run the commands of some kinds, and return their documents. A command that fails is a source with an error.

    Args:
        kinds: The kinds.
        selection: The options that select stacks, such as `--all`.
        folder: The folder of the project.
        progress: Called with a line before each command.
    """

    def collect(kind: SourceKind) -> ReportSource:
        command = f"lakewright {' '.join(kind.command)}"
        progress(f"running `{command}`")
        return _run_command(kind, [*kind.command, *selection, "--json"], folder)

    with ThreadPoolExecutor(_CONCURRENT_COMMANDS, thread_name_prefix="source") as pool:
        return list(pool.map(collect, kinds))


def _run_command(kind: SourceKind, arguments: Sequence[str], folder: Path) -> ReportSource:
    """Return the document that a command prints. Its exit code says only what the document has, such as drift."""
    command = [sys.executable, "-P", "-m", "lakewright.cli", *arguments]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    origin = f"lakewright {' '.join(arguments)}"
    try:
        return replace(read_source(done.stdout, origin), is_collected=True)
    except ReportSourceError:
        last = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        return ReportSource(kind, origin, error=last.removeprefix("error: "), is_collected=True)


def read_files(paths: Sequence[Path]) -> list[ReportSource]:
    """Return the documents in files, and in the `.json` files of folders.

    Raises:
        ReportSourceError: A file cannot be read, or is not the JSON of a command that the report shows.
    """
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not files:
        raise ReportSourceError(f"--from {', '.join(map(str, paths))}: expected JSON files, found none")
    return [_read_file(file) for file in files]


def _read_file(file: Path) -> ReportSource:
    try:
        return read_source(file.read_bytes(), str(file))
    except OSError as error:
        raise ReportSourceError(f"{file}: expected a file with JSON ({error.strerror})") from None
