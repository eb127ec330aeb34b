"""The HTTP client: what it retries, what it never retries, and its messages. The transport injects the faults."""

from __future__ import annotations

import httpx
import pytest
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    BusyError,
    ForbiddenError,
    LakekeeperError,
    NoSuchPathError,
    NotAuthenticatedError,
    NotFoundError,
    RefusedError,
    ResponseTimeoutError,
    UnconfirmedError,
    UnreachableError,
)
from lakewright.lakekeeper.api.connection.server import ServerRef

from tests.unit.lakekeeper.scripted_server import OK, QUICK, Answer, Script, refusal


def projects_named(server: ServerRef, *projects: str | None) -> list[str | None]:
    """Return the project that each request names, for one request of each of `projects`."""
    script = Script(httpx.Response(200, json={"ok": True}))
    client = Client(server, str, retry=QUICK, transport=httpx.MockTransport(script))
    for project in projects:
        client.json("GET", "/x", project=project)
    return [one.headers.get("x-project-id") for one in script.requests]


def test_request_names_its_own_project_or_the_servers() -> None:
    address = "http://lake.test:8181"
    assert projects_named(ServerRef(endpoint=address), None, "acme") == [None, "acme"]
    assert projects_named(ServerRef(endpoint=address, project_id="main"), None, "acme") == ["main", "acme"]


@pytest.mark.parametrize(
    "fault",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.ReadError("broken"),
        httpx.RemoteProtocolError("broken"),
        refusal(408, "RequestTimeout"),
        refusal(429),
        refusal(502),
        refusal(503, "CatalogBackendError"),
        refusal(504),
        refusal(409, "CatalogBackendError"),
        refusal(409, "RequestInProgress"),
        httpx.Response(503, text="upstream", headers={"content-type": "text/plain"}),
    ],
    ids=str,
)
def test_temporary_fault_of_a_repeatable_call_is_retried(fault: Answer) -> None:
    script = Script(fault, fault, OK)
    assert script.client().json("GET", "/x") == {"ok": True}
    assert len(script.requests) == 3


@pytest.mark.parametrize(
    "fault",
    [
        httpx.ConnectError("refused"),
        refusal(429),
        refusal(503, "MaintenanceModeError"),
        refusal(409, "CatalogBackendError"),
    ],
    ids=str,
)
def test_create_is_retried_when_nothing_was_applied(fault: Answer) -> None:
    script = Script(fault, OK)
    assert script.client().json("POST", "/x", body={}, idempotent=False) == {"ok": True}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (httpx.ReadError("broken"), UnconfirmedError),
        (httpx.RemoteProtocolError("broken"), UnconfirmedError),
        (httpx.ReadTimeout("slow"), ResponseTimeoutError),
        (refusal(408), ResponseTimeoutError),
        (refusal(502), UnconfirmedError),
        (refusal(503, "CatalogBackendError"), UnconfirmedError),
        (refusal(504), UnconfirmedError),
    ],
    ids=str,
)
def test_create_that_may_be_applied_is_never_sent_again(fault: Answer, error: type[LakekeeperError]) -> None:
    script = Script(fault, OK)
    with pytest.raises(error):
        script.client().call("POST", "/x", body={}, idempotent=False)
    assert len(script.requests) == 1


def test_retry_after_of_the_server_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waits.append)
    script = Script(refusal(503, "MaintenanceModeError", headers={"retry-after": "2"}), refusal(429), OK)
    script.client().json("GET", "/x")
    assert waits[0] == 2
    assert waits[1] < 1


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (refusal(404, "NoSuchWarehouseException", "gone"), NotFoundError, "404 NoSuchWarehouseException: gone"),
        (refusal(403, "WarehouseActionForbidden", "may not"), ForbiddenError, "403 WarehouseActionForbidden: may not"),
        (refusal(409, "WarehouseHasUnfinishedTasks", "1 task"), BusyError, "409 WarehouseHasUnfinishedTasks: 1 task"),
        (httpx.Response(404), NoSuchPathError, "404: no reason given"),
        (
            httpx.Response(422, text="missing field", headers={"content-type": "text/plain"}),
            RefusedError,
            "422: missing field",
        ),
        (httpx.Response(500, html="<html>"), RefusedError, "500: no reason given"),
    ],
)
def test_refusal_names_call_endpoint_and_reason(answer: httpx.Response, error: type[RefusedError], says: str) -> None:
    with pytest.raises(error) as refused:
        Script(answer).client().call("GET", "/management/v1/thing")
    assert str(refused.value) == f"GET /management/v1/thing at http://lake.test:8181 responded with {says}"


