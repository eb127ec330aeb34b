"""A forge, and the variables of a job on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ci.fake_forge import REPOSITORY, TOKEN, FakeForge, serve_forge


@pytest.fixture
def forge() -> Iterator[FakeForge]:
    """A running forge without comments, issues or runs."""
    with serve_forge() as served:
        yield served


@pytest.fixture
def github_job(forge: FakeForge, tmp_path: Path) -> dict[str, str]:
    """Variables of a job of GitHub Actions for pull request 7."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"number": 7, "pull_request": {"number": 7, "head": {"sha": "abc123def4567"}}}))
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": forge.url,
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": "99",
        "GITHUB_SHA": "0123456789",
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }


@pytest.fixture
def gitlab_job(forge: FakeForge) -> dict[str, str]:
    """Variables of a job of GitLab CI for merge request 7."""
    forge.user = {"id": 5, "login": "project_42_bot", "username": "project_42_bot"}
    return {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": forge.url,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_COMMIT_SHA": "abc123def4567",
        "CI_PIPELINE_URL": "https://gitlab.example/pipelines/9",
        "GITLAB_TOKEN": TOKEN,
    }
