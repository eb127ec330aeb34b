"""The search for unmanaged objects sends requests at the same time, within limits, with equal results."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.cli.app import run
from lakewright.lakekeeper.provider import run_context
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.integration.drift.fleet import Fleet, change

pytestmark = pytest.mark.stand_in("counts requests that run at the same time, and plays faults")

ROLES = 8
"""Roles of each tenant whose members the stack does not declare: a request for each."""


class Gate:
    """Counts the requests that run at the same time, and can hold requests until enough of them arrived."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._running = 0
        self._held = 0
        self._released = asyncio.Event()
        self.most = 0
        """Most requests at the same time."""
        self.held_path = ""
        """End of the paths of requests that are held."""
        self.hold_until = 0
        """Number of requests to hold at the same time before any of them continues."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        scope.setdefault("state", {})["principal"] = TokenPrincipal(f"oidc~{token}", name=token)
        async with self._count():
            if self.hold_until and scope["path"].endswith(self.held_path):
                await self._hold()
            await self._app(scope, receive, send)

    @asynccontextmanager
    async def _count(self) -> Any:
        self._running += 1
        self.most = max(self.most, self._running)
        try:
            yield
        finally:
            self._running -= 1

    async def _hold(self) -> None:
        self._held += 1
        if self._held >= self.hold_until:
            self._released.set()
        await asyncio.wait_for(self._released.wait(), timeout=20)


class Lake:
    """Tenants on a server that enforces grants, and objects that no stack manages."""

    def __init__(self, fleet: Fleet, http: httpx.Client, gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
        self.fleet, self.http, self.gate, self._capsys = fleet, http, gate, capsys

    def drift(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code and the JSON report of `drift --all`."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run(["drift", "--all", "--json", "--unmanaged-tables", *arguments])
        return int(ended.value.code or 0), json.loads(self._capsys.readouterr().out)

    def inject(self, *faults: dict[str, Any]) -> None:
        """Replace the faults of the server."""
        self.http.put("/sandbox/v1/faults", json=list(faults)).raise_for_status()

    def add(self, name: str, *, shares_project: bool = False) -> None:
        """Create a tenant, and an object of each kind that no stack manages."""
        tenant = self.fleet.add(name, roles=ROLES, shares_project=shares_project)
        warehouse, role, project = tenant.ids["main"], tenant.ids["readers"], tenant.ids["project"]
        change(self.http, "role", {"name": f"{name}-strangers" if shares_project else "strangers"}, project)
        member = {"members": [{"type": "user", "id": "oidc~operator"}]}
        change(self.http, f"role/{role}/members", member, project)
        grant = {"writes": [{"type": "select", "role": role}]}
        change(self.http, f"permissions/warehouse/{warehouse}/assignments", grant)
        queue = {"queue-config": {"num-workers": 3}, "max-seconds-since-last-heartbeat": 77}
        change(self.http, f"warehouse/{warehouse}/task-queue/tabular_purge/config", queue)
        path = f"/catalog/v1/{warehouse}/namespaces"
        sales = self.http.get(f"{path}/sales", params={"returnUuid": True}).json()["namespace-uuid"]
        change(self.http, f"warehouse/{warehouse}/namespace/{sales}/protection", {"protected": True})
        for levels in (["jobs"], ["jobs", "nightly"]):
            self.http.post(path, json={"namespace": levels}).raise_for_status()

    def list_findings(self, report: dict[str, Any]) -> dict[str, list[tuple[str, str]]]:
        """Return type and name of the differences by stack."""
        return {
            stack["stack"]: [(entry["type"].rpartition(":")[2], entry["resource"]) for entry in stack["differences"]]
            for stack in report["stacks"]
        }


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Lake]:
    """A project without tenants, on a server that enforces grants."""
    settings = Settings(
        database=f"sqlite:///{tmp_path / 'lakekeeper.db'}", skip_storage_validation=True, authorizer="openfga"
    )
    gate = Gate(FaultSwitch(create_app(settings)))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "test")
    monkeypatch.setenv("STACK_TOKEN", "operator")
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    headers = {"authorization": "Bearer operator"}
    with serve(gate) as endpoint, httpx.Client(base_url=endpoint, timeout=60, headers=headers) as client:
        accepted = {"accept-terms-of-use": True, "is-operator": True}
        client.post("/management/v1/bootstrap", json=accepted).raise_for_status()
        run_context.start(run_context.RunContext())
        auth = {"kind": "token", "token": "env:STACK_TOKEN"}
        yield Lake(Fleet(folder, {"endpoint": endpoint, "auth": auth}), client, gate, capsys)


EXPECTED = [
    ("Role", "strangers"),
    ("RoleMembers", "readers"),
    ("TaskQueueConfig", "tabular_purge of warehouse main"),
    ("Namespace", "main.sales"),
    ("Namespace", "main.jobs"),
    ("Namespace", "main.jobs.nightly"),
    ("Grant", "select of role readers on warehouse main"),
]


def test_concurrency_changes_no_finding(lake: Lake) -> None:
    lake.add("acme")
    lake.add("globex")

    code, one_by_one = lake.drift("--parallel", "1")

    assert code == 7
    assert lake.list_findings(one_by_one) == {"acme": EXPECTED, "globex": EXPECTED}
    lake.gate.most = 0
    code, concurrent = lake.drift("--parallel", "32")
    assert code == 7
    assert concurrent["stacks"] == one_by_one["stacks"]
    assert lake.gate.most > 1


def list_findings_in_shared_project(tenant: str) -> list[tuple[str, str]]:
    """Return the findings of a tenant: roles of the project may belong to other tenants."""
    return [
        ("RoleMembers", f"{tenant}-readers"),
        ("TaskQueueConfig", f"tabular_purge of warehouse {tenant}-main"),
        ("Namespace", f"{tenant}-main.sales"),
        ("Namespace", f"{tenant}-main.jobs"),
        ("Namespace", f"{tenant}-main.jobs.nightly"),
        ("Grant", f"select of role {tenant}-readers on warehouse {tenant}-main"),
    ]


def test_shared_project_is_searched_by_warehouse(lake: Lake) -> None:
    lake.add("acme", shares_project=True)
    lake.add("globex", shares_project=True)

    code, report = lake.drift()

    assert code == 7
    assert lake.list_findings(report) == {name: list_findings_in_shared_project(name) for name in ("acme", "globex")}


def test_requests_within_a_project_run_at_the_same_time(lake: Lake) -> None:
    lake.add("acme")
    lake.gate.held_path, lake.gate.hold_until = "/members", ROLES

    code, report = lake.drift()

    assert (code, lake.list_findings(report)) == (7, {"acme": EXPECTED})


def test_parallel_limits_the_requests_of_the_run(lake: Lake) -> None:
    """The scanner and the search share the limit."""
    lake.add("acme")
    lake.add("globex")
    lake.gate.most = 0
    lake.gate.held_path, lake.gate.hold_until = "/members", 3

    code, report = lake.drift("--parallel", "3")

    assert (code, lake.list_findings(report)) == (7, {"acme": EXPECTED, "globex": EXPECTED})
    assert lake.gate.most == 3


def test_refused_call_hides_no_other_finding(lake: Lake) -> None:
    lake.add("acme")
    refused = {"action": "answer", "path": "*/task-queue/tabular_expiration/config", "status": 403, "count": None}
    lake.inject(refused, {**refused, "path": "*/permissions/namespace/*"})

    code, report = lake.drift()

    assert (code, lake.list_findings(report)) == (1, {"acme": EXPECTED})
    problems = report["stacks"][0]["problems"]
    assert len(problems) == 2
    assert all(problem.startswith("unmanaged objects of project acme could not be searched") for problem in problems)


def test_refused_list_of_roles_hides_no_grant(lake: Lake) -> None:
    lake.add("acme")
    lake.inject({"action": "answer", "method": "GET", "path": "*/management/v1/role", "status": 403, "count": None})

    code, report = lake.drift()

    findings = lake.list_findings(report)["acme"]
    assert code == 1
    assert [kind for kind, _ in findings] == ["TaskQueueConfig", "Namespace", "Namespace", "Namespace", "Grant"]
    assert findings[-1][1].startswith("select of role ")


def test_many_refused_calls_are_counted(lake: Lake) -> None:
    lake.add("acme")
    lake.inject({"action": "answer", "path": "*/members", "status": 403, "count": None})

    code, report = lake.drift()

    assert code == 1
    assert len(report["stacks"][0]["problems"]) == 4
    assert report["stacks"][0]["problems"][-1] == f"{ROLES - 3} more calls for project acme failed"
    assert ("Role", "strangers") in lake.list_findings(report)["acme"]


def test_rate_limited_server_is_searched_completely(lake: Lake) -> None:
    lake.add("acme")
    limited = {"action": "answer", "status": 429, "retry_after": 0}
    lake.inject({**limited, "path": "*/members", "count": 4}, {**limited, "path": "*/assignments", "count": 3})

    code, report = lake.drift()

    assert (code, lake.list_findings(report)) == (7, {"acme": EXPECTED})


def test_server_that_stops_responding_gets_no_more_requests(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.add("acme")
    monkeypatch.setenv("LAKEWRIGHT_ANSWER_WITHIN", "0.2")
    lake.inject({"action": "delay", "path": "*/members", "seconds": 1, "count": None})
    lake.http.delete("/sandbox/v1/calls")

    code, report = lake.drift("--parallel", "1")

    calls = [call["path"] for call in lake.http.get("/sandbox/v1/calls").json()["calls"]]
    assert code == 1
    assert "did not respond" in report["stacks"][0]["problems"][0]
    assert sum(path.endswith("/members") for path in calls) == 1


def test_objects_are_read_once(lake: Lake) -> None:
    lake.add("acme")
    lake.add("globex")
    lake.http.delete("/sandbox/v1/calls")

    lake.drift()

    calls = Counter(
        f"{call['path']}?{call['query']}"
        for call in lake.http.get("/sandbox/v1/calls").json()["calls"]
        if "project" not in call["path"] and not call["path"].endswith(("/role", "/warehouse"))
    )
    assert calls["/management/v1/whoami?"] == 1
    assert [path for path, count in calls.items() if count > 1] == []
