"""Fault injection: rules match calls by method, path and number, and inject the configured fault."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from starlette.testclient import TestClient

PROJECT = "/management/v1/project"
BROKEN = (httpx.RemoteProtocolError, httpx.ReadError)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    database = tmp_path_factory.mktemp("faults") / "lakekeeper.db"
    with serve(FaultSwitch(create_app(Settings(database=f"sqlite:///{database}")))) as endpoint:
        yield endpoint


@pytest.fixture
def http(endpoint: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=endpoint, timeout=10) as client:
        client.delete("/sandbox/v1/faults")
        client.delete("/sandbox/v1/calls")
        yield client
        client.delete("/sandbox/v1/faults")


def inject(http: httpx.Client, **rule: Any) -> None:
    assert http.put("/sandbox/v1/faults", json=[rule]).status_code == 200


def create(http: httpx.Client, project: str) -> httpx.Response:
    return http.post(PROJECT, json={"project-id": project, "project-name": project})


def has_project(http: httpx.Client, project: str) -> bool:
    return project in {one["project-id"] for one in http.get("/management/v1/project-list").json()["projects"]}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_is_dropped_before_or_after_the_effect(http: httpx.Client, when: str) -> None:
    inject(http, method="POST", path=PROJECT, action="drop", when=when)
    with pytest.raises(BROKEN):
        create(http, f"dropped-{when}")
    assert has_project(http, f"dropped-{when}") == (when == "after")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_status_replaces_the_response(http: httpx.Client, status: int, when: str) -> None:
    inject(http, method="POST", path=PROJECT, action="answer", status=status, when=when, retry_after=1)
    response = create(http, f"p{status}-{when}")
    assert (response.status_code, response.json()["error"]["code"]) == (status, status)
    assert response.headers["retry-after"] == "1"
    assert has_project(http, f"p{status}-{when}") == (when == "after")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_call_is_delayed(http: httpx.Client, when: str) -> None:
    inject(http, method="POST", action="delay", seconds=0.3, when=when)
    response = create(http, f"slow-{when}")
    assert response.status_code == 201
    assert response.elapsed.total_seconds() > 0.25


def test_bodies_in_plain_text(http: httpx.Client) -> None:
    inject(http, action="answer", status=502, body="text")
    response = http.get("/health")
    assert response.headers["content-type"].startswith("text/plain")
    assert response.text.startswith("upstream connect error")


def test_a_gateway_that_echoes_the_request(http: httpx.Client) -> None:
    inject(http, method="POST", action="answer", status=503, body="echo", when="after")
    assert '{"project-id":"echoed","project-name":"echoed"}' in create(http, "echoed").text
    assert has_project(http, "echoed")


def test_an_expired_token(http: httpx.Client) -> None:
    inject(http, action="expired-token")
    response = http.get("/management/v1/info")
    assert (response.status_code, response.json()["error"]["type"]) == (401, "AuthenticationFailed")


def test_rules_count_their_own_matches(http: httpx.Client) -> None:
    inject(http, method="GET", path="/management/*/info", nth=2, count=2, action="answer", status=503)
    http.get("/health")
    assert [http.get("/management/v1/info").status_code for _ in range(4)] == [200, 503, 503, 200]
    assert http.get("/sandbox/v1/faults").json()["faults"][0]["seen"] == 4


def test_a_rule_without_count_applies_to_all_later_calls(http: httpx.Client) -> None:
    inject(http, nth=2, count=None, action="answer", status=503)
    assert [http.get("/health").status_code for _ in range(4)] == [200, 503, 503, 503]
    http.delete("/sandbox/v1/faults")
    assert http.get("/health").status_code == 200


def test_the_first_rule_that_is_due_wins(http: httpx.Client) -> None:
    rules = [{"nth": 2, "action": "answer", "status": 504}, {"count": None, "action": "answer", "status": 503}]
    http.put("/sandbox/v1/faults", json=rules)
    assert [http.get("/health").status_code for _ in range(3)] == [503, 504, 503]


def test_calls_are_logged_as_they_were_sent(http: httpx.Client) -> None:
    inject(http, path="/health", action="answer", status=503, nth=2)
    http.get("/health", params={"a": "1"})
    http.get("/health")
    http.get("/catalog/v1/x/namespaces/a%1Fb")
    calls = [tuple(call.values()) for call in http.get("/sandbox/v1/calls").json()["calls"]]
    assert calls == [
        ("GET", "/health", "a=1", 200, None, False),
        ("GET", "/health", "", 503, "answer", False),
        ("GET", "/catalog/v1/x/namespaces/a%1Fb", "", 400, None, False),
    ]
    assert http.delete("/sandbox/v1/calls").json() == {"calls": []}


def test_running_calls_differ_from_ended_calls(http: httpx.Client, endpoint: str) -> None:
    inject(http, path="/health", action="delay", seconds=5)
    slow = threading.Thread(target=lambda: _time_out(endpoint))
    slow.start()
    slow.join()
    assert [call["running"] for call in http.get("/sandbox/v1/calls").json()["calls"]] == [True]


def _time_out(endpoint: str) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{endpoint}/health", timeout=0.2)


@pytest.mark.parametrize("rule", [{"action": "explode"}, {"action": "drop", "nth": 0}, {"action": "delay"}], ids=str)
def test_an_invalid_rule_is_refused(http: httpx.Client, rule: dict[str, Any]) -> None:
    assert http.put("/sandbox/v1/faults", json=[rule]).status_code == 422


def test_only_local_clients_may_inject_faults(tmp_path: Path) -> None:
    app = create_app(Settings(database=f"sqlite:///{tmp_path / 'lakekeeper.db'}"))
    stranger = TestClient(FaultSwitch(app), client=("203.0.113.7", 50000))
    assert stranger.get("/sandbox/v1/faults").status_code == 404
    assert stranger.get("/health").status_code == 200


def test_a_server_started_without_the_switch_has_none(lakekeeper: httpx.Client) -> None:
    assert lakekeeper.get("/sandbox/v1/faults").status_code == 404


def test_a_server_started_with_the_switch_has_it(start_lakekeeper: Any) -> None:
    with start_lakekeeper("--fault-switch", bootstrap=False) as client:
        assert client.get("/sandbox/v1/faults").json() == {"faults": []}
