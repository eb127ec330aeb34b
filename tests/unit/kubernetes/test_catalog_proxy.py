"""The proxy of Texera's units in a real nginx: what it forwards, as whom, and the addresses in responses."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from lakewright.kubernetes.catalog_proxy_config import (
    CONFIG_FILE,
    LIVENESS_PATH,
    READINESS_PATH,
    SCRIPT_FILE,
    ProxyConfig,
    find_address_mistake,
    nginx_config,
)
from lakewright.kubernetes.catalog_proxy_script import nginx_script
from lakewright.spec.quota import PROXY_SIZE
from lakewright.validation.quantity import parse_bytes
from lakewright_sandbox.runtime.processes import free_port

from tests.certificates import write_server_certificate
from tests.nginx_process import MISSING_NJS, serve_nginx

pytestmark = pytest.mark.skipif(MISSING_NJS is not None, reason=str(MISSING_NJS))

SNAPSHOT = 9_007_199_254_740_995_123
"""A number that JavaScript cannot represent."""
TABLE = {
    "metadata": {
        "current-snapshot-id": SNAPSHOT,
        "properties": {"uri": "https://a.example/catalog", "ü": "ü" * 100_000},
    },
    "config": {
        "s3.signer.uri": "https://lakekeeper.example/base/catalog/",
        "signer.uri": "https://lakekeeper.example/base/catalog/",
        "s3.endpoint": "https://s3.example/catalog",
        "client.refresh-credentials-endpoint": "https://lakekeeper.example/base/catalog/v1/w/credentials",
        "gcs.oauth2.refresh-credentials-endpoint": "https://lakekeeper.example/base/catalog/v1/w/credentials",
        "adls.refresh-credentials-endpoint": "https://lakekeeper.example/base/catalog/v1/w/credentials",
    },
}
LARGE_TABLE = TABLE | {"metadata": {"snapshots": "x" * 30_000_000}}
"""A table with the metadata of about 40,000 snapshots. Lakekeeper from 0.14 on accepts 32 MiB."""

ADDRESSES = [
    {
        "s3.signer.uri": f"https://lakekeeper.example/base/catalog/{number}",
        "s3.signer.uri-of": number,
        "gcs.oauth2.refresh-credentials-endpoint": "https://lakekeeper.example/base/catalog",
        "uri": "s3:é漢",
    }
    for number in range(0, 2**30, 2**16 - 1)
]
"""4 MB with addresses and letters of several bytes at any distance from the ends of parts in which nginx reads them."""


class RecordingCatalog(BaseHTTPRequestHandler):
    """Responds like a catalog, and records requests."""

    protocol_version = "HTTP/1.1"
    requests: list[tuple[str, str, dict[str, str], bytes]]
    closes_connections = False
    """Whether the second request on a connection gets no response."""
    has_responded = False
    """Whether a request on this connection got a response."""

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        type(self).requests.append((self.command, self.path, headers, body))
        if self.closes_connections and self.has_responded:
            self.close_connection = True
        elif status := re.search(r"/status/(\d+)/", self.path):
            self.respond(int(status[1]), None)
        elif "/tables/large" in self.path:
            self.respond(200, LARGE_TABLE)
        elif "/tables/addresses" in self.path:
            self.respond(200, ADDRESSES)
        elif "/tables/" in self.path:
            self.respond(200, TABLE)
        elif self.path.endswith("/v1/config"):
            self.respond(400, {"error": {"type": "GetConfigNoWarehouseProvided"}})
        elif "/v1/config" in self.path:
            overrides = {"uri": "https://lakekeeper.example/base/catalog", "prefix": "w"}
            self.respond(200, {"overrides": overrides, "defaults": {}})
        else:
            self.respond(204, None)

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def do_HEAD(self) -> None:
        self.do_GET()

    def respond(self, status: int, document: object) -> None:
        body = b"" if document is None else json.dumps(document, ensure_ascii=False).encode()
        self.has_responded = True
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@dataclass
class RunningProxy:
    """The proxy, its catalog's requests, and its token file."""

    config: ProxyConfig
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def token(self) -> Path:
        return Path(self.config.token_file)

    @property
    def probes(self) -> str:
        return f"http://127.0.0.1:{self.config.probe_port}"

    def read_peak_memory(self) -> int:
        """Return the bytes of memory that all processes of nginx have used at most."""
        main = int(Path(self.config.scratch, "nginx.pid").read_text())
        workers = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        statuses = [Path(f"/proc/{process}/status").read_text() for process in (main, *workers)]
        return sum(int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 for status in statuses)

    def last_headers(self) -> dict[str, str]:
        return self.requests[-1][2]


