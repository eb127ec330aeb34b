"""Errors in Lakekeeper's format. One exception carries all of them; clients distinguish them by `type`.

`lakewright_sandbox.errors` draws the tree of exceptions.
"""

from __future__ import annotations

from starlette.responses import Response

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.responses import json_response


class ApiError(SandboxError):
    """An error response in Lakekeeper's format. `stack` has details; the error's id is appended."""

    def __init__(self, status: int, kind: str, message: str, *stack: str) -> None:
        """Set the HTTP status, the error's type, the message and details."""
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.stack = stack

    def response(self) -> Response:
        """Return the HTTP response; responses of server errors leave out the details."""
        detail = [] if self.status >= 500 else list(self.stack)
        body = {
            "message": self.message,
            "type": self.kind,
            "code": self.status,
            "stack": [*detail, f"Error ID: {new_id()}"],
        }
        return json_response({"error": body}, self.status)


class RequestRejectedError(ApiError):
    """A request that never reached the API: bad JSON, wrong shape, wrong content type. The response is plain text."""

    def __init__(self, status: int, message: str) -> None:
        """Set the HTTP status and the message."""
        super().__init__(status, "RequestRejectedError", message)

    def response(self) -> Response:
        """Return the HTTP response."""
        return Response(self.message, self.status, media_type="text/plain")


def warehouse_missing(warehouse_id: str, during: str = "Warehouse not found or access denied") -> ApiError:
    """Return the 404 of a missing warehouse."""
    message = f"A warehouse with id '{warehouse_id}' does not exist"
    return ApiError(404, "NoSuchWarehouseException", message, during)


def namespace_missing(name: str, warehouse_id: str) -> ApiError:
    """Return the 404 of a missing namespace."""
    message = f"Namespace with name '{name}' does not exist in warehouse '{warehouse_id}'"
    return ApiError(404, "NoSuchNamespaceException", message, "Namespace not found or access denied")


def camel(kind: str) -> str:
    """Return a kind of object as error types spell it: `GenericTable`."""
    return "".join(part.capitalize() for part in kind.split("-"))


def tabular_missing(kind: str) -> ApiError:
    """Return the 404 of a missing `table`, `view` or `generic-table`."""
    return ApiError(404, f"NoSuch{camel(kind)}Exception", "Error getting tabular from catalog")


def project_missing(project_id: str) -> ApiError:
    """Return the 404 of a missing project."""
    return ApiError(404, "ProjectNotFound", f"Project with id {project_id} not found.")
