"""Error responses of the API server: its `Status` objects."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response

from lakewright_sandbox.cluster.kinds import ObjectKind
from lakewright_sandbox.cluster.ownership import ApplyConflictError
from lakewright_sandbox.errors import SandboxError

_REASONS = {400: "BadRequest", 404: "NotFound", 415: "UnsupportedMediaType", 422: "Invalid"}


class ApiStatusError(SandboxError):
    """A request whose response is a `Status` of failure."""

    def __init__(self, code: int, message: str, reason: str = "", causes: list[dict[str, str]] | None = None) -> None:
        """Set the HTTP status, the message, the reason (by default that of the status) and causes."""
        super().__init__(message)
        self.code, self.reason, self.causes = code, reason or _REASONS[code], causes or []

    def response(self) -> Response:
        """Return the HTTP response."""
        details: dict[str, Any] = {"details": {"causes": self.causes}} if self.causes else {}
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
        }
        return JSONResponse(status | {"reason": self.reason, "code": self.code} | details, self.code)


def not_found(kind: ObjectKind, name: str) -> ApiStatusError:
    """Return the 404 of a missing object."""
    return ApiStatusError(404, f'{kind.resource} "{name}" not found')


def already_exists(kind: ObjectKind, name: str) -> ApiStatusError:
    """Return the 409 of a create whose object exists."""
    return ApiStatusError(409, f'{kind.resource} "{name}" already exists', "AlreadyExists")


def build_version_conflict(kind: ObjectKind, name: str) -> ApiStatusError:
    """Return the 409 of an update from an old resource version."""
    message = (
        f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; please apply your '
        "changes to the latest version and try again"
    )
    return ApiStatusError(409, message, "Conflict")


def conflict(error: ApplyConflictError) -> ApiStatusError:
    """Return the 409 of an apply with conflicts."""
    return ApiStatusError(409, str(error), "Conflict", error.causes)


def immutable(kind: ObjectKind, name: str, key: str, value: Any) -> ApiStatusError:
    """Return the 422 of a change to an immutable field."""
    field, value_text = f"spec.{key}", json.dumps(value, separators=(",", ":"))
    detail = f"Invalid value: {value_text}: field is immutable"
    cause = {"reason": "FieldValueInvalid", "message": detail, "field": field}
    return ApiStatusError(422, f'{kind.kind}.{kind.group} "{name}" is invalid: {field}: {detail}', "Invalid", [cause])


def manager_required() -> ApiStatusError:
    """Return the 422 of an apply without field manager."""
    detail = "Required value: is required for apply patch"
    cause = {"reason": "FieldValueRequired", "message": detail, "field": "fieldManager"}
    return ApiStatusError(422, f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {detail}', "Invalid", [cause])
