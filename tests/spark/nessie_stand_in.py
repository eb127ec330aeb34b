"""A stand-in for Nessie's Iceberg REST catalog in front of another catalog, as strict as Nessie where it differs.

Source: catalog/service/rest of github.com/projectnessie/nessie at commit 8fbeb3dc56. The prefix has the branch and the
warehouse. Responses with a table have properties of the branch's last commit, which no metadata file has, and
`gc.enabled=false` if the table does not set it. Lists have pages only for requests with a page size. A registration
overwrites nothing, and a drop purges nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from forwarding import ForwardedCatalog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

BRANCH = "main"
DERIVED = ("nessie.catalog.content-id", "nessie.commit.id", "nessie.commit.ref")
_PARAMETERS = {"pageToken", "pageSize", "parent", "purgeRequested", "snapshots"}
_CALLS = (
    ("GET POST", "namespaces"),
    ("GET HEAD DELETE", "namespaces/{namespace}"),
    ("POST", "namespaces/{namespace}/properties"),
    ("POST", "transactions/commit"),
    ("GET POST", "namespaces/{namespace}/tables"),
    ("GET HEAD POST DELETE", "namespaces/{namespace}/tables/{table}"),
    ("POST", "tables/rename"),
    ("POST", "namespaces/{namespace}/register"),
    ("GET", "namespaces/{namespace}/tables/{table}/credentials"),
    ("POST", "namespaces/{namespace}/tables/{table}/metrics"),
)
"""Methods and paths of the calls for tables, as Nessie advertises them."""
_KINDS = ("namespaces", "identifiers")


@dataclass
class NessieStandIn:
    """The requests are forwarded to a catalog of Iceberg REST."""

    catalog: ForwardedCatalog
    warehouse: str
    page_size: int = 1
    commits: int = 0
    """Number of commits on the branch, from which the id of the last commit follows."""
    refused: list[str] = field(default_factory=list[str])
    """Calls that Nessie does not have."""

    def build_app(self) -> Starlette:
        """Return the application."""
        methods = ["GET", "HEAD", "POST", "DELETE"]
        config, calls = "/iceberg/v1/config", "/iceberg/v1/{path:path}"
        return Starlette(routes=[Route(config, self.send_config), Route(calls, self.forward, methods=methods)])

    @property
    def prefix(self) -> str:
        """The encoded prefix that the configuration of clients has."""
        return f"{BRANCH}%7C{self.warehouse}"

    async def send_config(self, request: Request) -> Response:
        """Return the configuration of clients."""
        if request.query_params.get("warehouse") != self.warehouse:
            return _build_error(404, "IllegalArgumentException", "Unknown warehouse")
        defaults = {"prefix": self.prefix, "rest-page-size": str(self.page_size)}
        overrides = {"nessie.is-nessie-catalog": "true", "nessie.default-branch.name": BRANCH}
        endpoints = [f"{method} /v1/{{prefix}}/{path}" for methods, path in _CALLS for method in methods.split()]
        return JSONResponse({"defaults": defaults, "overrides": overrides, "endpoints": endpoints})

    async def forward(self, request: Request) -> Response:
        """Respond to a call."""
        path = request.scope["raw_path"].decode().removeprefix("/iceberg/v1/")
        prefix, _, call_path = path.partition("/")
        unknown = set(request.query_params) - _PARAMETERS
        if prefix != self.prefix or unknown:
            self.refused.append(f"{request.method} {path} {sorted(unknown)}")
            return _build_error(404, "NotFoundException", f"no such call: {path}")
        body = json.loads(await request.body() or b"null")
        if request.method == "GET" and call_path.endswith(("namespaces", "/tables")):
            return await self._list(request, call_path)
        async with self.catalog.open() as client:
            if call_path.endswith("/register"):
                name = f"{call_path.removesuffix('/register')}/tables/{body['name']}"
                if (await client.head(name)).status_code != 404:
                    return _build_error(409, "AlreadyExistsException", f"Table already exists: {name}")
                del body["overwrite"]
            for update in (body or {}).get("updates", []):
                if update["action"] == "set-properties":
                    update["updates"] = {n: v for n, v in update["updates"].items() if n not in DERIVED}
            self.commits += request.method in {"POST", "DELETE"}
            parameters = {"purgeRequested": "false"} if request.method == "DELETE" else None
            response = await client.request(request.method, call_path, params=parameters, json=body)
        if not response.content or "json" not in response.headers.get("content-type", ""):
            return Response(status_code=response.status_code)
        return JSONResponse(self._add_properties(response.json()), response.status_code)

    async def _list(self, request: Request, call_path: str) -> Response:
        parent = {name: value for name, value in request.query_params.items() if name == "parent"}
        async with self.catalog.open() as client:
            response = await client.get(call_path, params=parent)
        if response.status_code != 200:
            return JSONResponse(response.json(), response.status_code)
        document = response.json()
        (kind,) = [name for name in _KINDS if name in document]
        if (page_size := request.query_params.get("pageSize")) is None:
            return JSONResponse({kind: document[kind]})
        start = int(request.query_params.get("pageToken") or 0)
        end = start + int(page_size)
        token = {"next-page-token": str(end)} if end < len(document[kind]) else {}
        return JSONResponse({kind: document[kind][start:end], **token})

    def _add_properties(self, document: dict[str, Any]) -> dict[str, Any]:
        if "metadata" in document:
            properties = document["metadata"].setdefault("properties", {})
            properties.setdefault("gc.enabled", "false")
            content_id = document["metadata"]["table-uuid"]
            properties |= dict(zip(DERIVED, (content_id, f"{self.commits:064x}", BRANCH), strict=True))
        return document


def _build_error(status: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status)
