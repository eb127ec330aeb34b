"""GitHub: comments on pull requests, issues, and the summary of a job.

The variables are those of GitHub Actions: https://docs.github.com/actions/reference/workflows-and-actions/variables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from lakewright.ci.errors import ForbiddenError, PostError, SettingError
from lakewright.ci.posting.forge import Posted, variable
from lakewright.ci.posting.http import Entry, ForgeApi

_API_VERSION = "2022-11-28"


class GitHub:
    """The repository and pull request of a job of GitHub Actions."""

    title = "GitHub"

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the variables of the job. Raises SettingError if one is missing."""
        token = variable(environ, "GITHUB_TOKEN", "set `env: GITHUB_TOKEN: ${{ github.token }}` in the step")
        self._environ = environ
        self.repository = variable(environ, "GITHUB_REPOSITORY", "run this in GitHub Actions")
        self._api = ForgeApi(
            self.title,
            environ.get("GITHUB_API_URL") or "https://api.github.com",
            {
                "accept": "application/vnd.github+json",
                "authorization": f"Bearer {token}",
                "x-github-api-version": _API_VERSION,
            },
        )

    def post_comment(self, marker: str, body: str) -> Posted:
        """Create or update the comment. Further ones of the same author with the marker are deleted."""
        comments = f"/repos/{self.repository}/issues/{self.pull_request()}/comments"
        own = [found for found in self._api.list(comments) if self._is_own(found, marker)]
        for spare in own[1:]:
            self._api.remove(f"/repos/{self.repository}/issues/comments/{spare['id']}")
        if not own:
            return _posted("created", self._api.send("POST", comments, {"body": body}))
        path = f"/repos/{self.repository}/issues/comments/{own[0]['id']}"
        return _posted("updated", self._api.send("PATCH", path, {"body": body}))

    def post_issue(self, label: str, title: str, body: str) -> Posted:
        """Open an issue, or update the one that is open."""
        content = {"title": title, "body": body}
        if (found := self._open_issue(label)) is None:
            created = self._api.send("POST", f"/repos/{self.repository}/issues", {**content, "labels": [label]})
            return _posted("created", created)
        return _posted("updated", self._api.send("PATCH", self._issue_path(found), content))

    def close_issue(self, label: str, note: str) -> Posted:
        """Close the open issue after a comment."""
        if (found := self._open_issue(label)) is None:
            return Posted("unchanged")
        path = self._issue_path(found)
        self._api.send("POST", f"{path}/comments", {"body": note})
        return _posted("closed", self._api.send("PATCH", path, {"state": "closed", "state_reason": "completed"}))

    def pull_request(self) -> int:
        """Return the number of the pull request in the event. Raises SettingError if there is none."""
        event = _event(self._environ)
        number = cast(Entry, event.get("pull_request") or {}).get("number") or event.get("number")
        if not isinstance(number, int):
            raise SettingError(
                "expected an event `pull_request`, as a comment needs a pull request; found another event"
            )
        return number

    def plans_run(self, commit: str, workflow: str) -> int | None:
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
                head_sha=_text(pull, "head", "sha"),
                event="pull_request",
                status="success",
                per_page=100,
            )
            own = [run for run in cast(list[Entry], runs["workflow_runs"]) if self._is_of_this_repository(run)]
            if own:
                return max(int(run["id"]) for run in own)
        return None

    def _is_of_this_repository(self, run: Entry) -> bool:
        return _text(run, "head_repository", "full_name") == self.repository

    def _open_issue(self, label: str) -> Entry | None:
        path = f"/repos/{self.repository}/issues"
        found = [entry for entry in self._api.list(path, state="open", labels=label) if "pull_request" not in entry]
        return found[0] if found else None

    def _issue_path(self, issue: Entry) -> str:
        return f"/repos/{self.repository}/issues/{issue['number']}"

    def _is_own(self, comment: Entry, marker: str) -> bool:
        """Return whether a comment is one of this job. A user can write the marker, too."""
        if not str(comment.get("body") or "").startswith(marker):
            return False
        login = self._login()
        return _text(comment, "user", "login") == login if login else _text(comment, "user", "type") == "Bot"

    def _login(self) -> str | None:
        """Return the user that the token belongs to; None for a token of GitHub Actions or an app."""
        try:
            return str(cast(Entry, self._api.get("/user")).get("login") or "") or None
        except ForbiddenError:
            return None


def run_url(environ: Mapping[str, str]) -> str:
    """Return the address of the job's run; empty outside GitHub Actions."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, run = (environ.get(name, "") for name in names)
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""


def head_commit(environ: Mapping[str, str]) -> str:
    """Return the newest commit of the pull request: GITHUB_SHA is that of a merge that no branch has."""
    pull = _event(environ).get("pull_request")
    return _text(cast(Entry, pull), "head", "sha") if isinstance(pull, dict) else environ.get("GITHUB_SHA", "")


def append_summary(environ: Mapping[str, str], text: str) -> bool:
    """Append a text to the job's summary. Return whether the job has one."""
    place = environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return False
    with Path(place).open("a", encoding="utf-8") as summary:
        summary.write(text)
    return True


def _event(environ: Mapping[str, str]) -> Entry:
    place = environ.get("GITHUB_EVENT_PATH")
    if not place:
        return {}
    try:
        event: Any = json.loads(Path(place).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"GITHUB_EVENT_PATH: expected a JSON file at {place} ({type(error).__name__})") from None
    return cast(Entry, event) if isinstance(event, dict) else {}


def _text(entry: Entry, *keys: str) -> str:
    found: Any = entry
    for key in keys:
        found = cast(Entry, found).get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def _posted(action: str, answer: Any) -> Posted:
    if not isinstance(answer, dict):
        raise PostError("GitHub answered with something other than an object. Check GITHUB_API_URL.")
    return Posted(action, _text(cast(Entry, answer), "html_url"))
