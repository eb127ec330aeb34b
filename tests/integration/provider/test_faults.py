"""Every fault at every call of every operation: no duplicate, no orphan, no loss, and a useful message.

Each run counts the calls of an operation that succeeds, then injects the fault at the first call, at the second,
and so on: once, and at all calls from there on. After a failure the fault is removed and the operation runs
again, as the next `up`, `refresh` or `destroy` does. Then the server must hold what is declared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from lakewright.credentials.references import resolve
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.api.connection.retry import RetryPolicy
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider import base as provider
from lakewright_sandbox.in_process import serving
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.database.models import LakekeeperBase, ServerRow
from lakewright_sandbox.lakekeeper.fault_injection import Delay, FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper

from .conftest import Props, Resource
from .fault_cases import CASES, SECRETS, Case, World

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
OPERATIONS = ("create", "update", "refresh", "delete")
READ_TIMEOUT = 0.1
"""Timeout in seconds of a call that the fault delays; other calls keep their usual timeout."""
DELAY = 0.4
"""Seconds that a delayed call takes: its effect comes after the client gave up and looked."""

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


BRIEFLY: dict[str, tuple[int | None, ...]] = {
    "done, then dropped": (1,),
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
            if not any(one["running"] for one in calls):
                self.http.delete("/sandbox/v1/calls")
                return calls
            time.sleep(0.005)

    def empty(self) -> None:
        """Empty the server: the worlds of thousands of runs would slow down each call."""
        with self.lakekeeper.database.write() as session:
            for table in reversed(LakekeeperBase.metadata.sorted_tables):
                if table is not ServerRow.__table__:
                    session.execute(table.delete())


@pytest.fixture(scope="module")
def fault_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    database = f"sqlite:///{tmp_path_factory.mktemp('faults') / 'lakekeeper.db'}"
    app = create_app(Settings(database=database, version=NEWEST, skip_storage_validation=True))
    with serving(FaultSwitch(app)) as endpoint, httpx.Client(base_url=endpoint, timeout=10) as http:
        yield FaultServer(http, app.state.lakekeeper)


@pytest.fixture
def operator(fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    operator = Operator(fault_server, monkeypatch)
    yield operator
    fault_server.install()
    fault_server.calls()


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
            ServerRef.model_validate(self.server), resolve, retry=retry, transport=ImpatientTransport(rule or {})
        )
        self._monkeypatch.setattr(provider, "shared", lambda *_: client)
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
        return failure, [one for one in self.fault_server.calls() if one["fault"]]

    def calls_of(self, operation: Callable[[], Any]) -> list[Props]:
        self.fault_server.calls()
        self.run(operation)
        return self.fault_server.calls()


class Run:
    """One object from creation to deletion, in its own world."""

    def __init__(self, case: Case, operator: Operator) -> None:
        self.case, self.operator = case, operator
        self.world = World(operator.fault_server.http, operator.fault_server.lakekeeper)
        case.wipe(self.world)
        self.resource = Resource(case.provider())
        self.declared = {"server": operator.server} | case.declared(self.world)
        self.changed = self.declared | (case.changed(self.world) if case.changed else {})
        self.before = self.world.everything()
        operator.fault_server.calls()

    @property
    def adopting(self) -> Props:
        """Declare what lets a stack adopt an object that its state does not have."""
        return {"adopt": True} if "adopt" in self.case.provider().args.model_fields else {}

    def prepared_for(self, operation: str) -> Run:
        if operation != "create":
            self.operator.run(self.create)
        if operation == "delete":
            if self.declared.get("protected"):
                self.declared |= {"protected": False}
                self.operator.run(self.create)
            self.case.fill(self.world, self.resource.id)
        self.operator.fault_server.calls()
        return self

    def create(self) -> None:
        self.resource.up(**self.declared)

    def update(self) -> None:
        self.resource.up(**self.changed)

    def refresh(self) -> None:
        assert self.resource.refresh() == "same"

    def delete(self) -> None:
        self.resource.destroy()

    def check(self, operation: str) -> None:
        """Check that the server holds what is declared, once, and everything else as before."""
        self.operator.run(self._check_delete if operation == "delete" else self._check_present)

    def _check_present(self) -> None:
        assert self.resource.refresh() == "same"
        assert self.resource.up(**self.resource.inputs) == "same"
        again = Resource(self.case.provider())
        again.up(**self.resource.inputs | self.adopting)  # What a stack with a lost state would do with it.
        assert again.id == self.resource.id
        now = self.world.everything()
        made = {kind: now[kind].keys() - self.before[kind].keys() for kind in ("warehouses", "namespaces", "roles")}
        made_ids = [now[kind] - self.before[kind] for kind in ("projects", "users")]
        assert sum(map(len, [*made_ids, *made.values()])) <= 1
        assert self.before["grants"] <= now["grants"]
        assert len(now["grants"] - self.before["grants"]) == self.case.grants
        assert now["secrets"] - self.before["secrets"] == bool(self.declared.get("credential"))
        assert {kind: {key: now[kind].get(key) for key in self.before[kind]} for kind in made} == {
            kind: self.before[kind] for kind in made
        }

    def _check_delete(self) -> None:
        if not self.case.stays:
            assert self.world.everything() == self.before


def mistakes_of_message(error: LakekeeperError, endpoint: str, failed_calls: list[Props]) -> list[str]:
    """Return the faults of a message. It must name the first failed write, or else any failed read."""
    message = unquote(str(error))
    found = [f"shows the secret of {name}" for name, value in SECRETS.items() if value in str(error)]
    if endpoint not in message:
        found.append("does not name the endpoint")
    culprits = [one for one in failed_calls if one["method"] != "GET"][:1] or failed_calls
    names = [f"{one['method']} {unquote(one['path'])} " for one in culprits]
    if not any(name in message for name in names):
        found.append(f"names none of the calls {names}")
    return [f"{complaint}: {type(error).__name__}: {error}" for complaint in found]


def _matrix() -> Iterator[Any]:
    for case in CASES:
        for operation in OPERATIONS:
            if operation != "update" or case.changed:
                for fault in FAULTS if FULL else BRIEFLY:
                    name = f"{case.name}-{operation}-{fault}".replace(" ", "-").replace(",", "")
                    yield pytest.param(case, operation, fault, id=name)


@pytest.mark.parametrize(("case", "operation", "fault"), list(_matrix()))
def test_fault_at_every_call(case: Case, operation: str, fault: str, operator: Operator) -> None:
    operator.fault_server.empty()
    clean = Run(case, operator).prepared_for(operation)
    calls = operator.calls_of(getattr(clean, operation))
    clean.check(operation)
    assert calls
    for number in range(1, len(calls) + 1):
        for count in (1, None) if FULL else BRIEFLY[fault]:
            _inject_at(case, operation, operator, FAULTS[fault] | {"nth": number, "count": count})


def _inject_at(case: Case, operation: str, operator: Operator, rule: Props) -> None:
    run = Run(case, operator).prepared_for(operation)
    failure, failed_calls = operator.run_with_fault(getattr(run, operation), rule)
    if operation == "create" and (rule["action"], rule["count"]) == ("drop", 1):
        assert failure is None, "one lost answer is found out within the operation"
    if failure:
        assert mistakes_of_message(failure, operator.server["endpoint"], failed_calls) == []
        if "needs `adopt`" in str(failure):
            run.declared |= run.adopting
        operator.run(getattr(run, operation))
    run.check(operation)
