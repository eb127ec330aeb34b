"""A server before an emulator of Google Cloud Storage that checks tokens, which the emulators ignore.

It also has the token endpoint of service accounts and the Security Token Service for downscoped tokens.
Sources: Google, "Using OAuth 2.0 for Server to Server Applications" and "Downscope with Credential Access Boundaries".
"""

from __future__ import annotations

import json
import re
import secrets
import time
from dataclasses import dataclass
from urllib.parse import unquote

import httpx
import jwt
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakewright_sandbox.object_stores.google_batch import BOUNDARY, BatchResult, format_batch, parse_batch

_HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "keep-alive"})
_TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - the name of a grant type
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFETIME_SECONDS = 3600
_RESOURCE = re.compile(r"//storage\.googleapis\.com/projects/_/buckets/(?P<bucket>[a-z0-9._-]+)")
_TEXT = r"(?P<prefix>(?:[^'\\]|\\.)*)"
"""The content of a literal of CEL in single quotes."""
_OBJECTS = re.compile(rf"resource\.name\.startsWith\('projects/_/buckets/(?P<bucket>[^'/]+)/objects/{_TEXT}'\)")
_LISTINGS = re.compile(
    rf"api\.getAttribute\('storage\.googleapis\.com/objectListPrefix', ''\)\.startsWith\('{_TEXT}'\)"
)
_METHODS_OF_ROLES = {
    "inRole:roles/storage.objectViewer": frozenset({"GET"}),
    "inRole:roles/storage.objectCreator": frozenset({"POST", "PUT"}),
    "inRole:roles/storage.objectUser": frozenset({"GET", "POST", "PUT", "DELETE", "PATCH"}),
}
"""Methods of the JSON API by role. Source: Google, "IAM roles for Cloud Storage"."""
_OBJECT_PATH = re.compile(r"/(?:upload/|download/)?storage/v1/b/(?P<bucket>[^/]+)(?:/o(?:/(?P<name>.+))?)?")


@dataclass(frozen=True)
class TokenBoundary:
    """Rights of a token. A token of a service account has no limits."""

    expires: float
    is_limited: bool = False
    bucket: str = ""
    object_prefix: str = ""
    list_prefix: str = ""
    methods: frozenset[str] = frozenset()