def test_unreachable_server_is_one_sentence_with_advice() -> None:
    with pytest.raises(UnreachableError) as unreachable:
        Script(httpx.ConnectError("Connection refused")).client().call("GET", "/x")
    assert str(unreachable.value) == (
        "Lakekeeper at http://lake.test:8181 cannot be reached for GET /x: Connection refused."
        " Check the endpoint and that the server runs."
    )


def test_slow_server_is_waited_for_once() -> None:
    script = Script(httpx.ReadTimeout("slow"))
    with pytest.raises(ResponseTimeoutError, match=r"GET /x at http://lake.test:8181 did not respond within 35 s"):
        script.client().call("GET", "/x")
    assert len(script.requests) == 1


def test_response_of_another_service_is_recognised() -> None:
    with pytest.raises(RefusedError, match=r"without a JSON object. Is this a Lakekeeper server"):
        Script(httpx.Response(200, html="<html>welcome")).client().server()


def test_endpoint_with_too_much_path_is_recognised() -> None:
    with pytest.raises(NoSuchPathError, match=r"Is this a Lakekeeper server\? `endpoint` is its address without"):
        Script(httpx.Response(404)).client().server()


def test_redirect_names_its_target_without_the_query() -> None:
    to_log_in = httpx.Response(302, headers={"location": "https://lake.test/login?state=s3cret"})
    with pytest.raises(
        RefusedError, match=r"302: it redirects to https://lake\.test\. If .* set `endpoint` to it$"
    ) as refused:
        Script(to_log_in).client().server()
    assert "s3cret" not in str(refused.value)


def test_401_says_what_to_check() -> None:
    with pytest.raises(NotAuthenticatedError, match=r"401 MissingAuthorizationHeader: .*Check `auth`"):
        Script(refusal(401, "MissingAuthorizationHeader")).client().call("GET", "/x")


def test_lists_and_booleans_in_a_query() -> None:
    """They are written as the server reads them."""
    script = Script(OK)
    script.client().json("GET", "/x", params={"warehouseStatus": ["active", "inactive"], "force": True}, project="p")
    sent = script.requests[0]
    assert sent.url.query == b"warehouseStatus=active&warehouseStatus=inactive&force=true"
    assert sent.headers["x-project-id"] == "p"


def test_server_info_is_read_once() -> None:
    script = Script(httpx.Response(200, json={"version": "0.13.3", "bootstrapped": True}))
    client = script.client()
    assert client.server() is client.server()
    assert len(script.requests) == 1


WAREHOUSE = "0199a7c0-0000-7000-8000-000000000000"


def test_call_is_repeated_when_the_warehouse_is_active() -> None:
    """Servers cache a warehouse's status for a minute and update that cache when the warehouse is read."""
    missing, active = refusal(404, "NoSuchWarehouseException"), httpx.Response(200, json={"status": "active"})
    script = Script(missing, active, httpx.Response(200, json={"namespaces": []}))
    assert script.client().json("GET", f"/catalog/v1/{WAREHOUSE}/namespaces") == {"namespaces": []}
    assert script.requests[1].url.path == f"/management/v1/warehouse/{WAREHOUSE}"


@pytest.mark.parametrize(
    "answer", [httpx.Response(200, json={"status": "inactive"}), refusal(404, "NoSuchWarehouseException"), refusal(403)]
)
def test_call_on_no_active_warehouse_is_not_repeated(answer: httpx.Response) -> None:
    script = Script(refusal(404, "NoSuchWarehouseException"), answer)
    with pytest.raises(NotFoundError):
        script.client().json("GET", f"/catalog/v1/{WAREHOUSE}/namespaces")
    assert len(script.requests) == 2


@pytest.mark.parametrize(("value", "is_enabled"), [("", False), ("0", False), ("1", True)])
def test_zero_disables_tracebacks(value: str, monkeypatch: pytest.MonkeyPatch, *, is_enabled: bool) -> None:
    """The variable is read like `LAKEWRIGHT_DEBUG`."""
    monkeypatch.setenv("LAKEWRIGHT_TRACEBACKS", value)
    assert settings.tracebacks() is is_enabled
