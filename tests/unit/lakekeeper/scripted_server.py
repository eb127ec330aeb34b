"""A server with given responses, in the transport of a client."""

from __future__ import annotations

import httpx
from lakewright.http.retry import RetryPolicy
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import ServerRef

Answer = httpx.Response | Exception
OK = httpx.Response(200, json={"ok": True})
QUICK = RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.002)


class Script:
    """A server with given responses, one for each call; it repeats the last one."""

    def __init__(self, *responses: Answer) -> None:
        self._answers = list(responses)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        response = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(response, Exception):
            raise response
        return response

    def client(self) -> Client:
        server = ServerRef(endpoint="http://lake.test:8181")
        return Client(server, str, retry=QUICK, transport=httpx.MockTransport(self))


def refusal(status: int, kind: str = "", message: str = "no", headers: dict[str, str] | None = None) -> httpx.Response:
    body = {"error": {"message": message, "type": kind, "code": status, "stack": []}}
    return httpx.Response(status, json=body, headers=headers)