def start_catalog(certificate: tuple[Path, str] | None = None) -> tuple[ThreadingHTTPServer, type[RecordingCatalog]]:
    handler = type("RecordingCatalog", (RecordingCatalog,), {"requests": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        file, key = certificate
        file.with_suffix(".key").write_text(key)
        context.load_cert_chain(file, file.with_suffix(".key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    return server, handler


def write_config(folder: Path, catalog_uri: str) -> ProxyConfig:
    config = ProxyConfig(
        catalog_uri=catalog_uri,
        project_id="acme",
        token_file=str(folder / "token"),
        folder=str(folder),
        port=free_port(),
        probe_port=free_port(),
        scratch=str(folder),
    )
    write_files(config)
    (folder / "token").write_text("first\n")
    return config


def write_files(config: ProxyConfig) -> Path:
    folder = Path(config.folder)
    (folder / SCRIPT_FILE).write_text(nginx_script(config))
    (folder / CONFIG_FILE).write_text(nginx_config(config))
    return folder / CONFIG_FILE


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    folder = tmp_path_factory.mktemp("proxy")
    server, catalog = start_catalog()
    config = write_config(folder, f"http://127.0.0.1:{server.server_port}/base/catalog")
    with serve_nginx(folder / CONFIG_FILE, f"http://127.0.0.1:{config.probe_port}{READINESS_PATH}"):
        yield RunningProxy(config, catalog.requests)
    server.shutdown()


@pytest.fixture
def proxy(running: RunningProxy) -> RunningProxy:
    running.token.write_text("first\n")
    running.requests.clear()
    return running


def test_requests_get_token_and_project(proxy: RunningProxy) -> None:
    """Headers of programs in the pod choose neither."""
    headers = {"authorization": "Bearer forged", "x-project-id": "other", "x-forwarded-host": "evil.example"}

    response = httpx.post(f"{proxy.config.uri}/v1/w/namespaces", json={"namespace": ["n"]}, headers=headers)

    assert response.status_code == 204
    (method, path, sent, body), *_ = proxy.requests
    assert (method, path, body) == ("POST", "/base/catalog/v1/w/namespaces", b'{"namespace":["n"]}')
    assert (sent["authorization"], sent["x-project-id"]) == ("Bearer first", "acme")
    assert "evil.example" not in json.dumps(sent)


def test_token_is_read_at_each_request(proxy: RunningProxy) -> None:
    httpx.get(f"{proxy.config.uri}/v1/w/namespaces/n")
    before = proxy.last_headers()["authorization"]

    # Kubernetes replaces the file, and does not write into it.
    renewed = proxy.token.with_name("renewed")
    renewed.write_text("second")
    renewed.replace(proxy.token)
    httpx.get(f"{proxy.config.uri}/v1/w/namespaces/n")

    assert (before, proxy.last_headers()["authorization"]) == ("Bearer first", "Bearer second")


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_without_a_token_nothing_is_forwarded(proxy: RunningProxy, text: str | None) -> None:
    proxy.token.unlink() if text is None else proxy.token.write_text(text)

    response = httpx.get(f"{proxy.config.uri}/v1/config")

    assert (response.status_code, response.json()["error"]["type"]) == (503, "TokenUnreadable")
    assert proxy.requests == []


def test_other_addresses_of_the_pod_are_refused(proxy: RunningProxy) -> None:
    """A client in another pod would use the catalog as the unit. The kubelet needs the probes only."""
    address = "127.0.0.2"
    assert httpx.get(f"http://{address}:{proxy.config.probe_port}{READINESS_PATH}").status_code == 200

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, proxy.config.port), timeout=5).close()

    assert proxy.requests == []


@pytest.mark.parametrize(
    "path",
    ["/management/v1/info", "/", "/health", "/catalogue", "/proxy-health", "/catalog/../management/v1/info"],
)
def test_other_paths_are_not_forwarded(proxy: RunningProxy, path: str) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{proxy.config.port}") as client:
        request = client.build_request("GET", "/")
        request.url = httpx.URL(request.url, raw_path=path.encode())
        response = client.send(request)

    assert (response.status_code, response.json()["error"]["type"]) == (404, "NotForwarded")
    assert proxy.requests == []


def test_encoded_names_reach_the_catalog_unchanged(proxy: RunningProxy) -> None:
    path = "/v1/w/namespaces/a%1Fb/tables/wid_7_globalportid_(logicalOpId%3Da,portId%3D0)_result"

    httpx.get(httpx.URL(f"{proxy.config.uri}{path}?snapshots=refs"))

    assert proxy.requests[-1][1] == f"/base/catalog{path}?snapshots=refs"


def test_clients_stay_at_the_proxy(proxy: RunningProxy) -> None:
    """Lakekeeper names its own address in the configuration of clients. There, they would send no token."""
    response = httpx.get(f"{proxy.config.uri}/v1/config", params={"warehouse": "acme/executions"})

    assert response.json()["overrides"] == {"uri": proxy.config.uri, "prefix": "w"}


def test_only_addresses_of_the_catalog_change_in_tables(proxy: RunningProxy) -> None:
    """The rest of a response keeps its bytes, such as numbers that JavaScript would round."""
    response = httpx.get(f"{proxy.config.uri}/v1/w/namespaces/n/tables/t")

    document = response.json()
    assert document["metadata"] == TABLE["metadata"]
    assert document["config"] == {
        "s3.signer.uri": f"{proxy.config.uri}/",
        "signer.uri": f"{proxy.config.uri}/",
        "s3.endpoint": "https://s3.example/catalog",
        "client.refresh-credentials-endpoint": f"{proxy.config.uri}/v1/w/credentials",
        "gcs.oauth2.refresh-credentials-endpoint": f"{proxy.config.uri}/v1/w/credentials",
        "adls.refresh-credentials-endpoint": f"{proxy.config.uri}/v1/w/credentials",
    }


def test_addresses_are_replaced_wherever_parts_of_a_body_end(proxy: RunningProxy) -> None:
    response = httpx.get(f"{proxy.config.uri}/v1/w/namespaces/n/tables/addresses")

    expected = json.dumps(ADDRESSES, ensure_ascii=False).replace(
        "https://lakekeeper.example/base/catalog", proxy.config.uri
    )
    is_equal = response.text == expected  # A comparison in an `assert` would take minutes to explain itself.
    assert is_equal


def test_large_metadata_fits_into_the_memory_of_the_pod(proxy: RunningProxy) -> None:
    """Kubernetes kills a container that exceeds its memory. A unit loads several tables at a time."""
    url = f"{proxy.config.uri}/v1/w/namespaces/n/tables/large"

    with ThreadPoolExecutor(3) as threads:
        responses = list(threads.map(lambda _: httpx.get(url, timeout=60), range(3)))
        threads.submit(httpx.post, url, content=b"x" * 30_000_000, timeout=60).result()

    assert {len(response.json()["metadata"]["snapshots"]) for response in responses} == {30_000_000}
    assert {response.json()["config"]["s3.signer.uri"] for response in responses} == {f"{proxy.config.uri}/"}
    assert proxy.read_peak_memory() < parse_bytes(PROXY_SIZE.memory)


@pytest.mark.parametrize("method", ["HEAD", "DELETE"])
def test_responses_without_a_body_pass(proxy: RunningProxy, method: str) -> None:
    response = httpx.request(method, f"{proxy.config.uri}/v1/w/namespaces/n")

    assert (response.status_code, response.content) == (204, b"")


def test_probe_needs_no_token_and_reaches_nothing_else(proxy: RunningProxy) -> None:
    proxy.token.unlink()

    assert httpx.get(f"{proxy.probes}{READINESS_PATH}").status_code == 200
    assert httpx.get(f"{proxy.probes}{LIVENESS_PATH}").status_code == 200
    assert httpx.get(f"{proxy.probes}/catalog/v1/config").status_code == 404
    assert "authorization" not in proxy.last_headers()


@pytest.mark.parametrize("status", [401, 405, 429, 500, 502, 503, 504])
def test_probe_accepts_any_status_of_the_host(status: int, tmp_path: Path) -> None:
    """A gateway responds with 502 while Lakekeeper is down. A restart of the proxy would not help."""
    server, catalog = start_catalog()
    config = write_config(tmp_path, f"http://127.0.0.1:{server.server_port}/status/{status}/catalog")
    probes = f"http://127.0.0.1:{config.probe_port}"

    with serve_nginx(tmp_path / CONFIG_FILE, f"{probes}{READINESS_PATH}"):
        assert httpx.get(f"{probes}{LIVENESS_PATH}").status_code == 200
        assert httpx.get(f"{config.uri}/v1/config").status_code == status
    server.shutdown()

    assert catalog.requests[0][1] == f"/status/{status}/catalog/v1/config"


def test_probe_reports_an_unreachable_catalog(tmp_path: Path) -> None:
    config = write_config(tmp_path, f"http://127.0.0.1:{free_port()}/catalog")
    probes = f"http://127.0.0.1:{config.probe_port}"

    with serve_nginx(tmp_path / CONFIG_FILE, f"{probes}{READINESS_PATH}"):
        assert httpx.get(f"{probes}{LIVENESS_PATH}").status_code == 502
        assert httpx.get(f"{probes}{READINESS_PATH}").status_code == 200


def test_dead_address_of_the_catalog_is_passed_over(tmp_path: Path) -> None:
    """A host's name may have several addresses. nginx uses them in turn, and tries a dead address again after 10 s."""
    server, catalog = start_catalog()
    config = write_config(tmp_path, f"http://127.0.0.1:{server.server_port}/catalog")
    live, dead = f"server 127.0.0.1:{server.server_port};", f"server 127.0.0.2:{server.server_port};"
    text = (tmp_path / CONFIG_FILE).read_text()
    (tmp_path / CONFIG_FILE).write_text(text.replace(live, f"{dead} {live}"))

    with serve_nginx(tmp_path / CONFIG_FILE, f"http://127.0.0.1:{config.probe_port}{READINESS_PATH}"):
        responses = [httpx.post(f"{config.uri}/v1/w/transactions/commit", json={"n": number}) for number in range(3)]
    server.shutdown()

    assert [response.status_code for response in responses] == [204, 204, 204]
    assert [body for _, _, _, body in catalog.requests] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']


@pytest.mark.parametrize(("method", "status", "requests"), [("GET", 204, 3), ("POST", 502, 2)])
def test_commits_are_sent_once(method: str, status: int, requests: int, tmp_path: Path) -> None:
    """A connection that the catalog closes may have delivered the request: reading it again changes nothing."""
    server, catalog = start_catalog()
    catalog.closes_connections = True
    config = write_config(tmp_path, f"http://127.0.0.1:{server.server_port}/catalog")

    with serve_nginx(tmp_path / CONFIG_FILE, f"http://127.0.0.1:{config.probe_port}{READINESS_PATH}"):
        httpx.get(f"{config.uri}/v1/w/namespaces/n")
        response = httpx.request(method, f"{config.uri}/v1/w/namespaces/n", content=b"{}" if method == "POST" else None)
    server.shutdown()

    assert (response.status_code, len(catalog.requests)) == (status, requests)


def test_idle_connections_are_closed_before_load_balancers_do(tmp_path: Path) -> None:
    """AWS closes connections that are idle for 60 s, and nginx does so by default."""
    config = nginx_config(write_config(tmp_path, "https://lakekeeper.example/catalog"))

    (idle_seconds,) = re.findall(r"keepalive_timeout (\d+)s;", config)
    assert int(idle_seconds) < 60


@pytest.mark.parametrize(("size", "status"), [(2000, 204), (2001, 413)])
def test_requests_may_have_the_size_of_the_settings(size: int, status: int, tmp_path: Path) -> None:
    server, _ = start_catalog()
    config = write_config(tmp_path, f"http://127.0.0.1:{server.server_port}/catalog")
    file = write_files(replace(config, max_body_size=2000))

    with serve_nginx(file, f"http://127.0.0.1:{config.probe_port}{READINESS_PATH}"):
        response = httpx.post(f"{config.uri}/v1/w/transactions/commit", content=b"x" * size)
    server.shutdown()

    assert response.status_code == status


def test_certificate_of_the_catalog_is_checked(tmp_path: Path) -> None:
    """A token is sent to a host with a certificate of a known authority only."""
    key = write_server_certificate(tmp_path / "ca.pem", authority=True)
    server, catalog = start_catalog((tmp_path / "ca.pem", key))
    config = write_config(tmp_path, f"https://localhost:{server.server_port}/catalog")
    write_server_certificate(tmp_path / "other.pem", authority=True)
    (tmp_path / r'a "b" \n; $c.pem').write_bytes((tmp_path / "ca.pem").read_bytes())
    for bundle, status in (("ca.pem", 204), (r'a "b" \n; $c.pem', 204), ("other.pem", 502)):
        file = write_files(replace(config, ca_bundle=str(tmp_path / bundle)))
        with serve_nginx(file, f"http://127.0.0.1:{config.probe_port}{READINESS_PATH}"):
            assert httpx.get(f"{config.uri}/v1/w/namespaces/n").status_code == status
    server.shutdown()

    assert len(catalog.requests) == 2


def test_ip_address_with_https_is_refused() -> None:
    """The check of the certificate by nginx compares names, and ignores IP addresses."""
    for uri in ("https://10.0.0.5/catalog", "https://[fd00::1]:8443/catalog"):
        assert "expected a host name with https" in str(find_address_mistake(uri))
    for uri in ("http://10.0.0.5:8181/catalog", "https://10.example/catalog"):
        assert find_address_mistake(uri) is None


def test_path_of_the_catalog_may_have_any_safe_character(tmp_path: Path) -> None:
    path = "/a+b~c@d:e/f(g),h=1&i!*%20-._/catalog"
    server, catalog = start_catalog()
    config = write_config(tmp_path, f"http://127.0.0.1:{server.server_port}{path}")
    probes = f"http://127.0.0.1:{config.probe_port}"

    with serve_nginx(tmp_path / CONFIG_FILE, f"{probes}{READINESS_PATH}"):
        assert httpx.get(f"{probes}{LIVENESS_PATH}").status_code == 200
        assert httpx.get(f"{config.uri}/v1/w/namespaces/n").status_code == 204
    server.shutdown()

    assert [request[1] for request in catalog.requests] == [f"{path}/v1/config", f"{path}/v1/w/namespaces/n"]


def test_log_has_neither_tokens_nor_queries(proxy: RunningProxy) -> None:
    httpx.get(f"{proxy.config.uri}/v1/config?warehouse=s3cret")

    log = (Path(proxy.config.folder) / "log").read_text()
    assert '"status":200' in log
    assert "s3cret" not in log
    assert "first" not in log


@pytest.mark.parametrize("uri", ["https://a.example/catalog;evil", "https://a.example/$host", 'https://a.example/"'])
def test_syntax_of_nginx_in_an_address_is_refused(uri: str, tmp_path: Path) -> None:
    assert "expected an address of letters, digits and" in str(find_address_mistake(uri))
    with pytest.raises(ValueError, match="expected an address or a project's ID"):
        write_config(tmp_path, uri)
