"""The fault switch: what goes wrong on the way to a server, as tests ask for it while it runs, and a log of calls.

No part of Lakekeeper: it stands in front of the server where the process was started with `--fault-switch`, and only
clients on the same machine may turn it (`/sandbox/v1/faults`, `/sandbox/v1/calls`).
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .protocol.errors import ApiError
from .protocol.responses import empty, json_response

ADMIN = "/sandbox/v1/"
CALLS_KEPT = 10_000

KINDS = {401: "AuthenticationFailed", 408: "RequestTimeout", 429: "TooManyRequests", 503: "CatalogBackendError"}
"""`error.type` of an answer in Lakekeeper's shape, where a rule names none."""


class Rule(BaseModel):
    """Which calls a fault is for: method and path as glob patterns, from the `nth` match on, `count` times.

    `count` null means: from then on always. The path is as it was sent, percent-encoded, without the query.
    """

    model_config = ConfigDict(extra="forbid")

    method: str = "*"
    path: str = "*"
    nth: Annotated[int, Field(ge=1)] = 1
    count: Annotated[int, Field(ge=1)] | None = 1

    def matches(self, method: str, path: str) -> bool:
        return fnmatchcase(method, self.method.upper()) and fnmatchcase(path, self.path)

    def hits(self, seen: int) -> bool:
        """Whether the fault is for the match of that number, counted from 1."""
        return seen >= self.nth and (self.count is None or seen < self.nth + self.count)


class Delay(Rule):
    """The call takes longer: before its effect, or with the answer held back after it."""

    action: Literal["delay"]
    seconds: Annotated[float, Field(ge=0)]
    when: Literal["before", "after"] = "before"


class Drop(Rule):
    """The connection ends without an answer."""

    action: Literal["drop"]
    when: Literal["before", "after"] = "before"


class InjectedResponse(Rule):
    """Another answer than the server's, before the call has its effect or after it.

    `body` is in Lakekeeper's error shape (`json`), a sentence as gateways write it (`text`), or what careless gateways
    do, the request itself with its headers (`echo`).
    """

    action: Literal["answer"]
    status: Annotated[int, Field(ge=200, le=599)]
    when: Literal["before", "after"] = "before"
    body: Literal["json", "text", "echo"] = "json"
    type: str | None = None
    retry_after: int | None = None


class ExpiredToken(Rule):
    """The token is refused as one that has expired."""

    action: Literal["expired-token"]


Fault = Delay | Drop | InjectedResponse | ExpiredToken
RULES: TypeAdapter[list[Fault]] = TypeAdapter(list[Annotated[Fault, Field(discriminator="action")]])


@dataclass
class CallRecord:
    """One call as it was answered. `status` is null while it runs and where the connection was dropped."""

    method: str
    path: str
    query: str
    status: int | None = None
    fault: str | None = None
    running: bool = True


@dataclass
class Installed:
    """A rule and how many calls it has matched."""

    rule: Fault
    seen: int = 0


