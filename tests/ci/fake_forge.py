"""Forges for tests: the part of the APIs of GitHub and GitLab that CI uses, over HTTP, with their rules.

As on GitHub: tokens of Actions have no user (`GET /user` is 403); bodies have at most 65,536 characters (422); lists
have pages; a token without the right gets 403 "Resource not accessible by integration"; closed issues leave the list.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "ghs_secretOfTheJob"
REPOSITORY = "acme/lakehouse"
MAX_BODY = 65_536
BOT = {"login": "github-actions[bot]", "type": "Bot"}


@dataclass
class FakeForge:
    """The state of a forge, and how it answers."""

    url: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the webhook."""
    calls: list[str] = field(default_factory=list)
    """Method and path of each request."""
    may_write: bool = True
    user: dict[str, Any] | None = None
    """The user of the token; None for a token of Actions."""
    faults: list[int] = field(default_factory=list)
    """Status codes to respond with before anything is done."""
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))

    def answer(self, method: str, target: str, headers: dict[str, str], body: Any) -> tuple[int, Any]:
        """Return status and JSON of a request."""
        parts = urlsplit(target)
        path, query = parts.path, dict(parse_qsl(parts.query))
        self.calls.append(f"{method} {path}")
        if self.faults:
            return self.faults.pop(0), {"message": "a fault"}
        if path == "/hook/secret":
            self.messages.append(body)
            return 200, None
        return self._refusal(method, path, headers, body or {}) or self._answer(method, path, query, body)

    def _refusal(
        self, method: str, path: str, headers: dict[str, str], body: dict[str, Any]
    ) -> tuple[int, dict[str, str]] | None:
        if headers.get("authorization") != f"Bearer {TOKEN}" and headers.get("private-token") != TOKEN:
            return 401, {"message": "Bad credentials"}
        if (path == "/user" and not self.user) or (method != "GET" and not self.may_write):
            return 403, {"message": "Resource not accessible by integration"}
        if len(body.get("body") or body.get("description") or "") > MAX_BODY:
            return 422, {"message": "Validation Failed: body is too long (maximum is 65536 characters)"}
        return None

    def _answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path == "/user":
            return 200, self.user
        for pattern, handle in (*self._github(), *self._gitlab()):
            if match := re.fullmatch(pattern, f"{method} {path}"):
                return handle(match, query, body)
        return 404, {"message": "Not Found"}

    def _github(self) -> Iterator[tuple[str, Any]]:
        repository = f"/repos/{REPOSITORY}"
        yield rf"GET {repository}/issues/7/comments", lambda _, query, __: (200, page(self.comments, query))
        yield rf"POST {repository}/issues/7/comments", lambda _, __, body: (201, self._add(self.comments, body))
        yield (
            rf"PATCH {repository}/issues/comments/(\d+)",
            lambda match, _, body: self._change(self.comments, match, body),
        )
        yield rf"DELETE {repository}/issues/comments/(\d+)", lambda match, _, __: self._remove(match)
        yield rf"GET {repository}/issues", lambda _, query, __: (200, page(self._open(query), query))
        yield rf"POST {repository}/issues", lambda _, __, body: (201, self._add_issue(body))
        yield rf"PATCH {repository}/issues/(\d+)", lambda match, _, body: self._change(self.issues, match, body)
        yield rf"POST {repository}/issues/(\d+)/comments", lambda _, __, body: (201, self._add(self.comments, body))
        yield rf"GET {repository}/commits/(\w+)/pulls", lambda _, query, __: (200, page(self.pulls, query))
        runs = rf"GET {repository}/actions/workflows/preview.yml/runs"
        yield runs, lambda _, query, __: (200, {"workflow_runs": [run for run in self.runs if matches(run, query)]})

    def _gitlab(self) -> Iterator[tuple[str, Any]]:
        notes = "/projects/42/merge_requests/7/notes"
        yield f"GET {notes}", lambda _, query, __: (200, page(self.comments, query))
        yield f"POST {notes}", lambda _, __, body: (201, self._add(self.comments, body))
        yield rf"PUT {notes}/(\d+)", lambda match, _, body: self._change(self.comments, match, body)
        yield rf"DELETE {notes}/(\d+)", lambda match, _, __: self._remove(match)
        yield "GET /projects/42/issues", lambda _, query, __: (200, page(self._open(query), query))
        yield "POST /projects/42/issues", lambda _, __, body: (201, self._add_issue(body))
        yield r"PUT /projects/42/issues/(\d+)", lambda match, _, body: self._change(self.issues, match, body)
        yield r"POST /projects/42/issues/(\d+)/notes", lambda _, __, body: (201, self._add(self.comments, body))

    def _add(self, entries: list[dict[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        author = self.user or BOT
        entry = {"id": number, "user": author, "author": author, "html_url": f"{self.url}/{number}", **body}
        entries.append(entry)
        return entry

    def _add_issue(self, body: dict[str, Any]) -> dict[str, Any]:
        issue = self._add(self.issues, body)
        labels = body["labels"].split(",") if isinstance(body["labels"], str) else body["labels"]
        issue |= {"number": issue["id"], "iid": issue["id"], "state": "open", "labels": labels}
        return issue

    def _open(self, query: dict[str, str]) -> list[dict[str, Any]]:
        assert query["state"] in ("open", "opened")
        return [issue for issue in self.issues if issue["state"] == "open" and query["labels"] in issue["labels"]]

    def _change(self, entries: list[dict[str, Any]], match: re.Match[str], body: dict[str, Any]) -> tuple[int, Any]:
        for entry in entries:
            if entry["id"] == int(match[1]):
                entry.update({"state": "closed"} if body.get("state_event") == "close" else body)
                return 200, entry
        return 404, {"message": "Not Found"}

    def _remove(self, match: re.Match[str]) -> tuple[int, Any]:
        remaining_comments = [comment for comment in self.comments if comment["id"] != int(match[1])]
        if len(remaining_comments) == len(self.comments):
            return 404, {"message": "Not Found"}
        self.comments[:] = remaining_comments
        return 204, None


def page(entries: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
    """Return one page: at most 100 entries, 30 by default."""
    size, number = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
    return entries[(number - 1) * size : number * size]


def matches(run: dict[str, Any], query: dict[str, str]) -> bool:
    return all(run[key] == query[key] for key in ("head_sha", "event", "status"))


@contextmanager
def serve_forge() -> Iterator[FakeForge]:
    """Serve a forge on loopback."""
    forge = FakeForge()

    class ForgeHandler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answer = forge.answer(self.command, self.path, headers, body)
            data = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815 - names of http.server

        def log_message(self, *_words: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), ForgeHandler)
    forge.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
