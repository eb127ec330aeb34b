"""`scripts/commit_message.py` checks the messages of commits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SUBJECT = "Refuse empty page tokens on management lists"


def check(message: str, folder: Path) -> tuple[int, str]:
    (folder / "message").write_text(message)
    command = [sys.executable, str(REPOSITORY / "scripts" / "commit_message.py"), str(folder / "message")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "message",
    [
        f"{SUBJECT}\n\nLakekeeper refuses them, too.\n",
        f"{SUBJECT}\n\nLakekeeper refuses them, too.\n# Please enter the commit message.\n#\n",
        "Pass one context\n\nProcess-wide objects leak between runs.",
        "Merge branch 'main' into work",
        "fixup! Refuse",
    ],
)
def test_valid_messages(message: str, tmp_path: Path) -> None:
    assert check(message, tmp_path) == (0, "")


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (f"{SUBJECT} {'and' * 20}\n\nWhy.", "at most 72"),
        (f"{SUBJECT}.\n\nWhy.", "full stop"),
        ("refuse empty tokens\n\nWhy.", "capital letter"),
        ("Refused empty tokens\n\nWhy.", "imperative"),
        ("Refuses empty tokens\n\nWhy.", "imperative"),
        ("Refusing empty tokens\n\nWhy.", "imperative"),
        (f"{SUBJECT}\nWhy.", "second line"),
        (SUBJECT, "no body"),
        (f"{SUBJECT}\n\n# A comment of git.\n", "no body"),
        ("# Only comments\n", "empty"),
    ],
)
def test_invalid_messages(message: str, problem: str, tmp_path: Path) -> None:
    code, errors = check(message, tmp_path)
    assert code == 1
    assert problem in errors


def test_pre_commit_runs_the_check() -> None:
    settings = (REPOSITORY / ".pre-commit-config.yaml").read_text()
    assert "default_install_hook_types: [pre-commit, commit-msg, pre-push]" in settings
    assert "scripts/commit_message.py" in settings
