"""Views of one catalog of a migration, as the JSON of their metadata. PyIceberg has no replacement and no renaming."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from pyiceberg.catalog.rest import Endpoints, IdentifierKind, RestCatalog
from pyiceberg.typedef import Identifier

from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.endpoint import COPYING, Endpoint
from lakewright_spark.migration.view_history import Json, build_commits, build_creation, describe_view
from lakewright_spark.pyiceberg_client.catalog import explain_errors

_RENAME = "views/rename"


@dataclass(frozen=True)
class StoredView:
    """A view, and the address of its metadata file, which changes with each commit."""

    metadata: Json
    location: str


@dataclass(frozen=True)
class ViewCatalog:
    """The views of a warehouse behind Iceberg REST. Methods raise this package's errors."""

    endpoint: Endpoint

    def find(self, identifier: Identifier) -> StoredView | None:
        """Return a view; None if it does not exist."""
        response = self._request("GET", Endpoints.load_view, identifier)
        return StoredView(response["metadata"], response["metadata-location"]) if response else None

    def find_default_catalog(self, identifier: Identifier) -> str | None:
        """Return the catalog of table names in a view's queries that name none; None for the view's own catalog."""
        view = self.find(identifier)
        return describe_view(view.metadata)["states"][-1].get("default-catalog") if view else None

    def start_copy(self, metadata: Json, identifier: Identifier) -> StoredView:
        """Return a new view with the history of another view. It has its name after `finish_copy`."""
        incomplete = _name_copy(identifier)
        self.drop(incomplete)  # of a killed run
        self.endpoint.create_namespace(identifier[:-1])
        view = self._request("POST", Endpoints.create_view, incomplete, build_creation(metadata, incomplete[-1]))
        for commit in build_commits(metadata, view["metadata"]["view-uuid"]):
            view = self._request("POST", Endpoints.load_view, incomplete, commit)
        return StoredView(view["metadata"], view["metadata-location"])

    def finish_copy(self, identifier: Identifier) -> None:
        """Give the view of `start_copy` its name, which has to be free."""
        self.rename(_name_copy(identifier), identifier)

    def rename(self, old: Identifier, new: Identifier) -> None:
        """Give a view another name."""
        body = {
            key: {"namespace": list(name[:-1]), "name": name[-1]}
            for key, name in (("source", old), ("destination", new))
        }
        self._request("POST", _RENAME, old, body)

    def drop(self, identifier: Identifier) -> None:
        """Remove a view, unless it does not exist."""
        # Without `force`, a warehouse with soft deletion keeps the name taken, and a protected view remains.
        parameters = {"force": "true"} if self.endpoint.config.kind == "lakekeeper" else {}
        self._request("DELETE", Endpoints.drop_view, identifier, parameters=parameters)

    def _request(
        self,
        method: str,
        path: str,
        identifier: Identifier,
        body: Json | None = None,
        parameters: dict[str, str] | None = None,
    ) -> Json:
        """Return the response; an empty document for a view that does not exist."""
        catalog, target = cast(RestCatalog, self.endpoint.catalog), f"view {'.'.join(identifier)}"
        parts = catalog._split_identifier_for_path(identifier, IdentifierKind.VIEW)  # pyright: ignore[reportPrivateUsage]
        with explain_errors(self.endpoint.config, self.endpoint.warehouse, target):
            response = self.endpoint.session.request(
                method, catalog.url(path, prefixed=True, **parts), json=body, params=parameters
            )
            if response.status_code == HTTPStatus.NOT_FOUND and body is None:
                return {}
            if not response.ok:
                raise MigrationError(
                    f"{self.endpoint} refuses {method} of {target}: expected success, found "
                    f"{response.status_code}: {_read_message(response)}"
                )
            return response.json() if response.content else {}


def _name_copy(identifier: Identifier) -> Identifier:
    return (*identifier[:-1], f"{identifier[-1]}{COPYING}")


def _read_message(response: Any) -> str:
    """Return the first line of the server's message."""
    try:
        text = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = response.text
    return (text.strip().splitlines() or [response.reason])[0]
