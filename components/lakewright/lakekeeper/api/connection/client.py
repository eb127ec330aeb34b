"""The HTTP client of a server: sends calls, retries them where that is safe, and raises errors for refusals."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, cast

from lakewright.http.retry import RetryableError, RetryPolicy
from lakewright.lakekeeper.api.connection import errors, versions
from lakewright.lakekeeper.api.connection.list_cache import ListCache, SharedAnswers
from lakewright.lakekeeper.api.connection.server import ServerRef

if TYPE_CHECKING:
    import httpx

    from lakewright.lakekeeper.api.connection.auth import Resolve

Params = Mapping[str, str | int | bool | list[str]]
Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE"]

_WAREHOUSE_CALL = re.compile(r"/(?:catalog/v1|management/v1/warehouse)/([0-9a-f-]{36})/")
"""Matches the URL path of a call within one warehouse."""

_CONFIG_REFERENCE_START = '"config:'
"""Start of a reference to a secret in the configuration of a stack."""


class Client:
    """Calls one Lakekeeper server. Thread-safe."""

    def __init__(
        self,
        server: ServerRef,
        resolve: Resolve,
        *,
        retry: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
        lists: ListCache | None = None,
        twin: Client | None = None,
        limit: AbstractContextManager[object] | None = None,
    ) -> None:
        """Create a client; it connects with its first call.

        Args:
            server: The server and how to authenticate.
            resolve: Returns the secret behind a reference.
            retry: Retry policy; the default policy if omitted.
            transport: HTTP transport that replaces the network.
            lists: Cache of lists; a new cache if omitted.
            twin: Client of the same server and user for another project, whose connections are shared.
            limit: Entered for each request, such as a semaphore of a run; no limit if omitted.
        """
        self.lists = lists or ListCache()
        self.endpoint = server.endpoint
        self._project_id = server.project_id
        self._retry = retry or RetryPolicy()
        self.identity: object = twin.identity if twin else object()
        """Equal for clients of one server and user. It is part of the keys of lists of a whole server."""
        if twin is not None:
            self._sender, self._info = twin._sender, twin._info
            return
        from lakewright.lakekeeper.api.connection.transport import Sender  # noqa: PLC0415 - slow import, needed to send only

        self._sender = Sender(server, resolve, transport, limit)
        self._info = SharedAnswers(max_age=math.inf)

    def server(self) -> versions.Server:
        """Return the server's version and features, read once. All threads that wait share a failure.

        Raises:
            UnsupportedServerError: The server is too old.
        """
        return self._info.get_cached("info", self.server_now)

    def server_now(self) -> versions.Server:
        """Read the server's version and features again and return them."""
        try:
            info = self.json("GET", "/management/v1/info")
        except errors.NoSuchPathError as missing:
            missing.add("Is this a Lakekeeper server? `endpoint` is its address without `/management` or `/catalog`.")
            raise
        return versions.parse_server(self.endpoint, info)

    def json(self, method: Method, path: str, **options: Any) -> dict[str, Any]:
        """Return the JSON object of a call's response. `call` has the same options."""
        http_response = self.call(method, path, **options)
        from lakewright.lakekeeper.api.connection.response_body import parse_json  # noqa: PLC0415 - slow import of httpx

        call = errors.Call(method, path, self.endpoint)
        body = parse_json(call, http_response)
        if not isinstance(body, dict):
            raise errors.RefusedError(
                f"{call} responded with {http_response.status_code} without a JSON object."
                " Is this a Lakekeeper server?",
                status=http_response.status_code,
            )
        return cast(dict[str, Any], body)

    def call(
        self,
        method: Method,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Params | None = None,
        project: str | None = None,
        headers: Mapping[str, str] | None = None,
        probes: bool = False,
        idempotent: bool = True,
    ) -> httpx.Response:
        """Send a call and return its successful response.

        Args:
            method: HTTP method.
            path: URL path.
            body: JSON body of the request.
            params: Query parameters.
            project: Id of the project; the server's default project if omitted.
            headers: Headers in addition to the headers of every call.
            probes: Whether the server probes a storage in this call, which takes longer.
            idempotent: Whether the call may be sent again after it may have been applied.

        Raises:
            ResponseTimeoutError: No response in time. The caller must check whether the call was applied.
            UnconfirmedError: The connection was lost. The caller must check whether the call was applied.
            RefusedError: The server refused the call.
        """
        call = errors.Call(method, path, self.endpoint)
        project = project or self._project_id
        request: dict[str, Any] = {
            "params": _query(params),
            "headers": {**(headers or {}), **({"x-project-id": project} if project else {})},
        }
        if body is not None:
            request["json"] = body

        turned_away = False

        def attempt() -> httpx.Response:
            nonlocal turned_away
            try:
                return self._sender.send(call, request, probes=probes, idempotent=idempotent)
            except RetryableError as again:
                turned_away |= isinstance(again.error, errors.RefusedError) and again.error.status in {429, 503}
                raise
            except errors.AlreadyExistsError as taken:
                taken.after_retry = turned_away
                raise
            except errors.NotFoundError as missing:
                if not self._is_active_now(missing, path):
                    raise
            return self._sender.send(call, request, probes=probes, idempotent=idempotent)

        if method in {"GET", "HEAD"}:
            return self._retry.run(attempt)
        self.lists.forget()
        try:
            return self._retry.run(attempt)
        finally:
            self.lists.forget()

    def _is_active_now(self, missing: errors.NotFoundError, path: str) -> bool:
        """Return whether the server reported an active warehouse as missing.

        Servers cache a warehouse's status for a minute. Reading the warehouse updates that cache.
        """
        warehouse = _WAREHOUSE_CALL.match(path)
        if missing.kind != "NoSuchWarehouseException" or warehouse is None:
            return False
        read = errors.Call("GET", f"/management/v1/warehouse/{warehouse[1]}", self.endpoint)
        try:
            response = self._sender.send(read, {}, probes=False, idempotent=True)
        except errors.RefusedError:
            return False
        from lakewright.lakekeeper.api.connection.response_body import parse_json  # noqa: PLC0415

        body = parse_json(read, response)
        return isinstance(body, dict) and cast(dict[str, Any], body).get("status") == "active"

    def is_active(self, warehouse_id: str) -> bool | None:
        """Return whether a warehouse is active; None if it does not exist."""
        try:
            return self.json("GET", f"/management/v1/warehouse/{warehouse_id}")["status"] == "active"
        except errors.NotFoundError:
            return None

    def close(self) -> None:
        """Close the client's connections."""
        self._sender.close()


