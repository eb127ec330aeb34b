"""Views of one catalog of a migration, as the JSON of their metadata. PyIceberg has no replacement and no renaming."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from pyiceberg.catalog.rest import Endpoints, IdentifierKind, RestCatalog
from pyiceberg.typedef import Identifier

from lakewright_spark.errors import MigrationError
from lakewright_spark.migration.endpoint import RENAME_VIEW, Endpoint, rename_copying
from lakewright_spark.migration.view_history import (
    HISTORY_LIMIT,
    Json,
    add_version,
    allow_lost_dialects,
    build_commit,
    build_creation,
    build_update,
    copy_current_version,
    copy_properties,
    describe_view,
    limit_history,
    list_missing_versions,
)
from lakewright_spark.pyiceberg_client.catalog import explain_errors


@dataclass(frozen=True)
class StoredView:
    """A view, and the address of its metadata file, which changes with each commit."""

    metadata: Json
    location: str

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties."""
        return self.metadata.get("properties") or {}


@dataclass(frozen=True)
class ViewCatalog:
    """The views of a warehouse behind Iceberg REST. Methods raise this package's errors."""

    endpoint: Endpoint

    def find(self, identifier: Identifier) -> StoredView | None:
        """Return a view; None if it does not exist."""
        response = self._request("GET", Endpoints.load_view, identifier)
        return StoredView(response["metadata"], response["metadata-location"]) if response else None

    def list_losses(self, identifier: Identifier) -> Iterator[str]:
        """Yield what another catalog's view with the history of this view will lack."""
        if (view := self.find(identifier)) is None:
            return
        name, metadata = ".".join(identifier), view.metadata
        if catalog := describe_view(metadata)["current version"].get("default-catalog"):
            yield f"{name}: its queries name the catalog {catalog}: give the target this name in engines"
        if count := len(metadata["versions"]) - len(limit_history(metadata)["versions"]):
            yield f"{name}: {count} earliest versions, since catalogs keep the number in {HISTORY_LIMIT}, or 10"

    def start_copy(self, metadata: Json, identifier: Identifier) -> StoredView:
        """Return a new view with the history of another view. It has its name after `finish_copy`."""
        incomplete = rename_copying(identifier)
        self.drop(incomplete)  # a killed run may have left this view
        self._create_namespaces(metadata, identifier)
        self._request("POST", Endpoints.create_view, incomplete, build_creation(metadata, incomplete[-1]))
        return self.continue_history(metadata, incomplete)

    def _create_namespaces(self, metadata: Json, identifier: Identifier) -> None:
        # Lakekeeper forgets the default namespace of a version if the warehouse has no such namespace yet.
        for namespace in {identifier[:-1], *(tuple(version["default-namespace"]) for version in metadata["versions"])}:
            if namespace:
                self.endpoint.create_namespace(namespace)

    def update_copy(self, metadata: Json, identifier: Identifier, copy: StoredView) -> StoredView | None:
        """Give a view the history of another view in a single commit. None: that needs a new view."""
        updates = build_update(metadata, copy.metadata)
        if updates is None:
            return None
        self._create_namespaces(metadata, identifier)
        self._commit(identifier, copy.metadata, updates)
        return self._load(identifier)

    def continue_history(self, metadata: Json, identifier: Identifier) -> StoredView:
        """Give a view the versions of another view that it lacks, and the current version and properties of that view.

        The view is loaded again at the end: the response to a commit may have parts that the server has not stored.
        """
        copy = self._load(identifier).metadata
        missing_versions = list_missing_versions(metadata, copy)
        if missing_versions or copy_current_version(metadata, copy):
            copy = self._commit(identifier, copy, allow_lost_dialects(copy))
        for version in missing_versions:
            copy = self._commit(identifier, copy, add_version(metadata, copy, version))
        copy = self._commit(identifier, copy, copy_current_version(metadata, copy))
        self._commit(identifier, copy, copy_properties(metadata, copy))
        return self._load(identifier)

    def finish_copy(self, identifier: Identifier) -> None:
        """Give the view of `start_copy` its name, which has to be free."""
        self.rename(rename_copying(identifier), identifier)

    def set_properties(self, identifier: Identifier, values: dict[str, str]) -> None:
        """Commit properties of a view."""
        self._commit(identifier, self._load(identifier).metadata, [{"action": "set-properties", "updates": values}])

    def remove_properties(self, identifier: Identifier, names: Iterable[str]) -> None:
        """Remove the properties that a view has of these, unless the view does not exist."""
        view = self.find(identifier)
        removals = sorted(set(names) & view.properties.keys()) if view else []
        if view and removals:
            self._commit(identifier, view.metadata, [{"action": "remove-properties", "removals": removals}])

    def rename(self, old: Identifier, new: Identifier) -> None:
        """Give a view another name."""
        body = {
            key: {"namespace": list(name[:-1]), "name": name[-1]}
            for key, name in (("source", old), ("destination", new))
        }
        self._request("POST", RENAME_VIEW, old, body)

    def drop(self, identifier: Identifier) -> None:
        """Remove a view, unless it does not exist."""
        # Without `force`, a warehouse with soft deletion keeps the name taken, and a protected view remains.
        parameters = {"force": "true"} if self.endpoint.config.kind == "lakekeeper" else {}
        self._request("DELETE", Endpoints.drop_view, identifier, parameters=parameters)

    def _load(self, identifier: Identifier) -> StoredView:
        view = self.find(identifier)
        if view is None:
            raise MigrationError(f"expected the view {'.'.join(identifier)} in {self.endpoint}, found none")
        return view

    def _commit(self, identifier: Identifier, view: Json, updates: list[Json]) -> Json:
        """Return the view after a commit of updates, unless there are none."""
        if not updates:
            return view
        return self._request("POST", Endpoints.load_view, identifier, build_commit(view, updates))["metadata"]

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


def _read_message(response: Any) -> str:
    """Return the first line of the server's message."""
    try:
        text = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = response.text
    return (text.strip().splitlines() or [response.reason])[0]
