"""GitLab: notes on merge requests, and issues.

GitLab CI sets the variables: https://docs.gitlab.com/ci/variables/predefined_variables/. A job's own token
(CI_JOB_TOKEN) may not write notes, so GITLAB_TOKEN is a project access token of scope `api` and role Reporter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lakewright.ci.errors import PostError
from lakewright.ci.posting.forge import PostResult, require_variable
from lakewright.ci.posting.http import Entry, ForgeApi


class GitLab:
    """The project and merge request of a job of GitLab CI."""

    title = "GitLab"

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the variables of the job. Raises SettingError if a variable is missing."""
        self._environ = environ
        token = require_variable(
            environ, "GITLAB_TOKEN", "make a project access token of scope `api`, as a masked variable"
        )
        project = require_variable(environ, "CI_PROJECT_ID", "run this in GitLab CI")
        self._project = f"/projects/{project}"
        url = require_variable(environ, "CI_API_V4_URL", "run this in GitLab CI")
        self._api = ForgeApi(self.title, url, {"private-token": token})

    def post_comment(self, marker: str, body: str) -> PostResult:
        """Create or update the note. Further notes of this author with the marker are deleted."""
        number = require_variable(self._environ, "CI_MERGE_REQUEST_IID", "run this in a pipeline of a merge request")
        request = f"{self._project}/merge_requests/{number}"
        notes = f"{request}/notes"
        own_notes = self._list_own_notes(notes, marker)
        for spare in own_notes[1:]:
            self._api.remove(f"{notes}/{spare['id']}")
        if not own_notes:
            return _to_result("created", self._api.send("POST", notes, {"body": body}))
        return _to_result("updated", self._api.send("PUT", f"{notes}/{own_notes[0]['id']}", {"body": body}))

    def post_issue(self, label: str, title: str, body: str) -> PostResult:
        """Open an issue, or update the open issue."""
        content = {"title": title, "description": body}
        if (issue := self._find_open_issue(label)) is None:
            return _to_result(
                "created", self._api.send("POST", f"{self._project}/issues", {**content, "labels": label})
            )
        return _to_result("updated", self._api.send("PUT", f"{self._project}/issues/{issue['iid']}", content))

    def close_issue(self, label: str, note: str) -> PostResult:
        """Close the open issue after a note."""
        if (issue := self._find_open_issue(label)) is None:
            return PostResult("unchanged")
        path = f"{self._project}/issues/{issue['iid']}"
        self._api.send("POST", f"{path}/notes", {"body": note})
        return _to_result("closed", self._api.send("PUT", path, {"state_event": "close"}))

    def _list_own_notes(self, notes: str, marker: str) -> list[Entry]:
        author = cast(Entry, self._api.get("/user")).get("id")
        return [
            note
            for note in self._api.list(notes, sort="asc", order_by="created_at")
            if str(note.get("body") or "").startswith(marker)
            and cast(Entry, note.get("author") or {}).get("id") == author
        ]

    def _find_open_issue(self, label: str) -> Entry | None:
        return next(self._api.list(f"{self._project}/issues", state="opened", labels=label), None)


def read_run_url(environ: Mapping[str, str]) -> str:
    """Return the address of the pipeline; empty outside GitLab CI."""
    return environ.get("CI_PIPELINE_URL", "")


def _to_result(action: str, response: Any) -> PostResult:
    if not isinstance(response, dict):
        raise PostError("GitLab responded with something other than an object. Check CI_API_V4_URL.")
    return PostResult(action, str(cast(Entry, response).get("web_url") or ""))
