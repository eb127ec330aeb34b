"""A server before the emulator Azurite that enforces SAS tokens of directories, which Azurite lacks.

Requests with a Shared Key signature pass, and Azurite checks it. A SAS of a directory is checked here; the request is
then forwarded to Azurite with the account's key. All other requests are refused.
"""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import unquote

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lakewright_sandbox.object_stores.azure_signatures import AzureAccount, authorize, find_sas_problem

_SAS_PARAMETERS = frozenset({"sv", "sp", "sr", "st", "se", "sdd", "sig", "spr"})
_HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "keep-alive"})
_METHODS = ["GET", "HEAD", "PUT", "DELETE", "POST"]


def create_azure_front(upstream: str, account: AzureAccount) -> Starlette:
    """Return the server.

    Args:
        upstream: Address of Azurite's blob service.
        account: The account, as Azurite has it.
    """
    client = httpx.AsyncClient(base_url=upstream, timeout=30)

    async def forward(request: Request) -> Response:
        body = await request.body()
        headers = {name: value for name, value in request.headers.items() if name not in _HOP_BY_HOP}
        params = dict(request.query_params)
        path = request.scope["raw_path"].decode().partition("?")[0]
        if not headers.get("authorization", "").startswith("SharedKey "):
            if problem := _find_problem(request.method, unquote(path), params, account):
                code = problem.partition(":")[0]
                text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{problem}</Message></Error>'
                return Response(text, 403, {"x-ms-error-code": code}, "application/xml")
            params = {name: value for name, value in params.items() if name not in _SAS_PARAMETERS}
            headers.pop("date", None)  # Azurite signs it beside `x-ms-date`, unlike Azure
            headers = authorize(account, request.method, path, params, headers | {"content-length": str(len(body))})
        response = await client.request(request.method, path, params=params, headers=headers, content=body)
        sent = {name: value for name, value in response.headers.items() if name not in _HOP_BY_HOP}
        return Response(response.content, response.status_code, sent)

    return Starlette(routes=[Route("/{path:path}", forward, methods=_METHODS)])


def _find_problem(method: str, path: str, params: dict[str, str], account: AzureAccount) -> str:
    """Return why a request is refused; empty if its SAS allows it."""
    name, _, container_path = path.strip("/").partition("/")
    container, _, blob = container_path.partition("/")
    if name != account.name or "sig" not in params:
        return "NoAuthenticationInformation: expected a Shared Key signature or a SAS"
    needed, target = "r", blob
    if method == "GET" and params.get("comp") == "list":
        needed, target = "l", params.get("prefix", "").rstrip("/")
    elif method == "PUT":
        needed = "w"
    elif method == "DELETE":
        needed = "d"
    elif method == "POST":
        return "AuthorizationPermissionMismatch: the SAS has no permission for this operation"
    if problem := find_sas_problem(account, container, target, params, datetime.now(UTC)):
        return problem
    if needed not in params.get("sp", ""):
        return f"AuthorizationPermissionMismatch: the SAS has no permission `{needed}`"
    return ""
