"""A broken catalog: it vends a key with all rights instead of credentials of one table."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.runtime.state import Sandbox
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE"]


@contextmanager
def wide_catalog(sandbox: Sandbox, access_key_id: str, secret_access_key: str) -> Generator[str]:
    """Serve the sandbox's catalog with a key in place of vended credentials; yield its address."""
    keys = {
        "s3.access-key-id": access_key_id,
        "s3.secret-access-key": secret_access_key,
        "s3.session-token": "",
    }

    async def forward(request: Request) -> Response:
        headers = {name: value for name, value in request.headers.items() if name not in {"host", "accept-encoding"}}
        target = f"{sandbox.lakekeeper.endpoint}{request.url.path}?{request.url.query}"
        async with httpx.AsyncClient(timeout=60) as client:
            response = await client.request(request.method, target, headers=headers, content=await request.body())
        content = response.content
        if "s3.access-key-id" in response.text:
            content = json.dumps(_replace(response.json(), keys)).encode()
        kind = response.headers.get("content-type")
        return Response(content, response.status_code, {"content-type": kind} if kind else None)

    with serve(Starlette(routes=[Route("/{path:path}", forward, methods=METHODS)])) as endpoint:
        yield endpoint


def _replace(body: Any, keys: dict[str, str]) -> Any:
    for part in (body.get("config") or {}, *(entry["config"] for entry in body.get("storage-credentials") or [])):
        part.update(keys)
    return body
