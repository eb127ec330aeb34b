"""A dynamic resource whose object is a JSON file, which tests can change outside the stack."""

import json
import os
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)


def root() -> Path:
    path = Path(os.environ["FILESTORE"])
    path.mkdir(parents=True, exist_ok=True)
    return path


def select_inputs(props: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in props.items() if k in ("path", "content", "size", "token")}


class FileProvider(ResourceProvider):
    serialize_as_secret_always = False

    def check(self, _olds, news):
        failures = []
        if news.get("path") == "":
            failures.append(CheckFailure("path", "must not be empty"))
        return CheckResult(news, failures)

    def diff(self, _id, olds, news):
        changed = [k for k in ("path", "content", "size", "token") if olds.get(k) != news.get(k)]
        replaces = [k for k in changed if k == "path"]
        return DiffResult(
            changes=bool(changed),
            replaces=replaces,
            delete_before_replace=news.get("content") == "delete-first",
        )

    def create(self, props):
        self._log("create", props["path"])
        if props.get("content") == "fail":
            raise RuntimeError("the store refused the object")
        (root() / props["path"]).write_text(json.dumps(select_inputs(props), sort_keys=True))
        return CreateResult(props["path"], {**select_inputs(props), "etag": f"etag-{props.get('content')}"})

    def read(self, id_, props):
        try:
            inputs = json.loads((root() / id_).read_text())
        except FileNotFoundError:
            return ReadResult(None, {})
        return ReadResult(id_, {**inputs, "etag": f"etag-{inputs.get('content')}"}, inputs)

    def update(self, id_, _olds, news):
        self._log("update", id_)
        (root() / id_).write_text(json.dumps(select_inputs(news), sort_keys=True))
        return UpdateResult({**select_inputs(news), "etag": f"etag-{news.get('content')}"})

    def delete(self, id_, _props):
        self._log("delete", id_)
        (root() / id_).unlink(missing_ok=True)

    def _log(self, op: str, path: str) -> None:
        with (root() / ".log").open("a") as log:
            log.write(f"{op} {path}\n")


class File(Resource, module="store", name="File"):
    path: pulumi.Output[str]
    content: pulumi.Output[str]
    etag: pulumi.Output[str]

    def __init__(self, name: str, path, content, *, token=None, opts: pulumi.ResourceOptions | None = None):
        props = {"path": path, "content": content, "etag": None}
        if token is not None:
            props["token"] = token
        super().__init__(FileProvider(), name, props, opts)
