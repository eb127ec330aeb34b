"""Every fault at every call of every operation: no duplicate, no orphan, nothing lost, and a message that helps.

Each run counts the calls of an operation that goes well, and then lets the fault strike at the first of them, at the
second, and so on: once, and from there on always. After a failure the fault is taken away and the operation is run
again, as the next `up`, `refresh` or `destroy` does; what is on the server then is what is declared.
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
from lakewright.lakekeeper import provider
from lakewright.lakekeeper.api.client import Client
from lakewright.lakekeeper.api.errors import LakekeeperError
from lakewright.lakekeeper.api.retry import RetryPolicy
from lakewright.lakekeeper.api.server import ServerRef
from lakewright_sandbox.in_process import serving
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.database.models import Base, ServerRow
from lakewright_sandbox.lakekeeper.fault_injection import Delay, FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper

from .conftest import Props, Resource
from .fault_cases import CASES, SECRETS, Case, World

FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
OPERATIONS = ("create", "update", "refresh", "delete")
PATIENCE = 0.1
"""Seconds after which this client takes a call for too slow, where that is the fault: then, and for no other call."""
TOO_SLOW = 0.4
"""Seconds that such a call takes: when its effect comes late, the client has long given up and looked."""

FAULTS: dict[str, Props] = {
    "slow": {"action": "delay", "seconds": 0.01},
    "too slow, then done": {"action": "delay", "seconds": TOO_SLOW},
    "done, then too slow": {"action": "delay", "seconds": TOO_SLOW, "when": "after"},
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
"""The faults of the short form, and how often each strikes: once, or always."""


class Impatient(httpx.HTTPTransport):
    """The real way to the server, with little time for the answers that a rule makes too slow.

    For those alone: on a busy machine any other answer may take as long, and what fails then is not what was struck.
    """

    def __init__(self, rule: Props) -> None:
        too_slow = rule.get("seconds") == TOO_SLOW
        self._struck = Delay.model_validate(rule) if too_slow else None
        self._sent = 0
        super().__init__(verify=False)  # there is no TLS on it, and reading all authorities takes long

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._sent += 1
        if self._struck and self._struck.hits(self._sent):
            request.extensions["timeout"] |= {"read": PATIENCE}
        return super().handle_request(request)


@dataclass
class Switched:
    """A server with a fault switch, and somebody else's client of it."""

    http: httpx.Client
    lakekeeper: Lakekeeper

    def install(self, **rule: Any) -> None:
        self.http.put("/sandbox/v1/faults", json=[rule] if rule else []).raise_for_status()

    def calls(self) -> list[Props]:
        """What was called since the last time; returns when all of it has ended."""
        while True:
            calls = self.http.get("/sandbox/v1/calls").json()["calls"]
            if not any(one["running"] for one in calls):
                self.http.delete("/sandbox/v1/calls")
                return calls
            time.sleep(0.005)

    def empty(self) -> None:
        """As a server that was never used: the worlds of thousands of runs would make each call of the next slower."""
        with self.lakekeeper.database.write() as session:
            for table in reversed(Base.metadata.sorted_tables):
                if table is not ServerRow.__table__:
                    session.execute(table.delete())


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switched]:
    database = f"sqlite:///{tmp_path_factory.mktemp('faults') / 'lakekeeper.db'}"
    app = create_app(Settings(database=database, version=NEWEST, skip_storage_validation=True))
    with serving(FaultSwitch(app)) as endpoint, httpx.Client(base_url=endpoint, timeout=10) as http:
        yield Switched(http, app.state.lakekeeper)


