"""Replay recordings of a real Lakekeeper against a server, and list every difference.

For any server that is not bootstrapped yet, whose store has the bucket `tenants`:
`python tests/integration/lakekeeper/replay.py http://lakekeeper:8181 --recordings 0.13.3 --s3 http://minio:9000`.
Recordings of a server with OpenFGA need `--token admin=...` and `--token alice=...`. `--other-storage` compares a
server that is bootstrapped and was started with LAKEKEEPER__SKIP_STORAGE_VALIDATION=true.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

FOLDER = Path(__file__).parent / "recordings"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
COLUMN = re.compile(r"column \d+")
# Fields that differ from run to run: their type is compared, not their value.
VOLATILE = {
    "message",
    "lastCheck",
    "last-updated-ms",
    "timestamp-ms",
    "duration-ms",
    "expiration-time",
    "s3.session-token-expires-at-ms",
    "next-page-token",
}
# The recorded server's defects, with the correct statuses.
DEFECTS: dict[tuple[str, str], int] = {('{"namespace": []}', "POST"): 400}
WAIT_SECONDS = 30


OWN_SERVERS = ("openfga", "storage")
"""Suffixes of recordings that were made on a separate server."""


def list_recordings(version: str, *, own_server: str | None = None) -> list[Path]:
    """Return the recordings of `head` or a release, in the order in which they depend on earlier recordings.

    Args:
        version: the folder of recordings.
        own_server: `openfga` or `storage`, for recordings that were made on a separate server.
    """
    recordings = sorted((FOLDER / version).glob("*.jsonl"))
    if own_server:
        return [recording for recording in recordings if recording.stem.endswith(own_server)]
    return [recording for recording in recordings if not recording.stem.endswith(OWN_SERVERS)]


def with_keys(access_key_id: str, secret_access_key: str) -> Callable[[str], str]:
    """Return a function that replaces the recorded key pair by another."""

    def substitute(body: str) -> str:
        for prefix in ("aws-", ""):
            body = body.replace(f'"{prefix}access-key-id":"minioadmin"', f'"{prefix}access-key-id":"{access_key_id}"')
            secret = f'"{prefix}secret-access-key":'
            body = body.replace(f'{secret}"minioadmin"', f'{secret}"{secret_access_key}"')
        return body

    return substitute


@dataclass
class Replayer:
    """`variables` holds the values of `${name}` in recordings; `substitute` changes request bodies."""

    client: httpx.Client
    variables: dict[str, str]
    substitute: Callable[[str], str]
    differences: list[str] = field(default_factory=list)

    def replay(self, recording: Path) -> list[str]:
        """Return the differences, one line each, named by file and line."""
        self.differences = []
        for number, line in enumerate(recording.read_text().splitlines(), 1):
            entry = json.loads(line)
            if "wait_until" in entry:
                self._wait_for_tasks()
                continue
            position = f"{recording.name}:{number}"
            self._step(position, entry)
        return self.differences

    def _step(self, position: str, entry: dict[str, Any]) -> None:
        request, expected = entry["request"], entry["response"]
        response = self._send(request)
        name = f"{position} {request['method']} {self._fill_variables(request['path'])}"
        body = _body(response)
        self._save(entry.get("save", {}), body)
        defect = DEFECTS.get((json.dumps(request.get("json")), request["method"]))
        if defect is not None:
            self._compare(f"{name} status", defect, response.status_code)
            return
        content_type = response.headers.get("content-type", "").split(";")[0]
        self._compare(f"{name} status", expected["status"], response.status_code)
        self._compare(f"{name} content type", expected["content-type"], content_type)
        filled = json.loads(self._fill_variables(json.dumps(expected["body"])))
        if isinstance(body, str) and "${s3}" in json.dumps(request):
            # The recorded endpoint has another length, which moves the column that a message names.
            filled, body = (COLUMN.sub("column <n>", str(text)) for text in (filled, body))
        if request["method"] != "HEAD":
            self._compare(f"{name} body", filled, body)

    def _send(self, request: dict[str, Any]) -> httpx.Response:
        headers = {key: self._fill_variables(value) for key, value in request.get("headers", {}).items()}
        content = request.get("raw")
        if "json" in request:
            content = self.substitute(self._fill_variables(json.dumps(request["json"], separators=(",", ":"))))
            headers["content-type"] = "application/json"
        url, params = (
            self._fill_variables(request["path"]),
            json.loads(self._fill_variables(json.dumps(request.get("params")))),
        )
        return self.client.request(request["method"], url, params=params, headers=headers, content=content)

    def _save(self, paths: dict[str, str], body: Any) -> None:
        for variable, path in paths.items():
            value = body
            for part in path.split("."):
                value = value[body["namespaces"].index([part[1:]])] if part.startswith("?") else value[part]
            self.variables[variable] = value

    def _fill_variables(self, text: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda match: self.variables.get(match[1], match[0]), text)

    def _wait_for_tasks(self) -> None:
        path = self._fill_variables("/management/v1/warehouse/${w_d}/task/list")
        deadline = time.monotonic() + WAIT_SECONDS
        while self.client.post(path, json={"status": ["SCHEDULED", "RUNNING"]}).json()["tasks"]:
            assert time.monotonic() < deadline, "the purge task did not end"

    def _compare(self, position: str, expected: Any, actual: Any) -> None:
        self.differences += _differences(position, expected, actual, set(self.variables.values()))


def _body(response: httpx.Response) -> Any:
    if not response.content:
        return None
    if response.headers.get("content-type", "").startswith("application/json"):
        return response.json()
    return response.text


def _differences(position: str, expected: Any, actual: Any, saved_ids: set[str]) -> list[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        lines = [f"{position}: lacks `{key}`" for key in expected.keys() - actual.keys()]
        lines += [f"{position}: has `{key}`, {actual[key]!r}" for key in actual.keys() - expected.keys()]
        for key in expected.keys() & actual.keys():
            lines += _field_differences(position, key, expected[key], actual[key], saved_ids)
        return lines
    if isinstance(expected, list) and isinstance(actual, list):
        return _list_differences(position, expected, actual, saved_ids)
    if isinstance(expected, str) and isinstance(actual, str):
        same = expected == "<vended>" or _shape(expected, saved_ids) == _shape(actual, saved_ids)
    else:
        same = expected == actual and type(expected) is type(actual)
    return [] if same else [f"{position}: expected {expected!r}, found {actual!r}"]


def _field_differences(position: str, key: str, expected: Any, actual: Any, saved_ids: set[str]) -> list[str]:
    if key in VOLATILE:
        same = type(expected) is type(actual)
        return [] if same else [f"{position}.{key}: expected something like {expected!r}, found {actual!r}"]
    if key == "stack":
        return (
            []
            if _is_stack(actual)
            else [f"{position}.stack: expected texts that end with an error id, found {actual!r}"]
        )
    return _differences(f"{position}.{key}", expected, actual, saved_ids)


def _is_stack(actual: Any) -> bool:
    return isinstance(actual, list) and bool(actual) and bool(re.fullmatch(rf"Error ID: {UUID.pattern}", actual[-1]))


def _list_differences(position: str, expected: list[Any], actual: list[Any], saved_ids: set[str]) -> list[str]:
    unmatched = list(actual)
    lines: list[str] = []
    for entry in expected:
        matches = [item for item in unmatched if not _differences(position, entry, item, saved_ids)]
        if matches:
            unmatched.remove(matches[0])
        elif unmatched:
            lines += _differences(f"{position}[]", entry, unmatched.pop(0), saved_ids)
        else:
            lines.append(f"{position}: lacks the item {entry!r}")
    return lines + [f"{position}: has the item {item!r}" for item in unmatched]


def _shape(text: str, saved_ids: set[str]) -> str:
    """Return the text with saved ids, and with placeholders for other ids and times."""
    text = TIME.sub("<time>", text)
    return UUID.sub(lambda match: match[0] if match[0] in saved_ids else "<id>", text)


def main() -> None:
    """Print the differences of every recording."""
    parser = argparse.ArgumentParser(description="Compare a Lakekeeper with recordings of another")
    parser.add_argument("url")
    parser.add_argument("--recordings", default="0.13.3", help="a folder of recordings: head or a release")
    parser.add_argument("--s3", required=True, help="endpoint of the store, as the server reaches it")
    parser.add_argument("--access-key-id", default="minioadmin")
    parser.add_argument("--secret-access-key", default="minioadmin")
    parser.add_argument("--token", action="append", default=[], metavar="NAME=TOKEN")
    parser.add_argument("--other-storage", action="store_true", help="compare a server that validates no storage")
    arguments = parser.parse_args()
    tokens = dict(token.split("=", 1) for token in arguments.token)
    variables = {"base": arguments.url.rstrip("/"), "s3": arguments.s3.rstrip("/")} | tokens
    substitute = with_keys(arguments.access_key_id, arguments.secret_access_key)
    own_server = "openfga" if tokens else "storage" if arguments.other_storage else None
    with httpx.Client(base_url=arguments.url, timeout=60) as client:
        replayer = Replayer(client, variables, substitute)
        for recording in list_recordings(arguments.recordings, own_server=own_server):
            differences = replayer.replay(recording)
            print(f"{recording.name}: {len(differences)} differences", *differences, sep="\n  ")


if __name__ == "__main__":
    main()
