"""The server of `lakewright ui`: who gets data, and how the report follows its sources."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lakewright.fleet.selection import Selection
from lakewright.report.live_report import LiveReport
from lakewright.report.requests import ReportRequest
from lakewright.report.server import ReportServer
from lakewright_engine.project.project import PulumiProject

from tests.fleet_documents import list_fleet_stacks, make_stacks


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "list.json"
    file.write_text(json.dumps(list_fleet_stacks(make_stacks(2))))
    return file


@pytest.fixture
def server(source: Path) -> Iterator[ReportServer]:
    project = PulumiProject(source.parent / "Pulumi.yaml", "lake")
    report = LiveReport(ReportRequest(project, Selection(), [source]), interval=600, progress=print)
    with ReportServer(report) as server:
        report.start()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        report.stop()
        server.shutdown()
        thread.join()


def send(server: ReportServer, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return connection.getresponse()


def read_report(server: ReportServer) -> dict[str, Any]:
    return json.loads(send(server, "GET", "/report.json", Authorization=f"Bearer {server.token}").read())


def wait_for_tenants(server: ReportServer, count: int) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while len((report := read_report(server))["tenants"]) != count or report["is_collecting"]:
        assert time.monotonic() < deadline, report
        time.sleep(0.02)
    return report


def test_page_is_public_and_has_no_data(server: ReportServer) -> None:
    response = send(server, "GET", "/")
    page = response.read().decode()

    assert response.status == 200
    assert response.headers["X-Frame-Options"] == "DENY"
    assert server.token not in page
    assert "orders" not in page


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer wrong", "Basic wrong"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/report.json"), ("POST", "/refresh")])
def test_data_needs_the_token(server: ReportServer, method: str, path: str, authorization: str) -> None:
    response = send(server, method, path, Authorization=authorization)

    assert response.status == 403
    assert response.read() == b""


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1", "localhost:1", "127.0.0.1.attacker.example:PORT"])
@pytest.mark.parametrize("path", ["/", "/report.json"])
def test_other_hosts_are_refused(server: ReportServer, host: str, path: str) -> None:
    """A name that an attacker's DNS points at the loopback address, even with the token."""
    host = host.replace("PORT", str(server.server_port))
    response = send(server, "GET", path, Host=host, Authorization=f"Bearer {server.token}")

    assert response.status == 421
    assert response.read() == b""


def test_localhost_is_this_server(server: ReportServer) -> None:
    host = f"localhost:{server.server_port}"
    assert send(server, "GET", "/report.json", Host=host, Authorization=f"Bearer {server.token}").status == 200


def test_server_listens_on_loopback_alone(server: ReportServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_unknown_paths_and_methods(server: ReportServer) -> None:
    assert send(server, "GET", "/../etc/passwd").status == 404
    assert send(server, "POST", "/report.json").status == 404
    assert send(server, "DELETE", "/report.json").status == 501


def test_report_follows_its_files(server: ReportServer, source: Path) -> None:
    wait_for_tenants(server, 2)
    source.write_text(json.dumps(list_fleet_stacks(make_stacks(3))))
    assert send(server, "POST", "/refresh", Authorization=f"Bearer {server.token}").status == 202
    wait_for_tenants(server, 3)


def test_broken_file_keeps_the_last_report(server: ReportServer, source: Path) -> None:
    wait_for_tenants(server, 2)
    source.write_text("{")
    send(server, "POST", "/refresh", Authorization=f"Bearer {server.token}")

    assert len(wait_for_tenants(server, 2)["tenants"]) == 2


def test_unchanged_report_is_not_sent_again(server: ReportServer) -> None:
    wait_for_tenants(server, 2)
    authorization = f"Bearer {server.token}"
    version = send(server, "GET", "/report.json", Authorization=authorization).headers["ETag"]
    response = send(server, "GET", "/report.json", Authorization=authorization, If_None_Match=version)

    assert response.status == 304


def test_each_server_has_a_token_of_its_own(source: Path, server: ReportServer) -> None:
    with ReportServer(server.report) as other:
        assert other.token != server.token
        assert len(other.token) >= 43
