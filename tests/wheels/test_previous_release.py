"""A stack of the previous release continues with this version: its project is converted, its state loads."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wheel_project import REPOSITORY, UserProject, build_wheels, install_beside_tests


def find_previous_release() -> str:
    """Return the tag of the newest release before this commit, or $PREVIOUS_RELEASE; empty if there is none."""
    if reference := os.environ.get("PREVIOUS_RELEASE"):
        return reference
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^"]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture(scope="module")
def previous_wheels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    reference = find_previous_release()
    if not reference:
        pytest.skip("there is no earlier release; PREVIOUS_RELEASE names another commit")
    folder = tmp_path_factory.mktemp("previous")
    sources = folder / "sources"
    git = ["git", "-C", REPOSITORY, "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", sources, reference], check=True)
    yield build_wheels(folder / "wheels", sources)
    subprocess.run([*git, "remove", "--force", sources], check=True)


@pytest.mark.timeout(900)
def test_stack_of_the_previous_release_continues(
    wheels: dict[str, Path], previous_wheels: dict[str, Path], tmp_path: Path
) -> None:
    install_beside_tests(previous_wheels, environment := tmp_path / ".venv")
    project = UserProject(tmp_path / "lake", environment)
    project.run("lakewright", "init", str(project.folder), "--cloud", "sandbox", folder=tmp_path)
    (project.folder / ".venv").symlink_to(environment)
    project.run("lakewright", "sandbox", "up")
    try:
        project.declare_tenant()
        project.run("lakewright", "up", "acme", "--yes", "--engine", "embedded")

        install_beside_tests(wheels, environment)
        project.run("lakewright", "upgrade", "--yes")

        project.run("lakewright", "spec", "validate")
        assert "lakekeeper:Warehouse" in project.run("lakewright", "state", "ls", "acme")
        unchanged = ("acme", "--refresh", "--expect-no-changes", "--engine", "embedded")
        project.run("lakewright", "preview", *unchanged)
        assert "no drift" in project.run("lakewright", "drift", "acme")
        project.run("lakewright", "destroy", "acme", "--yes", "--engine", "embedded")
    finally:
        project.run("lakewright", "sandbox", "down", "--purge")