@pytest.fixture
def operator(switched: Switched, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    operator = Operator(switched, monkeypatch)
    yield operator
    switched.install()
    switched.calls()


class Operator:
    """Who runs operations: each with a client of its own, as a process of its own would have."""

    def __init__(self, switched: Switched, monkeypatch: pytest.MonkeyPatch) -> None:
        self.switched, self._monkeypatch = switched, monkeypatch
        self.server: Props = {
            "endpoint": str(switched.http.base_url).rstrip("/"),
            "auth": {"kind": "token", "token": "env:TOKEN"},
        }

    def run(self, operation: Callable[[], Any], rule: Props | None = None) -> Any:
        retry = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.002)
        client = Client(ServerRef.model_validate(self.server), resolve, retry=retry, transport=Impatient(rule or {}))
        self._monkeypatch.setattr(provider, "shared", lambda *_: client)
        try:
            return operation()
        finally:
            client.close()

    def struck(self, operation: Callable[[], Any], rule: Props) -> tuple[LakekeeperError | None, list[Props]]:
        """Runs an operation under a fault: how it failed, if it did, and the calls that were struck."""
        self.switched.install(**rule)
        failure: LakekeeperError | None = None
        try:
            self.run(operation, rule)
        except LakekeeperError as error:
            failure = error
        self.switched.install()
        return failure, [one for one in self.switched.calls() if one["fault"]]

    def calls_of(self, operation: Callable[[], Any]) -> list[Props]:
        self.switched.calls()
        self.run(operation)
        return self.switched.calls()


class Run:
    """One life of one object in a world of its own."""

    def __init__(self, case: Case, operator: Operator) -> None:
        self.case, self.operator = case, operator
        self.world = World(operator.switched.http, operator.switched.lakekeeper)
        case.wipe(self.world)
        self.resource = Resource(case.provider())
        self.declared = {"server": operator.server} | case.declared(self.world)
        self.changed = self.declared | (case.changed(self.world) if case.changed else {})
        self.before = self.world.everything()
        operator.switched.calls()

    @property
    def adopting(self) -> Props:
        """What lets a stack take over an object that its state does not know."""
        return {"adopt": True} if "adopt" in self.case.provider().args.model_fields else {}

    def prepared_for(self, operation: str) -> Run:
        if operation != "create":
            self.operator.run(self.create)
        if operation == "delete":
            if self.declared.get("protected"):
                self.declared |= {"protected": False}
                self.operator.run(self.create)
            self.case.fill(self.world, self.resource.id)
        self.operator.switched.calls()
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
        """That the server holds what is declared, once, and everything else as it was."""
        self.operator.run(self._check_delete if operation == "delete" else self._check_there)

    def _check_there(self) -> None:
        assert self.resource.refresh() == "same"
        assert self.resource.up(**self.resource.inputs) == "same"
        again = Resource(self.case.provider())
        again.up(**self.resource.inputs | self.adopting)  # what a lost state would make of it
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


def _complaints(error: LakekeeperError, endpoint: str, struck: list[Props]) -> list[str]:
    """What is wrong with a message. It names the first write that was struck, or else any of the reads."""
    message = unquote(str(error))
    found = [f"shows the secret of {name}" for name, value in SECRETS.items() if value in str(error)]
    if endpoint not in message:
        found.append("does not name the endpoint")
    culprits = [one for one in struck if one["method"] != "GET"][:1] or struck
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
def test_at_every_call(case: Case, operation: str, fault: str, operator: Operator) -> None:
    operator.switched.empty()
    clean = Run(case, operator).prepared_for(operation)
    calls = operator.calls_of(getattr(clean, operation))
    clean.check(operation)
    assert calls
    for number in range(1, len(calls) + 1):
        for count in (1, None) if FULL else BRIEFLY[fault]:
            _strike(case, operation, operator, FAULTS[fault] | {"nth": number, "count": count})


def _strike(case: Case, operation: str, operator: Operator, rule: Props) -> None:
    run = Run(case, operator).prepared_for(operation)
    failure, struck = operator.struck(getattr(run, operation), rule)
    if operation == "create" and (rule["action"], rule["count"]) == ("drop", 1):
        assert failure is None, "one lost answer is found out within the operation"
    if failure:
        assert _complaints(failure, operator.server["endpoint"], struck) == []
        if "needs `adopt`" in str(failure):
            run.declared |= run.adopting
        operator.run(getattr(run, operation))
    run.check(operation)