@dataclass
class FaultSwitch:
    """An ASGI application around the server's. It runs in one event loop, so nothing here needs a lock."""

    app: ASGIApp
    rules: list[Installed] = field(default_factory=list[Installed])
    calls: deque[CallRecord] = field(default_factory=lambda: deque(maxlen=CALLS_KEPT))

    def __post_init__(self) -> None:
        self._admin = Starlette(
            routes=[
                Route(f"{ADMIN}faults", self._change_faults, methods=["GET", "PUT", "DELETE"]),
                Route(f"{ADMIN}calls", self._show_calls, methods=["GET", "DELETE"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif not scope["path"].startswith(ADMIN):
            await self._serve(scope, receive, send)
        elif _is_loopback(scope):
            await self._admin(scope, receive, send)
        else:
            await empty(404)(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = cast(bytes, scope.get("raw_path") or scope["path"].encode()).decode("ascii", "replace")
        call = CallRecord(scope["method"], path, scope["query_string"].decode("ascii", "replace"))
        self.calls.append(call)
        fault = self._fault_for(call)
        call.fault = fault.action if fault else None

        async def recording(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
            await send(message)

        try:
            if fault is None:
                await self.app(scope, receive, recording)
            else:
                await self._strike(fault, scope, receive, recording, cast(Connected, send))
        finally:
            call.running = False

    def _fault_for(self, call: CallRecord) -> Fault | None:
        """The first rule that is for this call; every rule counts it."""
        chosen: Fault | None = None
        for installed in self.rules:
            if installed.rule.matches(call.method, call.path):
                installed.seen += 1
                if chosen is None and installed.rule.hits(installed.seen):
                    chosen = installed.rule
        return chosen

    async def _strike(self, fault: Fault, scope: Scope, receive: Receive, send: Send, connection: Connected) -> None:
        match fault:
            case Delay(when="before"):
                await asyncio.sleep(fault.seconds)
                await self.app(scope, receive, send)
            case Delay():
                held = await self._take_effect(scope, receive)
                await asyncio.sleep(fault.seconds)
                for message in held:
                    await send(message)
            case Drop():
                if fault.when == "after":
                    await self._take_effect(scope, receive)
                await _drop(connection, receive)
            case InjectedResponse():
                body = await _body_of(receive)
                if fault.when == "after":
                    await self._take_effect(scope, _once(body))
                await _answer(fault, scope, body)(scope, receive, send)
            case ExpiredToken():
                refused = ApiError(401, "AuthenticationFailed", "Token is invalid: ExpiredSignature")
                await refused.response()(scope, receive, send)

    async def _take_effect(self, scope: Scope, receive: Receive) -> list[Message]:
        """Lets the server do the call; its answer, which nobody has seen yet."""
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self.app(scope, receive, hold)
        return held

    async def _change_faults(self, request: Request) -> Response:
        """PUT a list of rules: it takes the place of the old ones, all counted from 1 again."""
        if request.method == "PUT":
            try:
                self.rules = [Installed(rule) for rule in RULES.validate_json(await request.body())]
            except ValidationError as error:
                return json_response({"errors": error.errors(include_url=False, include_context=False)}, 422)
        elif request.method == "DELETE":
            self.rules = []
        return json_response({"faults": [one.rule.model_dump() | {"seen": one.seen} for one in self.rules]})

    async def _show_calls(self, request: Request) -> Response:
        """The calls since the last DELETE, oldest first."""
        if request.method == "DELETE":
            self.calls.clear()
        return json_response({"calls": [asdict(call) for call in self.calls]})


class Connected(Protocol):
    """How uvicorn's `send` is: a method of the object that has the connection."""

    __self__: Any

    async def __call__(self, message: Message, /) -> None: ...


async def _drop(connection: Connected, receive: Receive) -> None:
    """Ends the connection at once: ASGI has no word for it, so the server's own transport is used."""
    connection.__self__.transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body_of(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


def _once(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _answer(fault: InjectedResponse, scope: Scope, body: bytes) -> Response:
    headers = {} if fault.retry_after is None else {"retry-after": str(fault.retry_after)}
    if fault.body == "json":
        kind = fault.type or KINDS.get(fault.status, "InternalServerError")
        response = ApiError(fault.status, kind, "The fault switch answered.").response()
        response.headers.update(headers)
        return response
    text = "upstream connect error or disconnect/reset before headers"
    if fault.body == "echo":
        sent = "\n".join(f"{name.decode()}: {value.decode()}" for name, value in scope["headers"])
        text = f"{scope['method']} {scope['path']}\n{sent}\n\n{body.decode(errors='replace')}"
    return Response(text, fault.status, headers, media_type="text/plain")


def _is_loopback(scope: Scope) -> bool:
    client = scope.get("client")
    try:
        return client is not None and ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False
