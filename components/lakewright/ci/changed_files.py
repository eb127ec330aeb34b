"""The files that a branch changes, from git."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from lakewright.ci.errors import CiError


class GitError(CiError):
    """Git does not know a commit, or is not there."""


@dataclass(frozen=True)
class ChangedFiles:
    """Paths relative to a folder."""

    changed: tuple[str, ...]
    removed: tuple[str, ...]


def changed_files(folder: Path, base: str) -> ChangedFiles:
    """Return the files within a folder that differ between a commit and HEAD. Raises GitError."""
    command = ["git", "diff", "--name-status", "--no-renames", "--relative", "-z", "--end-of-options", base, "HEAD"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise GitError(f"expected `git` on the PATH ({error.strerror})") from None
    if done.returncode:
        said = " ".join(done.stderr.split())[:300]
        raise GitError(
            f"commit `{base}`: expected one that this checkout has, but git says: {said}."
            " Check out more commits (`fetch-depth: 2` on GitHub, `GIT_DEPTH: 0` on GitLab)"
        )
    words = done.stdout.split("\0")
    pairs = list(zip(words[::2], words[1::2], strict=False))
    return ChangedFiles(
        tuple(path for mark, path in pairs if mark != "D"), tuple(path for mark, path in pairs if mark == "D")
    )
