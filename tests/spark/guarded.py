"""A gate before the sandbox catalog: it asks for tokens, may speak TLS, can be told to fail, and gives tokens."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import jwt

KEY = "a key that signs tokens of tests only, and is 32 bytes long at least"
HOP_BY_HOP = {"connection", "content-length", "transfer-encoding", "content-encoding", "host"}


def token(seconds: float, **claims: Any) -> str:
    """A JWT that ends so many seconds from now."""
    return jwt.encode({"sub": "job", "exp": int(time.time() + seconds), **claims}, KEY, algorithm="HS256")


class Gate:
    """Passes on what carries a token that is good now. `token_url` gives such tokens to client `job` (`secret`)."""

    def __init__(self, behind: str, *, life: int = 3600, project_needed: bool = False, secret: str = "s3cr3t") -> None:
        self.behind, self.life, self.secret = behind, life, secret
        self.project_needed = project_needed
        """Refuse requests without `x-project-id`, as a server does with OPENID_ROLES_CLAIM and no default project."""
        self.paths: list[str] = []
        """The paths of the requests for the catalog that were passed on, in their order."""
        self.status: int | None = None
        """Answer everything with this status, as a server in trouble does."""
        self.tokens: list[str | None] = []
        """The tokens that requests for the catalog carried, in their order."""
        self.grants: list[Mapping[str, Any]] = []
        self.http = httpx.Client(timeout=60)
        self.endpoint = ""

    @property
    def catalog_uri(self) -> str:
        return f"{self.endpoint}/catalog"

    @property
    def token_url(self) -> str:
        return f"{self.endpoint}/token"

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        if path == "/token":
            return self._grant(headers, body)
        if self.status:
            return httpx.Response(self.status, text="the server is in trouble")
        given = headers.get("Authorization", "").removeprefix("Bearer ") or None
        self.tokens.append(given)
        try:
            jwt.decode(given or "", KEY, algorithms=["HS256"])
        except jwt.InvalidTokenError as error:
            problem = {"code": 401, "type": "AuthenticationFailed", "message": str(error)}
            return httpx.Response(401, json={"error": problem})
        if self.project_needed and not headers.get("x-project-id"):
            problem = {"code": 400, "type": "MissingProjectId", "message": f"{method} {path} names no project"}
            return httpx.Response(400, json={"error": problem})
        self.paths.append(path.partition("?")[0])
        kept = {k: v for k, v in headers.items() if k.lower() not in HOP_BY_HOP} | {"Host": headers["Host"]}
        if self.endpoint.startswith("https"):
            kept["X-Forwarded-Proto"] = "https"
        return self.http.request(method, self.behind + path, headers=kept, content=body)

    def _grant(self, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        self.grants.append(form)
        basic = httpx.BasicAuth("job", self.secret)._auth_header
        if headers.get("Authorization") != basic and form.get("client_secret") != self.secret:
            return httpx.Response(401, json={"error": "invalid_client"})
        made = token(self.life, jti=str(len(self.grants)))
        return httpx.Response(200, json={"access_token": made, "token_type": "Bearer", "expires_in": self.life})


@contextmanager
def serving(gate: Gate, certificate: Path | None = None) -> Iterator[Gate]:
    """The gate on a port of its own; with a certificate (key in the same PEM file) by HTTPS."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = gate.answer(self.command, self.path, self.headers, body)
            content = b"" if self.command == "HEAD" else answer.content
            self.send_response_only(answer.status_code)
            for key, value in answer.headers.items():
                if key.lower() not in HOP_BY_HOP:
                    self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    gate.endpoint = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield gate
    finally:
        server.shutdown()
        server.server_close()
        gate.http.close()
