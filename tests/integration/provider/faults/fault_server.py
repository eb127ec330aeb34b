"""A server with a fault switch, the faults of the tests, and operations under a fault."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from lakewright.credentials.references import resolve
from lakewright.http.retry import RetryPolicy
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider import run_context
from lakewright_sandbox.lakekeeper.database.models import LakekeeperBase, ServerRow
from lakewright_sandbox.lakekeeper.fault_injection import Delay
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper

from tests.integration.provider.faults.fault_cases import SECRETS
from tests.integration.provider.resource import Props

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
OPERATIONS = ("create", "update", "refresh", "delete")
READ_TIMEOUT = 0.1
"""Timeout in seconds of a call that the fault delays; other calls keep their usual timeout."""
DELAY = 0.4
"""Seconds that a delayed call takes: its effect comes after the client timed out and looked up the object."""

FAULTS: dict[str, Props] = {
    "slow": {"action": "delay", "seconds": 0.01},
    "too slow, then done": {"action": "delay", "seconds": DELAY},
    "done, then too slow": {"action": "delay", "seconds": DELAY, "when": "after"},
    "dropped": {"action": "drop"},
    "done, then dropped": {"action": "drop", "when": "after"},
    "expired token": {"action": "expired-token"},
    "maintenance": {"action": "answer", "status": 503, "type": "MaintenanceModeError", "retry_after": 0},
    "a gateway's 404": {"action": "answer", "status": 404, "body": "text"},
    "a gateway that repeats the request": {"action": "answer", "status": 422, "body": "echo"},
} | {
    f"{'done, then ' if when == 'after' else ''}{status} {body}": {
        "action": "answer",
        "status": status,
        "when": when,
        "body": body,
    }
    for status in (408, 429, 502, 503, 504)
    for when in ("before", "after")
    for body in ("json", "text")
}


LOST_RESPONSE = "done, then dropped"
"""The fault that leaves most behind: the server did what the caller does not know."""

SHORT_FORM_FAULTS: dict[str, tuple[int | None, ...]] = {
    LOST_RESPONSE: (1,),
    "dropped": (None,),
    "a gateway that repeats the request": (None,),
}
"""The faults of the short form, and whether each occurs once or always."""


class ImpatientTransport(httpx.HTTPTransport):
    """The real transport, with a short timeout for the calls that a fault delays.

    Other calls keep their timeout: on a busy machine they may take as long without any fault.
    """

    def __init__(self, rule: Props) -> None:
        too_slow = rule.get("seconds") == DELAY
        self._delay = Delay.model_validate(rule) if too_slow else None
        self._sent = 0
        super().__init__(verify=False)  # Loading the authorities is slow, and the server has no TLS.

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._sent += 1
        if self._delay and self._delay.hits(self._sent):
            request.extensions["timeout"] |= {"read": READ_TIMEOUT}
        return super().handle_request(request)


@dataclass
class FaultServer:
    """A server with a fault switch, and another user's client of it."""

    http: httpx.Client
    lakekeeper: Lakekeeper

    def install(self, **rule: Any) -> None:
        self.http.put("/sandbox/v1/faults", json=[rule] if rule else []).raise_for_status()

    def calls(self) -> list[Props]:
        """Wait until all calls have ended; return the calls since the last time."""
        while True:
            calls = self.http.get("/sandbox/v1/calls").json()["calls"]
            if not any(call["running"] for call in calls):
                self.http.delete("/sandbox/v1/calls")
                return calls
            time.sleep(0.005)

    def empty(self) -> None:
        """Empty the server: the worlds of thousands of runs would slow down each call."""
        with self.lakekeeper.database.write() as session:
            for table in reversed(LakekeeperBase.metadata.sorted_tables):
                if table is not ServerRow.__table__:
                    session.execute(table.delete())


class Operator:
    """Runs operations, each with a new client, as a new process would."""

    def __init__(self, fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fault_server, self._monkeypatch = fault_server, monkeypatch
        self.server: Props = {
            "endpoint": str(fault_server.http.base_url).rstrip("/"),
            "auth": {"kind": "token", "token": "env:TOKEN"},
        }

    def run(self, operation: Callable[[], Any], rule: Props | None = None) -> Any:
        retry = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.002)
        client = Client(
            ServerRef.model_validate(self.server),
            resolve,
            retry=retry,
            transport=ImpatientTransport(rule or {}),
            lists=run_context.current().lists,
        )
        self._monkeypatch.setattr(run_context.RunContext, "client", lambda *_: client)
        try:
            return operation()
        finally:
            client.close()

    def run_with_fault(self, operation: Callable[[], Any], rule: Props) -> tuple[LakekeeperError | None, list[Props]]:
        """Run an operation under a fault; return its error, if any, and the calls that the fault hit."""
        self.fault_server.install(**rule)
        failure: LakekeeperError | None = None
        try:
            self.run(operation, rule)
        except LakekeeperError as error:
            failure = error
        self.fault_server.install()
        return failure, [call for call in self.fault_server.calls() if call["fault"]]

    def record_calls(self, operation: Callable[[], Any]) -> list[Props]:
        self.fault_server.calls()
        self.run(operation)
        return self.fault_server.calls()


def find_message_faults(error: LakekeeperError, endpoint: str, failed_calls: list[Props]) -> list[str]:
    """Return the faults of a message. It must name the first failed write, or else any failed read."""
    message = unquote(str(error))
    faults = [f"shows the secret of {name}" for name, value in SECRETS.items() if value in str(error)]
    if endpoint not in message:
        faults.append("does not name the endpoint")
    culprits = [call for call in failed_calls if call["method"] != "GET"][:1] or failed_calls
    names = [f"{culprit['method']} {unquote(culprit['path'])} " for culprit in culprits]
    if not any(name in message for name in names):
        faults.append(f"names none of the calls {names}")
    return [f"{complaint}: {type(error).__name__}: {error}" for complaint in faults]
