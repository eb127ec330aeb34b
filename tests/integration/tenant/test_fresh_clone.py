"""The repository as a new user gets it: cloned, set up, and used with plain `pulumi` commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lakewright_sandbox.runtime.state import Sandbox

REPOSITORY = Path(__file__).parents[3]
STACK = "demo"

pytestmark = [
    pytest.mark.pulumi_cli,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs the repository's git history to clone"),
]

Pulumi = Callable[..., str]


@pytest.fixture
def pulumi(tmp_path: Path, sandbox: Sandbox, attached_providers: dict[str, str]) -> Pulumi:
    """Return a function that runs the Pulumi CLI in a fresh clone and returns its output."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
    # `make setup` would install the same packages into `.venv` once more.
    (clone / ".venv").symlink_to(sys.prefix)
    shutil.copy(clone / "demo" / f"Pulumi.{STACK}.yaml", clone / "tenants")
    env = os.environ | attached_providers
    env |= {
        "LAKEWRIGHT_SANDBOX": str(sandbox.dir),
        "PULUMI_BACKEND_URL": tmp_path.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "demo",
    }

    def run(*arguments: str) -> str:
        command = ["pulumi", *arguments, "--stack", STACK, "--non-interactive"]
        completed = subprocess.run(command, cwd=clone, env=env, check=False, capture_output=True, text=True)
        output = completed.stdout + completed.stderr
        assert completed.returncode == 0, output
        return output

    subprocess.run(["pulumi", "stack", "init", STACK], cwd=clone, env=env, check=True, capture_output=True)
    return run


def test_plain_pulumi_verbs_work_on_a_fresh_clone(pulumi: Pulumi) -> None:
    assert "to create" in pulumi("preview")
    assert "created" in pulumi("up", "--yes")
    assert "unchanged" in pulumi("refresh", "--yes", "--expect-no-changes")
    assert "unchanged" in pulumi("preview", "--refresh", "--expect-no-changes")
    assert "deleted" in pulumi("destroy", "--yes")
