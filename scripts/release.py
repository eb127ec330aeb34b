"""Prepare and check a release: `python scripts/release.py prepare VERSION`, then `python scripts/release.py check`.

`prepare` writes the version of all packages, and moves the changes of "Unreleased" below a heading of the version.
`check` compares versions, changelog, upgrade notes, SBOMs and the git tag. Exit status 1 when something does not fit.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("components", "engine", "sandbox", "spark")
PROJECT_FILES = ("pyproject.toml", *(f"{package}/pyproject.toml" for package in PACKAGES))
CHANGELOG = "CHANGELOG.md"
UPGRADE_NOTES = "docs/guides/upgrading.md"
_VERSION = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
_PIN = re.compile(r'("lakewright(?:-\w+)?(?:\[[\w,]+\])?)==([^"]+)"')
_NUMBER = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_UNRELEASED = "## Unreleased\n"


class ReleaseError(Exception):
    """A release cannot be prepared. The message says why."""


def prepare(root: Path, version: str, date: str) -> None:
    """Write the version of all packages, and the heading of the changelog.

    Args:
        root: Folder of the repository.
        version: The new version, such as `0.2.0`.
        date: Day of the release, such as `2026-11-24`.

    Raises:
        ReleaseError: It is not a version, or older than the last, or nothing has changed.
    """
    if not _NUMBER.fullmatch(version):
        raise ReleaseError(f"{version}: expected a version of three numbers, such as 0.2.0")
    changelog = (root / CHANGELOG).read_text(encoding="utf-8")
    releases = list_releases(changelog)
    if releases and _to_numbers(version) <= _to_numbers(releases[0]):
        raise ReleaseError(f"{version}: expected a version above {releases[0]}, the last release of {CHANGELOG}")
    before, marker, after = changelog.partition(_UNRELEASED)
    if not marker or not after.partition("\n## ")[0].strip():
        raise ReleaseError(f"{CHANGELOG}: expected changes below `{_UNRELEASED.strip()}`")
    (root / CHANGELOG).write_text(f"{before}{marker}\n## {version} - {date}\n{after}", encoding="utf-8")
    for name in PROJECT_FILES:
        text = (root / name).read_text(encoding="utf-8")
        text = _PIN.sub(rf'\1=={version}"', _VERSION.sub(f'version = "{version}"', text, count=1))
        (root / name).write_text(text, encoding="utf-8")


def list_problems(root: Path) -> Iterator[str]:
    """Yield what keeps the repository from being released, a sentence each.

    Args:
        root: Folder of the repository.
    """
    versions = {name: read_version(root / name) for name in PROJECT_FILES}
    version = versions["components/pyproject.toml"]
    for name, file_version in versions.items():
        if file_version != version:
            yield f"{name}: expected version {version}, found {file_version}"
        pins = {pin for _, pin in _PIN.findall((root / name).read_text(encoding="utf-8"))}
        if pins - {version}:
            yield f"{name}: expected packages of Lakewright in version {version}, found {', '.join(sorted(pins))}"
    for package in PACKAGES:
        bill_version = json.loads((root / package / "sbom.cdx.json").read_text())["metadata"]["component"]["version"]
        if bill_version != version:
            yield f"{package}/sbom.cdx.json: expected version {version}, found {bill_version}; `make sboms` writes it"
    changelog = (root / CHANGELOG).read_text(encoding="utf-8")
    if changelog.partition(_UNRELEASED)[2].partition("\n## ")[0].strip():
        yield f"{CHANGELOG}: changes are below Unreleased; `python scripts/release.py prepare VERSION` moves them"
    if (releases := list_releases(changelog))[:1] != [version]:
        yield f"{CHANGELOG}: expected {version} as the last release, found {', '.join(releases[:1]) or 'none'}"
    notes = root / UPGRADE_NOTES
    if not notes.is_file() or f"\n## {version}\n" not in notes.read_text(encoding="utf-8"):
        yield f"{UPGRADE_NOTES}: expected a section `## {version}` with what users have to do"
    yield from _list_git_problems(root, version)


def list_releases(changelog: str) -> list[str]:
    """Return the released versions of a changelog, the newest first."""
    return re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d{2}-\d{2}$", changelog, re.MULTILINE)


def read_version(file: Path) -> str:
    """Return the version in a pyproject.toml."""
    match = _VERSION.search(file.read_text(encoding="utf-8"))
    return match[1] if match else "none"


def _list_git_problems(root: Path, version: str) -> Iterator[str]:
    if status := _run_git(root, "status", "--porcelain"):
        yield f"git: expected no uncommitted files, found {len(status.splitlines())}"
    tagged = _run_git(root, "rev-parse", "--verify", "--quiet", f"refs/tags/v{version}^{{commit}}")
    if tagged and tagged != _run_git(root, "rev-parse", "HEAD"):
        yield f"git: the tag v{version} is another commit, {tagged[:12]}; a released version never changes"


def _run_git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False).stdout.strip()


def _to_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    match arguments:
        case ["prepare", version]:
            try:
                prepare(REPOSITORY, version, datetime.now(tz=UTC).date().isoformat())
            except ReleaseError as error:
                print(error, file=sys.stderr)
                return 1
            print(f"Wrote {version}. Next: `make sboms`, the section of {UPGRADE_NOTES}, a commit, `make release`")
            return 0
        case ["check"]:
            problems = [*list_problems(REPOSITORY)]
            print("\n".join(problems), file=sys.stderr)
            return 1 if problems else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
