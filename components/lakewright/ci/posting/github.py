"""GitHub: comments on pull requests, issues, and the summary of a job.

GitHub Actions sets the variables: https://docs.github.com/actions/reference/workflows-and-actions/variables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from lakewright.ci.errors import ForbiddenPostError, PostError, SettingError
from lakewright.ci.posting.forge import PostResult, require_variable
from lakewright.ci.posting.http import Entry, ForgeApi

_API_VERSION = "2022-11-28"


class GitHub:
    """The repository and pull request of a job of GitHub Actions."""

    title = "GitHub"

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the variables of the job. Raises SettingError if a variable is missing."""
        token = require_variable(environ, "GITHUB_TOKEN", "set `env: GITHUB_TOKEN: ${{ github.token }}` in the step")
        self._environ = environ
        self.repository = require_variable(environ, "GITHUB_REPOSITORY", "run this in GitHub Actions")
        self._api = ForgeApi(
            self.title,
            environ.get("GITHUB_API_URL") or "https://api.github.com",
            {
                "accept": "application/vnd.github+json",
                "authorization": f"Bearer {token}",
                "x-github-api-version": _API_VERSION,
            },
        )

    def post_comment(self, marker: str, body: str) -> PostResult:
        """Create or update the comment. Further comments of this author with the marker are deleted."""
        comments = f"/repos/{self.repository}/issues/{self.read_pull_request()}/comments"
        own_comments = [comment for comment in self._api.list(comments) if self._is_own(comment, marker)]
        for spare in own_comments[1:]:
            self._api.remove(f"/repos/{self.repository}/issues/comments/{spare['id']}")
        if not own_comments:
            return _to_result("created", self._api.send("POST", comments, {"body": body}))
        path = f"/repos/{self.repository}/issues/comments/{own_comments[0]['id']}"
        return _to_result("updated", self._api.send("PATCH", path, {"body": body}))

    def post_issue(self, label: str, title: str, body: str) -> PostResult:
        """Open an issue, or update the open issue."""
        content = {"title": title, "body": body}
        if (issue := self._find_open_issue(label)) is None:
            created = self._api.send("POST", f"/repos/{self.repository}/issues", {**content, "labels": [label]})
            return _to_result("created", created)
        return _to_result("updated", self._api.send("PATCH", self._format_issue_path(issue), content))

    def close_issue(self, label: str, note: str) -> PostResult:
        """Close the open issue after a comment."""
        if (issue := self._find_open_issue(label)) is None:
            return PostResult("unchanged")
        path = self._format_issue_path(issue)
        self._api.send("POST", f"{path}/comments", {"body": note})
        return _to_result("closed", self._api.send("PATCH", path, {"state": "closed", "state_reason": "completed"}))

    def read_pull_request(self) -> int:
        """Return the number of the pull request in the event. Raises SettingError if there is none."""
        event = _read_event(self._environ)
        number = cast(Entry, event.get("pull_request") or {}).get("number") or event.get("number")
        if not isinstance(number, int):
            raise SettingError(
                "expected an event `pull_request`, as a comment needs a pull request; found another event"
            )
        return number

    def find_plans_run(self, commit: str, workflow: str) -> int | None:
        """Return the newest successful run of the workflow for the pull request that a commit merged; None without.

        Only runs of branches of this repository count: a fork can run a changed workflow.
        """
        merged = [
            pull
            for pull in self._api.list(f"/repos/{self.repository}/commits/{commit}/pulls")
            if pull.get("merge_commit_sha") == commit and pull.get("merged_at")
        ]
        for pull in merged:
            runs = self._api.get(
                f"/repos/{self.repository}/actions/workflows/{workflow}/runs",
                head_sha=_read_text(pull, "head", "sha"),
                event="pull_request",
                status="success",
                per_page=100,
            )
            own_runs = [run for run in cast(list[Entry], runs["workflow_runs"]) if self._is_of_this_repository(run)]
            if own_runs:
                return max(int(run["id"]) for run in own_runs)
        return None

    def _is_of_this_repository(self, run: Entry) -> bool:
        return _read_text(run, "head_repository", "full_name") == self.repository

    def _find_open_issue(self, label: str) -> Entry | None:
        path = f"/repos/{self.repository}/issues"
        issues = [entry for entry in self._api.list(path, state="open", labels=label) if "pull_request" not in entry]
        return issues[0] if issues else None

    def _format_issue_path(self, issue: Entry) -> str:
        return f"/repos/{self.repository}/issues/{issue['number']}"

    def _is_own(self, comment: Entry, marker: str) -> bool:
        """Return whether this job wrote a comment. A user can write the marker, too."""
        if not str(comment.get("body") or "").startswith(marker):
            return False
        login = self._look_up_login()
        return _read_text(comment, "user", "login") == login if login else _read_text(comment, "user", "type") == "Bot"

    def _look_up_login(self) -> str | None:
        """Return the user that the token belongs to; None for a token of GitHub Actions or an app."""
        try:
            return str(cast(Entry, self._api.get("/user")).get("login") or "") or None
        except ForbiddenPostError:
            return None


def read_run_url(environ: Mapping[str, str]) -> str:
    """Return the address of the job's run; empty outside GitHub Actions."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, run = (environ.get(name, "") for name in names)
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""


def read_head_commit(environ: Mapping[str, str]) -> str:
    """Return the newest commit of the pull request: GITHUB_SHA is that of a merge that no branch has."""
    pull = _read_event(environ).get("pull_request")
    return _read_text(cast(Entry, pull), "head", "sha") if isinstance(pull, dict) else environ.get("GITHUB_SHA", "")


def append_summary(environ: Mapping[str, str], text: str) -> bool:
    """Append a text to the job's summary. Return whether the job has a summary."""
    summary_path = environ.get("GITHUB_STEP_SUMMARY")
    if not summary_path:
        return False
    with Path(summary_path).open("a", encoding="utf-8") as summary:
        summary.write(text)
    return True


def _read_event(environ: Mapping[str, str]) -> Entry:
    event_path = environ.get("GITHUB_EVENT_PATH")
    if not event_path:
        return {}
    try:
        event: Any = json.loads(Path(event_path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(
            f"GITHUB_EVENT_PATH: expected a JSON file at {event_path} ({type(error).__name__})"
        ) from None
    return cast(Entry, event) if isinstance(event, dict) else {}


def _read_text(entry: Entry, *keys: str) -> str:
    value: Any = entry
    for key in keys:
        value = cast(Entry, value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _to_result(action: str, response: Any) -> PostResult:
    if not isinstance(response, dict):
        raise PostError("GitHub responded with something other than an object. Check GITHUB_API_URL.")
    return PostResult(action, _read_text(cast(Entry, response), "html_url"))
