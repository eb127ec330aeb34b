"""The running server, and the dependencies that give it to request handlers."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header, Request
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.authorizer import Authorizer
from lakewright_sandbox.lakekeeper.database.models import WarehouseRow
from lakewright_sandbox.lakekeeper.database.server_context import ServerContext
from lakewright_sandbox.lakekeeper.protocol.clock import Clock
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.storage.access import AnyStorage, StorageAccess
from lakewright_sandbox.lakekeeper.storage.profiles import load_credential, load_profile, open_storage
from lakewright_sandbox.lakekeeper.storage.secrets import create_secret_store
from lakewright_sandbox.lakekeeper.storage.validation import StorageProbe
from lakewright_sandbox.lakekeeper.storage.vending import CredentialVendor

PROJECT_ID = re.compile(r"[A-Za-z0-9_-]+")


class Lakekeeper(ServerContext):
    """One running server: its context, the storage of its warehouses and the authorizer."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        """Start a server on its database."""
        super().__init__(settings, clock)
        self.access = StorageAccess(settings)
        self.vendor = CredentialVendor(self.access)
        self.probe = StorageProbe(self.access, self.vendor)
        self.authorizer = Authorizer(self)
        self.secrets = create_secret_store(settings)
        self._storages: dict[tuple[str, int | None, str | None], AnyStorage] = {}

    def open_storage(self, session: Session, warehouse: WarehouseRow) -> AnyStorage:
        """Return the storage of a warehouse, cached until its profile or credential changes.

        Raises:
            ApiError: The sandbox has no such storage.
        """
        version = (warehouse.id, warehouse.updated_at, warehouse.secret_id)
        storage = self._storages.get(version)
        if storage is None:
            credential = load_credential(self.secrets.read_secret(session, warehouse.secret_id))
            storage = open_storage(load_profile(warehouse.storage_profile), credential, self.settings)
            if len(self._storages) > 10_000:
                self._storages.clear()
            self._storages[version] = storage
        return storage


async def get_server(request: Request) -> Lakekeeper:
    """Return the server of a request. It is async because FastAPI runs plain functions in a thread."""
    return request.app.state.lakekeeper


Server = Annotated[Lakekeeper, Depends(get_server)]


def validate_project_id(value: str) -> str:
    """Return a project id. Raises ValueError for an invalid id."""
    if not PROJECT_ID.fullmatch(value):
        message = f"Project IDs may only contain alphanumeric characters, hyphens and underscores. Got: `{value}`"
        raise ValueError(message)
    return value


async def read_project(
    server: Server,
    x_project_id: Annotated[str | None, Header()] = None,
    x_project_ident: Annotated[str | None, Header()] = None,
) -> str:
    """Return the project of a request: its header, by default the default project."""
    value = x_project_id or x_project_ident
    if not value:
        return server.settings.default_project
    try:
        return validate_project_id(value)
    except ValueError as error:
        raise ApiError(400, "MalformedProjectID", str(error), "Invalid x-project-id header value.") from None


ProjectId = Annotated[str, Depends(read_project)]
