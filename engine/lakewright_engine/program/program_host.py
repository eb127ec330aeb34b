"""Script that runs a Pulumi program in a child process of the engine, with only the SDK.

Its argument is a JSON object with `program` (absolute path of a file, or of a folder with `__main__.py`), `monitor` and
`engine` (addresses), `callbacks` (prefix of addresses to serve), `declarations` (file to write), `project`, `stack`,
`organization`, `root`, `parallel`, `dry_run` and `debug`. The configuration is in PULUMI_CONFIG and
PULUMI_CONFIG_SECRET_KEYS, as the SDK expects it. Exit code 32 means that the error was reported.
"""

import asyncio
import functools
import inspect
import itertools
import json
import logging
import os
import runpy
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pulumi
import pulumi._types
import pulumi.resource
import pulumi.runtime
import pulumi.runtime.resource
from grpc import aio
from pulumi.runtime import _callbacks
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, source_pb2

REPORTED = 32


class QuietEngine:
    """A client of the engine that drops debug messages. The SDK sends several for each resource, on the event loop."""

    def __init__(self, address: str, *, debug: bool) -> None:
        """Connect to the engine."""
        self._stub: Any = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address))
        self._least = engine_pb2.DEBUG if debug else engine_pb2.INFO

    def Log(self, request: Any) -> None:  # noqa: N802 - the protocol's name
        """Send a message unless its severity is too low."""
        if request.severity >= self._least:
            self._stub.Log(request)

    def __getattr__(self, name: str) -> Any:
        """Return any other method of the client."""
        return getattr(self._stub, name)


def serve_callbacks(prefix: str) -> None:
    """Make the servers of transforms and hooks listen at private addresses instead of ports that any user can call.

    Args:
        prefix: The prefix of the addresses. A program may have several servers: the SDK may start one for each task.
    """
    servicer: Any = vars(_callbacks)["_CallbackServicer"]
    initialize = servicer.__init__
    make_server: Any = aio.server
    numbers = itertools.count(1)

    def initialize_private(self: Any, monitor: Any) -> None:
        private = f"{prefix}-{next(numbers)}"

        def make_private_server(**options: Any) -> Any:
            server = make_server(**options)
            listen = server.add_insecure_port

            def use_socket(address: str) -> int:  # noqa: ARG001 - the port that the SDK requests
                return listen(private)

            server.add_insecure_port = use_socket
            return server

        aio.server = make_private_server
        try:
            initialize(self, monitor)
        finally:
            aio.server = make_server
        self._target = private

    servicer.__init__ = initialize_private


def speed_up_sdk() -> None:
    """Speed up the SDK: half of a program's time is spent on stack traces and types of each resource."""
    resources: Any = pulumi.runtime.resource
    resources._get_stack_trace = find_caller
    pulumi._types.resource_types = functools.cache(pulumi._types.resource_types)


def record_declarations(file: str) -> None:
    """Append type and name of each resource to a file when the program declares it.

    A resource is registered only when its inputs are known. An interrupted run lists unregistered resources.
    """
    resources: Any = pulumi.resource
    register = resources.register_resource
    stream = Path(file).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115 - open as long as the program runs

    def register_recorded(resource: Any, kind: str, name: str, *more: Any, **options: Any) -> Any:
        stream.write(json.dumps([kind, name]) + "\n")
        return register(resource, kind, name, *more, **options)

    resources.register_resource = register_recorded


def find_caller() -> source_pb2.StackTrace:
    """Return the place of a resource's declaration: the caller of the constructors of the SDK and the resource.

    It replaces the SDK's function, which returns every frame. The engine only needs the first frame.
    """
    frame, constructors = inspect.currentframe(), 0
    while frame is not None and constructors < 3:
        constructors += frame.f_code.co_name == "__init__"
        frame = frame.f_back
    if frame is None:
        return source_pb2.StackTrace()
    position = source_pb2.SourcePosition(uri=Path(frame.f_code.co_filename).absolute().as_uri(), line=frame.f_lineno)
    return source_pb2.StackTrace(frames=[source_pb2.StackFrame(pc=position)])


def main() -> int:
    """Run the program. Return the exit code."""
    arguments = json.loads(sys.argv[1])
    program = arguments["program"]
    pulumi.runtime.set_all_config(pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env())
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            project=arguments["project"],
            stack=arguments["stack"],
            organization=arguments["organization"],
            root_directory=arguments["root"],
            monitor=arguments["monitor"],
            engine=QuietEngine(arguments["engine"], debug=arguments["debug"]),
            parallel=arguments["parallel"],
            dry_run=arguments["dry_run"],
        )
    )
    sys.argv = [program]
    sys.path.insert(0, str(Path(program) if Path(program).is_dir() else Path(program).parent))
    speed_up_sdk()
    if not arguments["dry_run"]:
        record_declarations(arguments["declarations"])
    serve_callbacks(arguments["callbacks"])
    # A failed program leaves futures that are never awaited. The relevant error has been reported.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(max_workers=arguments["parallel"] * 4)
    loop.set_default_executor(executor)

    # Run the file: a folder would use cached bytecode, which an edit in the same second does not invalidate.
    inside = Path(program) / "__main__.py"
    entry = inside if inside.is_file() else Path(program)

    def run() -> None:
        runpy.run_path(str(entry), run_name="__main__")

    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(run))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return REPORTED
    except Exception as error:  # noqa: BLE001 - any error of the program is reported as such
        pulumi.log.error("Program failed with an unhandled exception:\n" + own_traceback(error, entry))
        return REPORTED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    executor.shutdown(wait=True)
    return 0


def own_traceback(error: Exception, entry: Path) -> str:
    """Return the traceback without the frames above the program's file, as the CLI prints it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, frame in enumerate(frames) if frame.filename == str(entry)), 0)
    return "".join(traceback.format_exception(error, limit=first - len(frames)))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that wait for responses would keep the process alive.
    os._exit(code)