class GoogleFront:
    """Tokens, and the requests that they allow."""

    def __init__(self, upstream: str, accounts: dict[str, str]) -> None:
        """Forward to an emulator.

        Args:
            upstream: Address of the emulator.
            accounts: Public keys (PEM) of service accounts by email.
        """
        self._client = httpx.AsyncClient(base_url=upstream, timeout=30)
        self._accounts = accounts
        self._tokens: dict[str, TokenBoundary] = {}

    async def issue(self, request: Request) -> Response:
        """Exchange the signed assertion of a service account for a token."""
        form = dict(httpx.QueryParams((await request.body()).decode()))
        try:
            assertion = form["assertion"]
            issuer = str(jwt.decode(assertion, options={"verify_signature": False})["iss"])
            claims = jwt.decode(assertion, self._accounts[issuer], algorithms=["RS256"], options={"verify_aud": False})
        except (jwt.InvalidTokenError, KeyError):
            return JSONResponse({"error": "invalid_grant"}, 400)
        if form.get("grant_type") != _JWT_BEARER or claims.get("aud") != str(request.url):
            return JSONResponse({"error": "invalid_grant"}, 400)
        return self._respond(TokenBoundary(time.time() + _LIFETIME_SECONDS))

    async def downscope(self, request: Request) -> Response:
        """Exchange a token for a token with an access boundary."""
        body = await request.json()
        whole = self._tokens.get(body.get("subject_token", ""))
        boundary = read_boundary(unquote(body.get("options", "")))
        if body.get("grant_type") != _TOKEN_EXCHANGE or whole is None or whole.is_limited or boundary is None:
            return JSONResponse({"error": "invalid_request"}, 400)
        return self._respond(boundary)

    async def forward(self, request: Request) -> Response:
        """Forward a request whose token allows it."""
        path = request.scope["raw_path"].decode().partition("?")[0]
        refusal = self._find_refusal(
            request.headers.get("authorization", ""), request.method, path, dict(request.query_params)
        )
        if refusal:
            return refusal
        headers = {name: value for name, value in request.headers.items() if name not in _HOP_BY_HOP}
        response = await self._client.request(
            request.method, path, params=request.query_params, headers=headers, content=await request.body()
        )
        sent = {name: value for name, value in response.headers.items() if name not in _HOP_BY_HOP}
        if location := sent.get("location"):
            # A resumable upload continues at this address.
            sent["location"] = str(httpx.URL(location).copy_with(netloc=request.url.netloc.encode()))
        return Response(response.content, response.status_code, sent)

    async def forward_batch(self, request: Request) -> Response:
        """Forward the calls of a batch whose tokens allow them, one after the other."""
        try:
            calls = parse_batch(
                request.headers.get("content-type", ""),
                await request.body(),
                request.headers.get("authorization", ""),
            )
        except ValueError as error:
            return JSONResponse({"error": {"code": 400, "message": str(error)}}, 400)
        results: list[BatchResult] = []
        for call in calls:
            refusal = self._find_refusal(call.token, call.method, call.path, dict(httpx.QueryParams(call.query)))
            if refusal:
                results.append(BatchResult(refusal.status_code, bytes(refusal.body)))
                continue
            response = await self._client.request(call.method, f"{call.path}?{call.query}")
            results.append(BatchResult(response.status_code, response.content))
        return Response(format_batch(results), media_type=f"multipart/mixed; boundary={BOUNDARY}")

    def _find_refusal(self, authorization: str, method: str, path: str, params: dict[str, str]) -> Response | None:
        boundary = self._tokens.get(authorization.removeprefix("Bearer "))
        if boundary is None or boundary.expires < time.time():
            return JSONResponse({"error": {"code": 401, "message": "Invalid Credentials"}}, 401)
        if not allows(boundary, method, path, params):
            return JSONResponse({"error": {"code": 403, "message": "Access denied by the access boundary."}}, 403)
        return None

    def create_app(self) -> Starlette:
        """Return the server."""
        methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
        return Starlette(
            routes=[
                Route("/token", self.issue, methods=["POST"]),
                Route("/v1/token", self.downscope, methods=["POST"]),
                Route("/batch/storage/v1", self.forward_batch, methods=["POST"]),
                Route("/{path:path}", self.forward, methods=methods),
            ]
        )

    def _respond(self, boundary: TokenBoundary) -> Response:
        token = secrets.token_urlsafe(32)
        self._tokens[token] = boundary
        return JSONResponse({"access_token": token, "expires_in": _LIFETIME_SECONDS, "token_type": "Bearer"})


def read_boundary(text: str) -> TokenBoundary | None:
    """Return the limits of a Credential Access Boundary with one rule, as JSON; None if it is malformed."""
    try:
        (rule,) = json.loads(text)["accessBoundary"]["accessBoundaryRules"]
        resource = _RESOURCE.fullmatch(rule["availableResource"])
        expression: str = rule["availabilityCondition"]["expression"]
        roles: list[str] = rule["availablePermissions"]
    except (KeyError, TypeError, ValueError):
        return None
    objects, listings = _OBJECTS.search(expression), _LISTINGS.search(expression)
    if not resource or not objects or not listings or objects["bucket"] != resource["bucket"]:
        return None
    methods = [_METHODS_OF_ROLES.get(role, frozenset[str]()) for role in roles]
    return TokenBoundary(
        time.time() + _LIFETIME_SECONDS,
        is_limited=True,
        bucket=resource["bucket"],
        object_prefix=_unescape(objects["prefix"]),
        list_prefix=_unescape(listings["prefix"]),
        methods=frozenset[str]().union(*methods),
    )


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def allows(boundary: TokenBoundary, method: str, path: str, params: dict[str, str]) -> bool:
    """Return whether a token allows a request of the JSON API."""
    if not boundary.is_limited:
        return True
    match = _OBJECT_PATH.fullmatch(path)
    if match is None or match["bucket"] != boundary.bucket or method not in boundary.methods:
        return False
    name = unquote(match["name"] or "") or params.get("name", "")
    if name:
        return name.startswith(boundary.object_prefix)
    return method == "GET" and path.endswith("/o") and params.get("prefix", "").startswith(boundary.list_prefix)
