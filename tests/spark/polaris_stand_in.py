"""A stand-in for Apache Polaris in front of another catalog, as strict as Polaris where it differs.

Source: github.com/apache/polaris at commit 4b42186383, with the defaults of its settings: DefaultOAuth2ApiService and
TokenRequestValidator (tokens), RbacOperationSemantics and PolarisAuthorizerImpl (privileges), RealmContextFilter,
CatalogConfigHandler, IcebergCatalogAdapter, ReservedProperties, LocalIcebergCatalog (locations, drops, registrations,
renames), PageToken, IcebergExceptionMapper. Locations of tables are below their namespace, and a table remains below
its own location.

Not checked: the locations that the metadata file of a registration has inside, overlaps of locations, locations of
views, of new tables and of changes in `transactions/commit`, and grants on single tables and namespaces: privileges
apply to the whole catalog.
"""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx
from forwarding import ForwardedCatalog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

REALM_HEADER = "polaris-realm"
ROLE_PREFIX = "PRINCIPAL_ROLE:"
ALL_ROLES = "PRINCIPAL_ROLE:ALL"
LIST_PAGES = "polaris.config.list-pagination-enabled"
PURGES_VIEWS = "polaris.config.purge-view-metadata-on-drop"
MAY_PURGE = "polaris.config.drop-with-purge.enabled"
_PRIVILEGES = {
    "GET namespaces": ("LIST_NAMESPACES", "NAMESPACE_LIST"),
    "POST namespaces": ("CREATE_NAMESPACE", "NAMESPACE_CREATE"),
    "GET namespaces/{namespace}": ("LOAD_NAMESPACE_METADATA", "NAMESPACE_READ_PROPERTIES"),
    "HEAD namespaces/{namespace}": ("NAMESPACE_EXISTS", "NAMESPACE_LIST"),
    "DELETE namespaces/{namespace}": ("DROP_NAMESPACE", "NAMESPACE_DROP"),
    "POST namespaces/{namespace}/properties": ("UPDATE_NAMESPACE_PROPERTIES", "NAMESPACE_WRITE_PROPERTIES"),
    "GET namespaces/{namespace}/tables": ("LIST_TABLES", "TABLE_LIST"),
    "POST namespaces/{namespace}/tables": ("CREATE_TABLE_DIRECT", "TABLE_CREATE"),
    "GET namespaces/{namespace}/tables/{table}": ("LOAD_TABLE", "TABLE_READ_PROPERTIES"),
    "HEAD namespaces/{namespace}/tables/{table}": ("TABLE_EXISTS", "TABLE_LIST"),
    "POST namespaces/{namespace}/tables/{table}": ("UPDATE_TABLE", "TABLE_WRITE_PROPERTIES"),
    "DELETE namespaces/{namespace}/tables/{table}": ("DROP_TABLE_WITHOUT_PURGE", "TABLE_DROP"),
    "POST tables/rename": ("RENAME_TABLE", "TABLE_DROP", "TABLE_LIST", "TABLE_CREATE"),
    "POST namespaces/{namespace}/register": ("REGISTER_TABLE", "TABLE_CREATE"),
    "POST namespaces/{namespace}/tables/{table}/metrics": ("REPORT_READ_METRICS", "TABLE_READ_DATA"),
    "POST transactions/commit": ("COMMIT_TRANSACTION", "TABLE_WRITE_PROPERTIES", "TABLE_CREATE"),
    "GET namespaces/{namespace}/views": ("LIST_VIEWS", "VIEW_LIST"),
    "POST namespaces/{namespace}/views": ("CREATE_VIEW", "VIEW_CREATE"),
    "GET namespaces/{namespace}/views/{view}": ("LOAD_VIEW", "VIEW_READ_PROPERTIES"),
    "HEAD namespaces/{namespace}/views/{view}": ("VIEW_EXISTS", "VIEW_LIST"),
    "POST namespaces/{namespace}/views/{view}": ("REPLACE_VIEW", "VIEW_WRITE_PROPERTIES"),
    "DELETE namespaces/{namespace}/views/{view}": ("DROP_VIEW", "VIEW_DROP"),
    "POST views/rename": ("RENAME_VIEW", "VIEW_DROP", "VIEW_LIST", "VIEW_CREATE"),
    "POST namespaces/{namespace}/register-view": ("REGISTER_VIEW", "VIEW_CREATE"),
}
"""Operation and required privileges of each call. Polaris advertises these methods and paths."""
ALL_CONTENT = "CATALOG_MANAGE_CONTENT"
"""The privilege that has all others that the calls require."""
_METADATA = ("LIST", "CREATE", "DROP", "READ_PROPERTIES", "WRITE_PROPERTIES")
_IMPLIED = {
    "TABLE_FULL_METADATA": {f"TABLE_{name}" for name in _METADATA},
    "VIEW_FULL_METADATA": {f"VIEW_{name}" for name in _METADATA},
    "NAMESPACE_FULL_METADATA": {f"NAMESPACE_{name}" for name in _METADATA},
    "TABLE_WRITE_DATA": {"TABLE_READ_DATA", "TABLE_LIST", "TABLE_READ_PROPERTIES", "TABLE_WRITE_PROPERTIES"},
    "TABLE_READ_DATA": {"TABLE_LIST", "TABLE_READ_PROPERTIES"},
    "TABLE_WRITE_PROPERTIES": {"TABLE_LIST", "TABLE_READ_PROPERTIES"},
    "TABLE_READ_PROPERTIES": {"TABLE_LIST"},
    "TABLE_CREATE": {"TABLE_LIST"},
    "VIEW_WRITE_PROPERTIES": {"VIEW_LIST", "VIEW_READ_PROPERTIES"},
    "VIEW_READ_PROPERTIES": {"VIEW_LIST"},
    "VIEW_CREATE": {"VIEW_LIST"},
    "NAMESPACE_WRITE_PROPERTIES": {"NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES"},
    "NAMESPACE_READ_PROPERTIES": {"NAMESPACE_LIST"},
    "NAMESPACE_CREATE": {"NAMESPACE_LIST"},
}
"""Privileges that a privilege has, too."""
_LOCATIONS = ("write.data.path", "write.metadata.path")
_FORBIDDEN_LETTERS = frozenset('/\\:*?"<>|#+`')
Json = dict[str, Any]


