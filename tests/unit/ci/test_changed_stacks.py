"""Which stacks a pull request changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from lakewright.ci.changed_files import GitError, list_changed_files
from lakewright.ci.changed_stacks import find_changed_stacks


def test_only_changed_tenants_are_selected() -> None:
    stacks = find_changed_stacks(
        ["tenants/Pulumi.acme.yaml", "docs/guides/ci.md", "README.md"], ["tenants/Pulumi.old.yaml"], "tenants"
    )

    assert stacks.options == ["--stack", "acme"]
    assert stacks.removed == ("old",)


@pytest.mark.parametrize(
    "file", ["environments/production.yaml", "Pulumi.yaml", "components/a.py", "requirements.lock"]
)
def test_shared_files_select_all_tenants(file: str) -> None:
    stacks = find_changed_stacks(["tenants/Pulumi.acme.yaml", file], [], "tenants")

    assert stacks.options == ["--stack", "*"]
    assert stacks.cause_for_all == file


def test_names_that_are_no_stack_select_all() -> None:
    assert find_changed_stacks(["tenants/Pulumi.a b;rm.yaml"], [], "tenants").options == ["--stack", "*"]
    assert find_changed_stacks(["elsewhere/Pulumi.acme.yaml"], [], "tenants").options == ["--stack", "*"]


def test_documentation_selects_nothing() -> None:
    assert (
        find_changed_stacks(["docs/guides/ci.md", "CHANGELOG.md", ".github/workflows/drift.yml"], [], "tenants").options
        == []
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with two commits: one tenant is added, one changed, one removed."""
    (tmp_path / "tenants").mkdir()
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(tmp_path)]
    subprocess.run([*run, "init", "--quiet"], check=True)
    for name in ("kept", "gone"):
        (tmp_path / "tenants" / f"Pulumi.{name}.yaml").write_text("config: {}\n")
    for number in (1, 2):
        subprocess.run([*run, "add", "--all"], check=True)
        subprocess.run([*run, "commit", "--quiet", "--message", str(number)], check=True)
        (tmp_path / "tenants" / "Pulumi.new one.yaml").write_text("config: {}\n")
        (tmp_path / "tenants" / "Pulumi.kept.yaml").write_text("config: {a: b}\n")
        (tmp_path / "tenants" / "Pulumi.gone.yaml").unlink(missing_ok=True)
    return tmp_path


def test_files_of_a_branch_with_any_name(checkout: Path) -> None:
    files = list_changed_files(checkout, "HEAD^1")

    assert files.changed == ("tenants/Pulumi.kept.yaml", "tenants/Pulumi.new one.yaml")
    assert files.removed == ("tenants/Pulumi.gone.yaml",)


@pytest.mark.parametrize("base", ["no-such-commit", "--output=/tmp/x"])
def test_unknown_commit_is_refused(checkout: Path, base: str) -> None:
    with pytest.raises(GitError, match="expected a commit of this checkout"):
        list_changed_files(checkout, base)
