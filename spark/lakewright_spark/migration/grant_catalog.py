"""Grants on the objects of a Lakekeeper warehouse: the calls of its OpenFGA authorizer, which a migration needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, cast
from urllib.parse import quote

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.typedef import Identifier

from lakewright_spark.errors import AccessDeniedError, MigrationError
from lakewright_spark.migration.endpoint import MOVED, Endpoint
from lakewright_spark.migration.ledger import CarriedGrant
from lakewright_spark.pyiceberg_client.catalog import build_management_url, explain_errors

Level = Literal["warehouse", "namespace", "table", "view"]
ObjectKey = tuple[Level, Identifier]
"""Level and name of an object. The name of a warehouse is empty."""
Json = dict[str, Any]
_LEVELS: tuple[tuple[Level, str], ...] = (("table", "tables"), ("view", "views"))
_SEPARATOR = "\x1f"
"""Between the parts of a namespace's name, in Iceberg's REST specification."""
_AT_ONCE = 100
"""Most assignments in one request."""
_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True)
class GrantCatalog:
    """The grants on a warehouse and on the objects in it. Methods raise this package's errors."""

    endpoint: Endpoint

    @property
    def enforces_grants(self) -> bool:
        """Return whether the server enforces grants: a Lakekeeper with OpenFGA."""
        if self.endpoint.config.kind != "lakekeeper":
            return False
        return self._request("GET", f"{self._management_url}/info")["authz-backend"] == "openfga"

    @property
    def warehouse_path(self) -> str:
        """Return the path of the warehouse's permissions."""
        return f"warehouse/{self._find_warehouse_id()}"

    def list_paths(self, namespaces: Collection[Identifier]) -> dict[ObjectKey, str]:
        """Return the paths of the warehouse's, the namespaces' and their tables' and views' permissions, by object.

        A table that a cut-over has taken from its writers has its earlier name.
        """
        warehouse = self._find_warehouse_id()
        paths: dict[ObjectKey, str] = {("warehouse", ()): self.warehouse_path}
        levels = {namespace[:length] for namespace in namespaces for length in range(1, len(namespace) + 1)}
        for parent in {namespace[:-1] for namespace in levels}:
            url, parameters = self._build_url("namespaces"), {"parent": _SEPARATOR.join(parent)} if parent else {}
            for path, uuid in self._list(url, "namespaces", "namespace-uuids", parameters):
                if tuple(path) in levels:
                    paths["namespace", tuple(path)] = f"namespace/{uuid}"
        for namespace in namespaces:
            if ("namespace", namespace) not in paths:
                continue
            for level, folder in _LEVELS:
                url = self._build_url(f"namespaces/{quote(_SEPARATOR.join(namespace), safe='')}/{folder}")
                for entry, uuid in self._list(url, "identifiers", "table-uuids", {}):
                    name = str(entry["name"]).removesuffix(MOVED)
                    paths[level, (*namespace, name)] = f"warehouse/{warehouse}/{level}/{uuid}"
        return paths

    def read(self, path: str) -> set[CarriedGrant]:
        """Return the direct grants on an object; an empty set for an object that does not exist."""
        assignments = self._request("GET", self._build_assignments_url(path)).get("assignments", [])
        return {
            CarriedGrant(entry["type"], kind, entry[kind])
            for entry in assignments
            for kind in ("user", "role")
            if entry.get(kind)
        }

    def change(self, path: str, writes: Collection[CarriedGrant] = (), deletes: Collection[CarriedGrant] = ()) -> None:
        """Add and remove grants on an object. Grants to add must not exist, and grants to remove must exist."""
        for side, grants in (("writes", writes), ("deletes", deletes)):
            entries = [{"type": grant.privilege, grant.kind: grant.principal} for grant in sorted(grants)]
            for start in range(0, len(entries), _AT_ONCE):
                self._request("POST", self._build_assignments_url(path), {side: entries[start : start + _AT_ONCE]})

    def list_roles(self) -> dict[str, str]:
        """Return the names of the project's roles by ID."""
        roles = self._read_pages(f"{self._management_url}/role", {})
        return {role["id"]: role["name"] for page in roles for role in page["roles"]}

    def has_user(self, user: str) -> bool:
        """Return whether the server knows a user."""
        return bool(self._request("GET", f"{self._management_url}/user/{quote(user, safe='')}"))

    @property
    def _management_url(self) -> str:
        return build_management_url(self.endpoint.config, self.endpoint.warehouse).rpartition("/warehouse/")[0]

    def _find_warehouse_id(self) -> str:
        warehouse = self.endpoint.config.warehouse(self.endpoint.warehouse).id
        if warehouse is None:
            raise MigrationError(f"{self.endpoint}: expected `id` of the warehouse in its configuration, found none")
        return warehouse

    def _build_assignments_url(self, path: str) -> str:
        return f"{self._management_url}/permissions/{path}/assignments"

    def _build_url(self, path: str) -> str:
        return cast(RestCatalog, self.endpoint.catalog).url(path, prefixed=True)

    def _list(self, url: str, names: str, uuids: str, parameters: dict[str, str]) -> Iterator[tuple[Any, str]]:
        for page in self._read_pages(url, {**parameters, "returnUuids": "true"}):
            if page:
                yield from zip(page[names], page[uuids], strict=True)

    def _read_pages(self, url: str, parameters: dict[str, str]) -> Iterator[Json]:
        page: Json = self._request("GET", url, parameters=parameters)
        yield page
        while token := page.get("next-page-token"):
            page = self._request("GET", url, parameters={**parameters, "pageToken": token})
            yield page

    def _request(
        self, method: str, url: str, body: Json | None = None, parameters: dict[str, str] | None = None
    ) -> Json:
        """Return the response; an empty document for an object that does not exist."""
        with explain_errors(self.endpoint.config, self.endpoint.warehouse, "grants"):
            response = self.endpoint.session.request(method, url, json=body, params=parameters)
            if response.status_code == HTTPStatus.NOT_FOUND and body is None:
                return {}
            if response.status_code in _REFUSED:
                raise AccessDeniedError(
                    f"{self.endpoint} does not let this identity read or change grants: expected the privilege "
                    f"manage_grants or ownership on the warehouse, found {response.status_code} at {url}"
                )
            if not response.ok:
                operation = "change" if body is not None else "read"
                raise MigrationError(
                    f"{self.endpoint} does not {operation} grants: expected success, found {response.status_code} at "
                    f"{url}"
                )
            return response.json() if response.content else {}