class PolarisError(Exception):
    """An error response, in the form of Iceberg REST."""

    def __init__(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.response = _build_error(status, kind, message, headers)


@dataclass
class PolarisStandIn:
    """The requests are forwarded to a catalog of Iceberg REST."""

    catalog: ForwardedCatalog
    warehouse: str
    """Name of the catalog in Polaris."""
    realm: str = "acme"
    client: tuple[str, str] = ("migration", "s3cret")
    """ID and secret of the principal, which may use the catalog with all of its roles."""
    privileges: set[str] = field(default_factory=lambda: {ALL_CONTENT})
    """Privileges of the principal on the catalog."""
    properties: dict[str, str] = field(default_factory=dict[str, str])
    """Properties of the catalog, which clients get as defaults."""
    busy_renames: int = 0
    """Renames that the next requests find concurrently modified."""
    calls: list[str] = field(default_factory=list[str])
    """Methods and paths of the calls."""
    refused: list[str] = field(default_factory=list[str])
    """Status and message of each refused call."""
    _tokens: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def build_app(self) -> Starlette:
        """Return the application."""
        root, methods = "/api/catalog/v1", ["GET", "HEAD", "POST", "DELETE"]
        return Starlette(
            routes=[
                Route(f"{root}/oauth/tokens", self.send_token, methods=["POST"]),
                Route(f"{root}/{{path:path}}", self.respond, methods=methods),
            ]
        )

    def get_property(self, name: str, default: str = "false") -> bool:
        """Return a switch of the catalog."""
        return self.properties.get(name, default) == "true"

    async def send_token(self, request: Request) -> Response:
        """Return a token for client credentials, in a header or in the form."""
        if request.headers.get(REALM_HEADER) != self.realm:
            return self._refuse_realm()
        form = dict(parse_qsl((await request.body()).decode()))
        if error := self._find_token_error(form, request.headers.get("authorization", "")):
            self.refused.append(f"{error} of a token")
            status, code, text = error.partition(" ")[0], error.partition(" ")[2], _TOKEN_ERRORS[error]
            return JSONResponse({"error": code, "error_description": text, "error_uri": None}, int(status))
        return self._issue_token(form["scope"].split(" "))

    def _find_token_error(self, form: dict[str, str], header: str) -> str | None:
        """Return status and code of the error, in the order in which Polaris checks a request; None without error."""
        credentials = (form.get("client_id"), form.get("client_secret"))
        if credentials[1] is None and header.startswith("Basic "):
            client_id, _, secret = base64.b64decode(header[6:]).decode().partition(":")
            credentials = (client_id, secret)
        scopes = form.get("scope", "").split(" ")
        checks = (
            (form.get("grant_type") == "client_credentials", "400 unsupported_grant_type"),
            (all(credentials), "400 invalid_client"),
            (all(s.startswith(ROLE_PREFIX) and s != ROLE_PREFIX for s in scopes), "400 invalid_scope"),
            (credentials == self.client, "401 unauthorized_client"),
        )
        return next((error for is_met, error in checks if not is_met), None)

    def _issue_token(self, scopes: list[str]) -> Response:
        token = secrets.token_urlsafe(16)
        self._tokens[token] = set(scopes)
        kind = "urn:ietf:params:oauth:token-type:access_token"
        return JSONResponse(
            {"access_token": token, "token_type": "bearer", "issued_token_type": kind, "expires_in": 3600}
        )

    async def respond(self, request: Request) -> Response:
        """Respond to a call."""
        path = request.scope["raw_path"].decode().removeprefix("/api/catalog/v1/")
        self.calls.append(f"{request.method} {path}")
        if request.headers.get(REALM_HEADER) != self.realm:
            return self._refuse_realm()
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or token not in self._tokens:
            self.refused.append(f"401 {path}")
            return Response(status_code=401, headers={"www-authenticate": "Bearer"})
        try:
            if path == "config":
                return self._send_config(request)
            return await self._forward(request, path, self._tokens[token])
        except PolarisError as error:
            self.refused.append(f"{error.response.status_code} {error}")
            return error.response

    def _send_config(self, request: Request) -> Response:
        warehouse = request.query_params.get("warehouse")
        if warehouse is None:
            raise PolarisError(400, "BadRequestException", "Please specify a warehouse")
        if warehouse != self.warehouse:
            raise PolarisError(404, "NotFoundException", f"Unable to find warehouse {warehouse}")
        endpoints = [call.replace(" ", " /v1/{prefix}/") for call in _PRIVILEGES]
        overrides = {"prefix": self.warehouse, "namespace-separator": "%1F"}
        return JSONResponse({"defaults": self.properties, "overrides": overrides, "endpoints": endpoints})

    async def _forward(self, request: Request, path: str, scopes: set[str]) -> Response:
        prefix, _, call_path = path.partition("/")
        call = _find_call(request.method, call_path)
        if call is None:
            raise PolarisError(404, "NotFoundException", f"no such call: {request.method} {path}")
        if prefix != self.warehouse:
            raise PolarisError(404, "NotFoundException", f"Unable to find warehouse {prefix}")
        if ALL_ROLES not in scopes:
            message = f"Principal '{self.client[0]}' with activated PrincipalRoles '[]' is not authorized"
            raise PolarisError(403, "ForbiddenException", message)
        body: Json = json.loads(await request.body() or b"{}")
        self._authorize(call, body, has_delegation=_choose_delegation(request) == "vended-credentials")
        if request.method == "GET" and call_path.endswith(("namespaces", "/tables", "/views")):
            return await self._list(request, call_path)
        headers = {"x-iceberg-access-delegation": _choose_delegation(request)}
        async with self.catalog.open(headers) as client:
            await self._check(request, call_path, body, client)
            parameters = {"purgeRequested": "false"} if request.method == "DELETE" else None
            response = await client.request(request.method, call_path, params=parameters, json=body or None)
        if not response.content or "json" not in response.headers.get("content-type", ""):
            return Response(status_code=response.status_code)
        document = response.json()
        if not response.is_success:
            error = document["error"]
            raise PolarisError(response.status_code, error["type"], error["message"])
        return JSONResponse(document, response.status_code)

    def _authorize(self, call: str, body: Json, *, has_delegation: bool) -> None:
        operation, *required = _PRIVILEGES[call]
        if operation == "REGISTER_TABLE" and body.get("overwrite"):
            operation, required = "REGISTER_TABLE_OVERWRITE", ["TABLE_FULL_METADATA"]
        if has_delegation and operation in {"LOAD_TABLE", "REGISTER_TABLE", "REGISTER_TABLE_OVERWRITE"}:
            operation, required = f"{operation}_WITH_READ_DELEGATION", [*required, "TABLE_READ_DATA"]
        if has_delegation and operation == "CREATE_TABLE_DIRECT":
            kind = "STAGED" if body.get("stage-create") else "DIRECT"
            operation, required = f"CREATE_TABLE_{kind}_WITH_WRITE_DELEGATION", [*required, "TABLE_WRITE_DATA"]
        privileges = self.privileges.union(*(_IMPLIED.get(name, set()) for name in self.privileges))
        if ALL_CONTENT not in privileges and not privileges.issuperset(required):
            message = f"Principal '{self.client[0]}' with activated PrincipalRoles '[]' and activated grants via '[]' "
            raise PolarisError(403, "ForbiddenException", f"{message}is not authorized for op {operation}")

    async def _check(self, request: Request, call_path: str, body: Json, client: httpx.AsyncClient) -> None:
        """Refuse what Polaris refuses and the catalog behind does not, and complete bodies as Polaris does."""
        parts = call_path.split("/")
        if call_path.endswith("/rename"):
            self._check_rename(body)
        elif request.method == "DELETE" and parts[2:3] in (["tables"], ["views"]):
            is_purge = request.query_params.get("purgeRequested", "").lower() == "true"
            purges = is_purge if parts[2] == "tables" else self.get_property(PURGES_VIEWS, default="true")
            if purges and not self.get_property(MAY_PURGE):
                message = f"Unable to purge entity: {unquote(parts[3])}. To enable this feature, set the Polaris "
                message += f"configuration DROP_WITH_PURGE_ENABLED or the catalog configuration {MAY_PURGE}"
                raise PolarisError(403, "ForbiddenException", message)
        elif call_path == "transactions/commit":
            for change in body.get("table-changes", []):
                _check_updates(change.get("updates", []))
        elif request.method == "POST" and parts[2:3] in (["tables"], ["views"]) and parts[4:] == []:
            _check_properties(body.get("properties") or {})
            updates = body.get("updates", [])
            _check_updates(updates)
            if len(parts) == 3:
                _check_name(body["name"])
            if parts[2] == "views":
                return
            if len(parts) == 3:
                body["properties"] = {"created-at": "2026-11-27T00:00:00Z", **(body.get("properties") or {})}
            elif updates and not any(part["type"] == "assert-create" for part in body.get("requirements", [])):
                await self._check_locations(call_path, updates, client)
        elif call_path.endswith("/register"):
            await self._check_registration(parts[1], body, client)

    def _check_rename(self, body: Json) -> None:
        source, destination = (".".join([*body[key]["namespace"], body[key]["name"]]) for key in _ENDS)
        _check_name(body["destination"]["name"])
        if self.busy_renames:
            self.busy_renames -= 1
            message = f"Cannot rename {source} to {destination} because it was concurrently modified; please retry"
            raise PolarisError(503, "PolarisServiceUnavailableException", message, {"retry-after": "3"})

    async def _check_locations(self, call_path: str, updates: list[Json], client: httpx.AsyncClient) -> None:
        """Refuse an update by which a table has files outside of its location."""
        response = await client.get(call_path)
        if not response.is_success:
            return  # the call itself fails, too
        location = response.json()["metadata"]["location"]
        locations: list[str] = []
        for update in updates:
            if update["action"] == "set-properties":
                locations += [value for name, value in update["updates"].items() if name in _LOCATIONS]
            elif update["action"] == "set-location":
                locations.append(update["location"])
            elif update["action"] == "add-snapshot":
                locations.append(update["snapshot"]["manifest-list"])
        _check_below(locations, location, call_path)

    async def _check_registration(self, namespace: str, body: Json, client: httpx.AsyncClient) -> None:
        """Refuse a metadata file outside of the replaced table's location, or of a new table's namespace."""
        _check_name(body["name"])
        response = await client.get(f"namespaces/{namespace}/tables/{body['name']}")
        if response.is_success and not body.get("overwrite"):
            message = f"Table already exists: {unquote(namespace)}.{body['name']}"
            raise PolarisError(409, "AlreadyExistsException", message)
        if response.is_success:
            location = response.json()["metadata"]["location"]
        else:
            response = await client.get(f"namespaces/{namespace}")
            location = response.json().get("properties", {}).get("location") if response.is_success else None
        if location is not None:
            _check_below([body["metadata-location"]], location, f"{unquote(namespace)}.{body['name']}")

    async def _list(self, request: Request, call_path: str) -> Response:
        parent = {name: value for name, value in request.query_params.items() if name == "parent"}
        async with self.catalog.open() as client:
            response = await client.get(call_path, params=parent)
        document = response.json()
        if not response.is_success:
            error = document["error"]
            raise PolarisError(response.status_code, error["type"], error["message"])
        (kind,) = [name for name in ("namespaces", "identifiers") if name in document]
        page_size, token = (request.query_params.get(name) for name in ("pageSize", "pageToken"))
        if not self.get_property(LIST_PAGES) or (page_size is None and not token):
            return JSONResponse({"next-page-token": None, kind: document[kind]})
        start, size = json.loads(base64.urlsafe_b64decode(token)) if token else (0, 0)
        size = int(page_size or size)
        end = start + size
        is_last = end >= len(document[kind])
        next_token = None if is_last else base64.urlsafe_b64encode(json.dumps([end, size]).encode()).decode()
        return JSONResponse({"next-page-token": next_token, kind: document[kind][start:end]})

    def _refuse_realm(self) -> Response:
        self.refused.append("404 Missing or invalid realm")
        return _build_error(404, "MissingOrInvalidRealm", "Missing or invalid realm")


_ENDS = ("source", "destination")
_TOKEN_ERRORS = {
    "400 unsupported_grant_type": "The grant type is invalid",
    "400 invalid_client": "The Client is invalid",
    "400 invalid_scope": "The scope is invalid",
    "401 unauthorized_client": "The client is not authorized",
}


def _find_call(method: str, call_path: str) -> str | None:
    """Return the method and the pattern of a call; None for an unknown call."""
    parts = call_path.split("/")
    for call in _PRIVILEGES:
        expected_method, _, pattern = call.partition(" ")
        pattern_parts = pattern.split("/")
        is_same = len(parts) == len(pattern_parts) and all(
            expected == part or expected.startswith("{") for expected, part in zip(pattern_parts, parts, strict=True)
        )
        if is_same and method == expected_method:
            return call
    return None


def _choose_delegation(request: Request) -> str:
    """Return the mode of access for the catalog behind. Polaris knows `true`, and leaves out unknown modes."""
    text = request.headers.get("x-iceberg-access-delegation", "").strip()
    modes = {"vended-credentials"} if text.lower() == "true" else {mode.strip() for mode in text.split(",")}
    return next((mode for mode in ("vended-credentials", "remote-signing") if mode in modes), "client-managed")


def _check_properties(properties: dict[str, str]) -> None:
    for name, value in properties.items():
        if name == "io-impl":
            message = f"Cannot set property '{name}' to '{value}' for this catalog."
            raise PolarisError(400, "ValidationException", message)
        if name.startswith("polaris."):
            message = f"Property '{name}' matches reserved prefix 'polaris.'"
            raise PolarisError(400, "IllegalArgumentException", message)


def _check_updates(updates: list[Json]) -> None:
    for update in updates:
        if update["action"] == "set-properties":
            _check_properties(update.get("updates") or {})
        elif update["action"] == "remove-properties":
            _check_properties({name: "" for name in update.get("removals") or () if name != "io-impl"})


def _check_name(name: str) -> None:
    if letters := sorted(_FORBIDDEN_LETTERS & set(name)):
        message = f"Entity name must not contain '{letters[0]}': {name}"
        raise PolarisError(400, "IllegalArgumentException", message)


def _check_below(locations: list[str], base: str, identifier: str) -> None:
    outside = [location for location in locations if not f"{location.rstrip('/')}/".startswith(f"{base.rstrip('/')}/")]
    if outside:
        message = f"Invalid locations '{outside}' for identifier '{identifier}': not in the list of allowed locations"
        raise PolarisError(403, "ForbiddenException", message)


def _build_error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status, headers)
