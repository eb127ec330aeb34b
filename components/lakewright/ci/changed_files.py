"""The files that a branch changes, from git."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from lakewright.ci.errors import CiError


class GitError(CiError):
    """Git does not know a commit, or is not installed."""


@dataclass(frozen=True)
class ChangedFiles:
    """Paths relative to a folder."""

    changed: tuple[str, ...]
    removed: tuple[str, ...]


def list_changed_files(folder: Path, base: str) -> ChangedFiles:
    """Return the files within a folder that differ between a commit and HEAD. Raises GitError."""
    command = ["git", "diff", "--name-status", "--no-renames", "--relative", "-z", "--end-of-options", base, "HEAD"]
    try:
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise GitError(f"expected `git` on the PATH ({error.strerror})") from None
    if process.returncode:
        message = " ".join(process.stderr.split())[:300]
        raise GitError(
            f"commit `{base}`: expected a commit of this checkout, but git says: {message}."
            " Check out more commits (`fetch-depth: 2` on GitHub, `GIT_DEPTH: 0` on GitLab)"
        )
    fields = process.stdout.split("\0")
    pairs = list(zip(fields[::2], fields[1::2], strict=False))
    return ChangedFiles(
        tuple(path for mark, path in pairs if mark != "D"), tuple(path for mark, path in pairs if mark == "D")
    )
