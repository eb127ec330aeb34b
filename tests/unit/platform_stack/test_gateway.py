"""The gateway's configuration in a real nginx: which paths reach the server, and as what."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from lakewright.platform_stack.manifests.gateway_config import PROBE_PATH, GatewayConfig, nginx_config
from lakewright_sandbox.runtime.processes import free_port

from tests.nginx_process import NGINX, serve_nginx

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: nginx-light)")

FORWARDED = [
    "/health",
    "/catalog/v1/config?warehouse=acme%2Fsales",
    "/catalog/v1/prefix/namespaces/a%1Fb/tables/t",
    "/catalog/v1/prefix/namespaces/men%C3%BC%20bar",
    "/catalog/v1/prefix/namespaces/v1.2/tables/a..b",
    "/catalog/v1/prefix/namespaces/%25",
    "/catalog/v1/config?next=/../management//x",
]
REFUSED = [
    "/",
    "/management/v1/info",
    "/management",
    "/ui",
    "/swagger-ui",
    "/lakekeeper/v1/x",
    "/catalogue/v1",
    "/Catalog/v1",
    "/healthy",
    "/health/",
    "//management/v1/info",
    "/catalog//management",
    "/catalog/../management/v1/info",
    "/catalog/%2e%2e/management/v1/info",
    "/catalog/.%2E/management/v1/info",
    "/catalog/%2e%2e%2fmanagement/v1/info",
    "/catalog/..%2Fmanagement/v1/info",
    "/catalog%2f..%2fmanagement",
    "/catalog/..%5cmanagement",
    "/catalog/..\\management",
    "/catalog/..;/management/v1/info",
    "/catalog/./v1/config",
    "/catalog/v1/%252e%252e/management",
    "/catalog/v1/%252fmanagement",
    "/catalog/v1/..",
    "/catalog/v1/x%00",
    "/catalog/v1/prefix/namespaces/a%2Fb",
    "/%63atalog/v1/config",
    "/catalog/../../management",
]


LARGE_PATH, LARGE_SIZE = "/catalog/large", 16 * 1024 * 1024
"""Path of a response of that many bytes."""


class Upstream(BaseHTTPRequestHandler):
    """Responds with the request line and headers that it received, or with a large body."""

    def do_GET(self) -> None:
        headers = "\n".join(f"{name.lower()}: {value}" for name, value in self.headers.items())
        body = f"{self.path}\n{headers}".encode()
        if self.path == LARGE_PATH:
            body = b"x" * LARGE_SIZE
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gateway")


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[int]:
    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    Thread(target=upstream.serve_forever, daemon=True).start()
    port = free_port()
    config = GatewayConfig(
        upstream=f"127.0.0.1:{upstream.server_port}",
        port=port,
        max_body_size=1000,
        bind="127.0.0.1",
        scratch=str(folder),
    )
    file = folder / "nginx.conf"
    file.write_text(nginx_config(config))
    with serve_nginx(file, f"http://127.0.0.1:{port}{PROBE_PATH}"):
        yield port
    upstream.shutdown()


@pytest.fixture
def ask(gateway: int) -> Callable[[str], tuple[int, str]]:
    """Return a function that sends a path exactly as written, and returns status and body."""

    def send(target: str, *headers: str, method: str = "GET") -> tuple[int, str]:
        lines = [f"{method} {target} HTTP/1.1", "Host: catalog", "Connection: close", *headers, "", ""]
        with socket.create_connection(("127.0.0.1", gateway), timeout=10) as connection:
            connection.sendall("\r\n".join(lines).encode())
            response = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        head, _, body = response.partition("\r\n\r\n")
        return int(head.split()[1]), body

    return send


@pytest.mark.parametrize("path", FORWARDED)
def test_catalog_and_health_are_forwarded_unchanged(ask: Callable[[str], tuple[int, str]], path: str) -> None:
    status, body = ask(path)

    assert status == 200
    assert body.splitlines()[0] == path


@pytest.mark.parametrize("path", REFUSED)
def test_other_paths_never_reach_the_server(ask: Callable[[str], tuple[int, str]], path: str) -> None:
    status, body = ask(path)

    assert status in {400, 404}
    assert "host: catalog" not in body


def test_an_absolute_address_does_not_bypass_the_rules(ask: Callable[[str], tuple[int, str]]) -> None:
    assert ask("http://catalog/management/v1/info")[0] == 404
    assert ask("http://catalog/catalog/v1/config")[0] == 200


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND"])
def test_other_methods_are_refused(ask: Callable[..., tuple[int, str]], method: str) -> None:
    assert ask("/catalog/v1/config", method=method)[0] in {400, 405}


def test_a_client_cannot_choose_the_servers_addresses(ask: Callable[..., tuple[int, str]]) -> None:
    _, body = ask(
        "/catalog/v1/config",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Prefix: /management",
        "Forwarded: host=evil",
    )

    assert "evil" not in body
    assert "/management" not in body


def test_tokens_and_project_reach_the_server(ask: Callable[..., tuple[int, str]]) -> None:
    _, body = ask("/catalog/v1/config", "Authorization: Bearer abc", "X-Project-Id: acme")

    assert "authorization: Bearer abc" in body
    assert "x-project-id: acme" in body


def test_a_body_over_the_limit_is_refused(gateway: int) -> None:
    response = httpx.post(f"http://127.0.0.1:{gateway}/catalog/v1/x", content=b"x" * 2000)

    assert response.status_code == 413


def test_a_slow_client_fills_no_file_with_its_response(gateway: int, folder: Path) -> None:
    """The server waits until the client reads. nginx logs each response that it writes to a file."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", gateway))
        connection.sendall(f"GET {LARGE_PATH} HTTP/1.1\r\nHost: catalog\r\nConnection: close\r\n\r\n".encode())
        received = sum(len(part) for part in iter(lambda: connection.recv(65536), b""))

    assert received > LARGE_SIZE
    assert "upstream response is buffered to a temporary file" not in (folder / "log").read_text()


def test_the_configuration_has_no_route_to_management() -> None:
    text = nginx_config(GatewayConfig(upstream="server:8181", port=8443, max_body_size=1, tls_folder="/tls"))

    assert "listen 8443 ssl;" in text
    assert text.count("proxy_pass") == 1


def test_the_log_has_neither_tokens_nor_queries(ask: Callable[..., tuple[int, str]], folder: Path) -> None:
    ask("/catalog/v1/config?token=s3cret", "Authorization: Bearer s3cret")

    log = (folder / "log").read_text()
    assert '"status":200' in log
    assert "s3cret" not in log
