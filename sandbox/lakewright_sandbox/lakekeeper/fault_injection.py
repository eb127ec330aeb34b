"""Fault injection: tests set rules for faults between client and server, and read a log of calls.

It is not part of Lakekeeper: it wraps the server if the process was started with `--fault-switch`, and only clients on
the same machine may use it (`/sandbox/v1/faults`, `/sandbox/v1/calls`).
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

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response

ADMIN = "/sandbox/v1/"
CALLS_KEPT = 10_000

KINDS = {401: "AuthenticationFailed", 408: "RequestTimeout", 429: "TooManyRequests", 503: "CatalogBackendError"}
"""Default `error.type` of injected responses in Lakekeeper's format."""


class Rule(BaseModel):
    """The calls that a fault applies to: method and path as glob patterns, from the `nth` match on, `count` times.

    A `count` of null means no limit. The path is the sent one, percent-encoded, without the query.
    """

    model_config = ConfigDict(extra="forbid")

    method: str = "*"
    path: str = "*"
    nth: Annotated[int, Field(ge=1)] = 1
    count: Annotated[int, Field(ge=1)] | None = 1

    def matches(self, method: str, path: str) -> bool:
        """Return whether the rule applies to a method and a path."""
        return fnmatchcase(method, self.method.upper()) and fnmatchcase(path, self.path)

    def hits(self, number: int) -> bool:
        """Return whether the fault applies to the match with that number, counted from 1."""
        return number >= self.nth and (self.count is None or number < self.nth + self.count)


class Delay(Rule):
    """Delay a call before its effect, or its response after it."""

    action: Literal["delay"]
    seconds: Annotated[float, Field(ge=0)]
    when: Literal["before", "after"] = "before"


class Drop(Rule):
    """End the connection without a response."""

    action: Literal["drop"]
    when: Literal["before", "after"] = "before"


class InjectedResponse(Rule):
    """Replace the server's response, before or after the call takes effect.

    `body` is an error in Lakekeeper's format (`json`), a sentence as gateways write it (`text`), or the request itself
    with its headers, as careless gateways send it (`echo`).
    """

    action: Literal["answer"]
    status: Annotated[int, Field(ge=200, le=599)]
    when: Literal["before", "after"] = "before"
    body: Literal["json", "text", "echo"] = "json"
    type: str | None = None
    retry_after: int | None = None


class ExpiredToken(Rule):
    """Refuse the token as expired."""

    action: Literal["expired-token"]


Fault = Delay | Drop | InjectedResponse | ExpiredToken
RULES: TypeAdapter[list[Fault]] = TypeAdapter(list[Annotated[Fault, Field(discriminator="action")]])


@dataclass
class CallRecord:
    """One call and its response. `status` is null while it runs and if the connection was dropped."""

    method: str
    path: str
    query: str
    status: int | None = None
    fault: str | None = None
    running: bool = True


@dataclass
class Installed:
    """A rule and the number of calls that it has matched."""

    rule: Fault
    seen: int = 0


@dataclass
class FaultSwitch:
    """An ASGI application that wraps the server's. It runs in one event loop, so it needs no lock."""

    app: ASGIApp
    rules: list[Installed] = field(default_factory=list[Installed])
    calls: deque[CallRecord] = field(default_factory=lambda: deque(maxlen=CALLS_KEPT))

    def __post_init__(self) -> None:
        """Create the application of the admin endpoints."""
        self._admin = Starlette(
            routes=[
                Route(f"{ADMIN}faults", self._change_faults, methods=["GET", "PUT", "DELETE"]),
                Route(f"{ADMIN}calls", self._list_calls, methods=["GET", "DELETE"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request, with a fault if a rule applies."""
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
        fault = self._find_fault(call)
        call.fault = fault.action if fault else None

        async def record_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
            await send(message)

        try:
            if fault is None:
                await self.app(scope, receive, record_status)
            else:
                await self._inject(fault, scope, receive, record_status, cast(Connected, send))
        finally:
            call.running = False

    def _find_fault(self, call: CallRecord) -> Fault | None:
        """Return the first rule that applies to the call; every rule counts it."""
        applying_rule: Fault | None = None
        for installed in self.rules:
            if installed.rule.matches(call.method, call.path):
                installed.seen += 1
                if applying_rule is None and installed.rule.hits(installed.seen):
                    applying_rule = installed.rule
        return applying_rule

    async def _inject(self, fault: Fault, scope: Scope, receive: Receive, send: Send, connection: Connected) -> None:
        match fault:
            case Delay(when="before"):
                await asyncio.sleep(fault.seconds)
                await self.app(scope, receive, send)
            case Delay():
                messages = await self._take_effect(scope, receive)
                await asyncio.sleep(fault.seconds)
                for message in messages:
                    await send(message)
            case Drop():
                if fault.when == "after":
                    await self._take_effect(scope, receive)
                await _drop(connection, receive)
            case InjectedResponse():
                body = await _read_body(receive)
                if fault.when == "after":
                    await self._take_effect(scope, _replay(body))
                await _answer(fault, scope, body)(scope, receive, send)
            case ExpiredToken():
                refused = ApiError(401, "AuthenticationFailed", "Token is invalid: ExpiredSignature")
                await refused.response()(scope, receive, send)

    async def _take_effect(self, scope: Scope, receive: Receive) -> list[Message]:
        """Let the server process the call, and return its response unsent."""
        messages: list[Message] = []

        async def hold(message: Message) -> None:
            messages.append(message)

        await self.app(scope, receive, hold)
        return messages

    async def _change_faults(self, request: Request) -> Response:
        """Replace all rules on PUT, with counts at 0; delete them on DELETE. Return the rules."""
        if request.method == "PUT":
            try:
                self.rules = [Installed(rule) for rule in RULES.validate_json(await request.body())]
            except ValidationError as error:
                return json_response({"errors": error.errors(include_url=False, include_context=False)}, 422)
        elif request.method == "DELETE":
            self.rules = []
        return json_response({"faults": [rule.rule.model_dump() | {"seen": rule.seen} for rule in self.rules]})

    async def _list_calls(self, request: Request) -> Response:
        """Return the calls since the last DELETE, oldest first."""
        if request.method == "DELETE":
            self.calls.clear()
        return json_response({"calls": [asdict(call) for call in self.calls]})


class Connected(Protocol):
    """uvicorn's `send`: a method of the object that has the connection."""

    __self__: Any

    async def __call__(self, message: Message, /) -> None:
        """Send a message."""
        ...


async def _drop(connection: Connected, receive: Receive) -> None:
    """Close the connection at once. ASGI has no message for it, so the server's own transport is used."""
    connection.__self__.transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


def _replay(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _answer(fault: InjectedResponse, scope: Scope, body: bytes) -> Response:
    headers = {} if fault.retry_after is None else {"retry-after": str(fault.retry_after)}
    if fault.body == "json":
        kind = fault.type or KINDS.get(fault.status, "InternalServerError")
        response = ApiError(fault.status, kind, "The fault switch sent this response.").response()
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
