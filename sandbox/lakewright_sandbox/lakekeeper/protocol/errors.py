"""Errors as Lakekeeper words them. One exception carries all of them: clients tell them apart by `type`.

ApiError
|-- RequestRejectedError   the framework refused the request before the API saw it (text/plain)
`-- StorageError           S3 refused or could not be reached (in `storage/access.py`)
"""

from __future__ import annotations

from starlette.responses import Response

from .clock import new_id
from .responses import json_response


class ApiError(Exception):
    """An answer in Lakekeeper's error shape. `stack` says more; its last entry, the error's id, is added here."""

    def __init__(self, status: int, kind: str, message: str, *stack: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.stack = stack

    def response(self) -> Response:
        detail = [] if self.status >= 500 else list(self.stack)
        body = {
            "message": self.message,
            "type": self.kind,
            "code": self.status,
            "stack": [*detail, f"Error ID: {new_id()}"],
        }
        return json_response({"error": body}, self.status)


class RequestRejectedError(ApiError):
    """A request that never reached the API: bad JSON, wrong shape, wrong content type. Plain text, not JSON."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, "RequestRejectedError", message)

    def response(self) -> Response:
        return Response(self.message, self.status, media_type="text/plain")


def warehouse_missing(warehouse_id: str, during: str = "Warehouse not found or access denied") -> ApiError:
    message = f"A warehouse with id '{warehouse_id}' does not exist"
    return ApiError(404, "NoSuchWarehouseException", message, during)


def namespace_missing(name: str, warehouse_id: str) -> ApiError:
    message = f"Namespace with name '{name}' does not exist in warehouse '{warehouse_id}'"
    return ApiError(404, "NoSuchNamespaceException", message, "Namespace not found or access denied")


def camel(kind: str) -> str:
    """A kind of object as types of errors are named after it: `GenericTable`."""
    return "".join(part.capitalize() for part in kind.split("-"))


def tabular_missing(kind: str) -> ApiError:
    """`kind` is `table`, `view` or `generic-table`."""
    return ApiError(404, f"NoSuch{camel(kind)}Exception", "Error getting tabular from catalog")


def project_missing(project_id: str) -> ApiError:
    return ApiError(404, "ProjectNotFound", f"Project with id {project_id} not found.")
