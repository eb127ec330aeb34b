"""A proxy of the sandbox catalog that requires tokens, issues them, and optionally uses TLS or fails."""

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


def issue_token(seconds: float, **claims: Any) -> str:
    """Return a JWT that expires in this number of seconds."""
    return jwt.encode({"sub": "job", "exp": int(time.time() + seconds), **claims}, KEY, algorithm="HS256")


class AuthenticatingProxy:
    """Forwards requests with a valid token. `token_url` issues such tokens to client `job` with `secret`."""

    def __init__(
        self, upstream: str, *, life: int = 3600, requires_project: bool = False, secret: str = "s3cr3t"
    ) -> None:
        self.upstream, self.life, self.secret = upstream, life, secret
        self.requires_project = requires_project
        """Refuse requests without `x-project-id`, as a server with OPENID_ROLES_CLAIM and no default project does."""
        self.paths: list[str] = []
        """Paths of the forwarded catalog requests, in order."""
        self.status: int | None = None
        """Respond to every catalog request with this status."""
        self.tokens: list[str | None] = []
        """Tokens of the catalog requests, in order."""
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
        bearer = headers.get("Authorization", "").removeprefix("Bearer ") or None
        self.tokens.append(bearer)
        try:
            jwt.decode(bearer or "", KEY, algorithms=["HS256"])
        except jwt.InvalidTokenError as error:
            problem = {"code": 401, "type": "AuthenticationFailed", "message": str(error)}
            return httpx.Response(401, json={"error": problem})
        if self.requires_project and not headers.get("x-project-id"):
            problem = {"code": 400, "type": "MissingProjectId", "message": f"{method} {path} names no project"}
            return httpx.Response(400, json={"error": problem})
        self.paths.append(path.partition("?")[0])
        forwarded_headers = {k: v for k, v in headers.items() if k.lower() not in HOP_BY_HOP} | {
            "Host": headers["Host"]
        }
        if self.endpoint.startswith("https"):
            forwarded_headers["X-Forwarded-Proto"] = "https"
        return self.http.request(method, self.upstream + path, headers=forwarded_headers, content=body)

    def _grant(self, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        self.grants.append(form)
        basic = httpx.BasicAuth("job", self.secret)._auth_header
        if headers.get("Authorization") != basic and form.get("client_secret") != self.secret:
            return httpx.Response(401, json={"error": "invalid_client"})
        access_token = issue_token(self.life, jti=str(len(self.grants)))
        return httpx.Response(200, json={"access_token": access_token, "token_type": "Bearer", "expires_in": self.life})


@contextmanager
def serve_proxy(proxy: AuthenticatingProxy, certificate: Path | None = None) -> Iterator[AuthenticatingProxy]:
    """Run the proxy on a free port, over HTTPS with a certificate whose PEM file also has the key."""

    class AuthenticatingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = proxy.answer(self.command, self.path, self.headers, body)
            content = b"" if self.command == "HEAD" else answer.content
            self.send_response_only(answer.status_code)
            for key, value in answer.headers.items():
                if key.lower() not in HOP_BY_HOP:
                    self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), AuthenticatingHandler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    proxy.endpoint = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        proxy.http.close()
