"""A release has one version everywhere, a section of the changelog, upgrade notes and a tag of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts import release

REPOSITORY = Path(__file__).parents[2]
CHANGES = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A size.\n\n## 0.0.9 - 2026-10-01\n\n- First.\n"
NOTES = "# How do I upgrade?\n\n## 9.9.9\n\nNothing.\n"


def commit(root: Path) -> None:
    """Commit all files."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run(["git", "add", "--all"], cwd=root, check=True)
    subprocess.run(["git", *identity, "commit", "--quiet", "--allow-empty", "-m", "Release"], cwd=root, check=True)


def write_sboms(root: Path, version: str) -> None:
    """Write SBOMs with nothing but a version."""
    for package in release.PACKAGES:
        document = {"metadata": {"component": {"version": version}}}
        (root / package / "sbom.cdx.json").write_text(json.dumps(document))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with the packages' settings, changes and upgrade notes."""
    for name in release.PROJECT_FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / release.CHANGELOG).write_text(CHANGES)
    (tmp_path / release.UPGRADE_NOTES).parent.mkdir(parents=True)
    (tmp_path / release.UPGRADE_NOTES).write_text(NOTES)
    write_sboms(tmp_path, "9.9.9")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def test_prepared_release_has_no_problems(root: Path) -> None:
    release.prepare(root, "9.9.9", "2026-12-01")
    commit(root)

    assert [*release.list_problems(root)] == []
    changelog = (root / release.CHANGELOG).read_text()
    assert "## Unreleased\n\n## 9.9.9 - 2026-12-01\n\n### Added\n\n- A size.\n" in changelog
    settings = (root / "components" / "pyproject.toml").read_text()
    assert '"lakewright-engine[s3,zstd]==9.9.9"' in settings
    assert '"pulumi>=' in settings


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("spark/pyproject.toml", 'version = "9.9.9"', 'version = "9.9.8"', "spark/pyproject.toml: expected version"),
        ("components/pyproject.toml", "lakewright-sandbox==9.9.9", "lakewright-sandbox==9.9.8", "found 9.9.8, 9.9.9"),
        (release.CHANGELOG, "## Unreleased\n", "## Unreleased\n\n- More.\n", "changes are below Unreleased"),
        (release.CHANGELOG, "## 9.9.9 - ", "## 9.9.7 - ", "expected 9.9.9 as the last release, found 9.9.7"),
        (release.UPGRADE_NOTES, "## 9.9.9", "## 9.9.7", "expected a section `## 9.9.9`"),
        ("engine/sbom.cdx.json", "9.9.9", "9.9.8", "`make sboms` writes it"),
    ],
    ids=["version", "pin", "unreleased", "changelog", "notes", "sbom"],
)
def test_each_difference_is_a_problem(root: Path, file: str, old: str, new: str, problem: str) -> None:
    release.prepare(root, "9.9.9", "2026-12-01")
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new, 1))
    commit(root)

    (sentence,) = release.list_problems(root)

    assert problem in sentence


def test_uncommitted_files_and_a_used_tag_are_problems(root: Path) -> None:
    release.prepare(root, "9.9.9", "2026-12-01")
    commit(root)
    subprocess.run(["git", "tag", "v9.9.9"], cwd=root, check=True)
    assert [*release.list_problems(root)] == []
    commit(root)
    (root / "left.txt").write_text("")

    dirty, used = release.list_problems(root)

    assert dirty == "git: expected no uncommitted files, found 1"
    assert "the tag v9.9.9 is another commit" in used


@pytest.mark.parametrize(
    ("version", "reason"),
    [("1.0", "three numbers"), ("v1.0.0", "three numbers"), ("0.0.9", "above 0.0.9"), ("0.0.10", "")],
)
def test_version_has_to_be_newer(root: Path, version: str, reason: str) -> None:
    if not reason:
        release.prepare(root, version, "2026-12-01")
        assert release.read_version(root / "pyproject.toml") == version
        return
    with pytest.raises(release.ReleaseError, match=reason):
        release.prepare(root, version, "2026-12-01")


def test_release_without_changes_is_refused(root: Path) -> None:
    release.prepare(root, "0.1.0", "2026-12-01")

    with pytest.raises(release.ReleaseError, match="expected changes"):
        release.prepare(root, "0.2.0", "2026-12-02")


def test_packages_of_this_repository_have_one_version() -> None:
    versions = {release.read_version(REPOSITORY / name) for name in release.PROJECT_FILES}

    assert len(versions) == 1
