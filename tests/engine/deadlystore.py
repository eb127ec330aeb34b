"""File objects whose provider can kill the engine or itself at its n-th call. It adopts existing objects."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import filestore
from pulumi.dynamic import CreateResult, Resource, UpdateResult

_counting = threading.Lock()


def die(moment: str) -> None:
    """Kill the process ENGINE, or by default the provider: `DEADLY=3:after` does so after the third call."""
    number, _, when = os.environ.get("DEADLY", "0:").partition(":")
    if moment != when:
        return
    counter = Path(os.environ["FILESTORE"]) / ".calls"
    with _counting:
        count = int(counter.read_text()) + 1 if counter.exists() else 1
        counter.write_text(str(count))
        if count == int(number):
            counter.with_name(".pid").write_text(str(os.getpid()))
            os.kill(int(os.environ.get("ENGINE", os.getpid())), signal.SIGKILL)


class DeadlyProvider(filestore.FileProvider):
    """A server that names its objects itself. Without adoption, a repeated creation leaves two objects."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        die("before")
        paths = [path for path in filestore.root().glob("*.json") if path.name.endswith(f"-{props['path']}")]
        name = paths[0].name if paths else f"{len(list(filestore.root().glob('*.json')))}-{props['path']}"
        result = super().create({**props, "path": name})
        die("after")
        return CreateResult(result.id, {**result.outs, "path": props["path"]})

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        die("before")
        result = super().update(id_, olds, news)
        die("after")
        return result

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        die("before")
        super().delete(id_, props)
        die("after")


class File(Resource, module="store", name="File"):
    def __init__(self, name: str, path: Any, content: Any, opts: Any = None) -> None:
        super().__init__(DeadlyProvider(), name, {"path": path, "content": content, "etag": None}, opts)