def _query(params: Params | None) -> list[tuple[str, str]] | None:
    if not params:
        return None
    pairs: list[tuple[str, str]] = []
    for key, value in params.items():
        for item in value if isinstance(value, list) else [value]:
            pairs.append((key, str(item).lower() if isinstance(item, bool) else str(item)))
    return pairs


class ClientPool:
    """Clients of one run, one per server. Their connections are kept alive. Thread-safe."""

    def __init__(
        self,
        lists: ListCache | None = None,
        shared: ClientPool | None = None,
        limit: AbstractContextManager[object] | None = None,
    ) -> None:
        """Create a pool without clients.

        Args:
            lists: Cache of lists; a new cache if omitted.
            shared: Pool of several stacks. It has the clients of servers whose credentials are the same for all stacks.
            limit: Entered for each request of all clients; that of `shared` if omitted.
        """
        self.lists = lists or (shared.lists if shared else ListCache())
        self._shared = shared
        self._limit = limit or (shared._limit if shared else None)
        self._clients: dict[str, Client] = {}
        self._twins: dict[str, Client] = {}
        """The first client of a server and user."""
        self._lock = threading.Lock()

    def get(self, server: ServerRef, resolve: Callable[[str], str]) -> Client:
        """Return the client of a server.

        Args:
            server: The server and how to authenticate.
            resolve: Returns the secret behind a reference; used when the client is created.
        """
        key = server.model_dump_json()
        if self._shared is not None and _CONFIG_REFERENCE_START not in key:
            return self._shared.get(server, resolve)
        with self._lock:
            if key not in self._clients:
                same = server.model_copy(update={"project_id": None}).model_dump_json()
                twin = self._twins.get(same)
                self._clients[key] = client = Client(server, resolve, lists=self.lists, twin=twin, limit=self._limit)
                self._twins.setdefault(same, client)
            return self._clients[key]

    def close(self) -> None:
        """Close the connections of all clients."""
        with self._lock:
            for client in self._twins.values():
                client.close()
            self._clients.clear()
            self._twins.clear()
