"""Lakekeeper as Pulumi resources. `api` beneath is a plain client without Pulumi."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakewright.lakekeeper.bootstrap import Bootstrap
    from lakewright.lakekeeper.deletion_guard import DeletionGuard
    from lakewright.lakekeeper.external_id import ExternalId
    from lakewright.lakekeeper.namespace import Namespace
    from lakewright.lakekeeper.project import Project
    from lakewright.lakekeeper.warehouse import Warehouse

__all__ = ["Bootstrap", "DeletionGuard", "ExternalId", "Namespace", "Project", "Warehouse"]

_FILES = {
    "Bootstrap": "bootstrap",
    "DeletionGuard": "deletion_guard",
    "ExternalId": "external_id",
    "Namespace": "namespace",
    "Project": "project",
    "Warehouse": "warehouse",
}


def __getattr__(name: str) -> Any:
    # Importing Pulumi takes most of a second, which users of the client alone do without.
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
