"""A provider plugin that accepts secrets and returns everything in plain text, as most real plugins do.

`install` puts it on a PATH as `pulumi-resource-vault`. Its objects are JSON files in the folder VAULT. Every call is a
line of the file `.log`. Properties of `vault:index:Thing` with a meaning:

- `fixed`: a change replaces the object.
- `forget`: properties that Read does not return.
- `patient`: the creation lasts until it is cancelled.
- `unhealthy`: the object does not become ready.
"""

# ruff: noqa: N802 - the protocol sets the names

from __future__ import annotations

import json
import os
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import any_pb2, json_format
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def install(folder: Path) -> str:
    """Write the plugin's executable into a folder. Return a PATH that begins with the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    executable = folder / "pulumi-resource-vault"
    executable.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} "$@"\n')
    executable.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return plain(value["value"])
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def read_struct(struct: Struct) -> dict[str, Any]:
    return plain(json_format.MessageToDict(struct))


def to_struct(values: dict[str, Any]) -> Struct:
    return json_format.ParseDict(values, Struct())


def _elide_content(value: Any) -> Any:
    if isinstance(value, dict) and value.get(SIGNATURE) and value.get("hash"):
        return {SIGNATURE: value[SIGNATURE], "hash": value["hash"]}
    return value


class Vault(provider_pb2_grpc.ResourceProviderServicer):
    def __init__(self) -> None:
        self._folder = Path(os.environ.get("VAULT", "."))
        self._cancelled = threading.Event()

    def _log(self, line: str) -> None:
        with (self._folder / ".log").open("a") as log:
            log.write(line + "\n")

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=True, accept_outputs=False, supports_autonaming_configuration=False
        )

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version="1.0.0")

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        olds, news = read_struct(request.old_inputs), read_struct(request.news)
        changed = sorted(key for key in {*olds, *news} - {"version"} if olds.get(key) != news.get(key))
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        replaces = [key for key in changed if key == "account"]
        return provider_pb2.DiffResponse(changes=kind, diffs=changed, replaces=replaces)

    def Configure(self, request: Any, context: Any) -> Any:
        self._log("configure " + json.dumps(read_struct(request.args), sort_keys=True))
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=True)

    def Check(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:
        olds, news = read_struct(request.old_inputs), read_struct(request.news)
        changed = sorted(key for key in {*olds, *news} if olds.get(key) != news.get(key))
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        replaces = [key for key in changed if key == "fixed"]
        return provider_pb2.DiffResponse(changes=kind, diffs=changed, replaces=replaces)

    def Create(self, request: Any, context: Any) -> Any:
        inputs = read_struct(request.properties)
        object_id = "" if request.preview else uuid.uuid4().hex[:8]
        if not request.preview:
            object_id = str(inputs.get("name", object_id))
            if inputs.get("patient"):
                self._cancelled.wait()
            self._log(f"create {object_id}")
            self._write(object_id, inputs)
        outputs = to_struct(self._outputs(inputs))
        self._refuse_unhealthy(inputs, object_id, context, preview=request.preview)
        return provider_pb2.CreateResponse(id=object_id, properties=outputs)

    def Read(self, request: Any, context: Any) -> Any:
        self._log(f"read {request.id}")
        file = self._folder / f"{request.id}.json"
        if not file.exists():
            return provider_pb2.ReadResponse()
        inputs = json.loads(file.read_text())
        inputs = {key: value for key, value in inputs.items() if key not in inputs.get("forget", [])}
        self._refuse_unhealthy(inputs, request.id, context, preview=False)
        return provider_pb2.ReadResponse(
            id=request.id, properties=to_struct(self._outputs(inputs)), inputs=to_struct(self._inputs(inputs))
        )

    def Update(self, request: Any, context: Any) -> Any:
        inputs = read_struct(request.news)
        if not request.preview:
            self._log(f"update {request.id}")
            self._write(request.id, inputs)
        self._refuse_unhealthy(inputs, request.id, context, preview=request.preview)
        return provider_pb2.UpdateResponse(properties=to_struct(self._outputs(inputs)))

    def Delete(self, request: Any, context: Any) -> Any:
        self._log(f"delete {request.id}")
        (self._folder / f"{request.id}.json").unlink(missing_ok=True)
        return Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        self._log("cancel")
        self._cancelled.set()
        return Empty()

    def _write(self, object_id: str, inputs: dict[str, Any]) -> None:
        (self._folder / f"{object_id}.json").write_text(json.dumps(inputs))

    @staticmethod
    def _outputs(inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs of a server: assets without contents."""
        outputs = {key: _elide_content(value) for key, value in inputs.items() if key != "forget"}
        return {**outputs, "issued": "made by the server", "id": "an output"}

    @staticmethod
    def _inputs(inputs: dict[str, Any]) -> dict[str, Any]:
        return {key: _elide_content(value) for key, value in inputs.items()}

    def _refuse_unhealthy(self, inputs: dict[str, Any], object_id: str, context: Any, *, preview: bool) -> None:
        if not inputs.get("unhealthy") or preview:
            return
        failed = provider_pb2.ErrorResourceInitFailed(
            id=object_id,
            properties=to_struct(self._outputs(inputs)),
            reasons=["the object is not ready"],
            inputs=to_struct(inputs),
        )
        detail = any_pb2.Any()
        detail.Pack(failed)
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message="not ready", details=[detail])
        context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
        context.abort(grpc.StatusCode.UNKNOWN, "not ready")


def main() -> None:
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Vault(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
