"""Refusals in the API server's words: its `Status` objects."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response

from .kinds import ObjectKind
from .ownership import ApplyConflictError

_REASONS = {400: "BadRequest", 404: "NotFound", 415: "UnsupportedMediaType", 422: "Invalid"}


class ApiStatusError(Exception):
    """A request that is answered with a `Status` of failure."""

    def __init__(self, code: int, message: str, reason: str = "", causes: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.causes = code, reason or _REASONS[code], causes or []

    def response(self) -> Response:
        details: dict[str, Any] = {"details": {"causes": self.causes}} if self.causes else {}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": str(self)}
        return JSONResponse(status | {"reason": self.reason, "code": self.code} | details, self.code)


def not_found(kind: ObjectKind, name: str) -> ApiStatusError:
    return ApiStatusError(404, f'{kind.resource} "{name}" not found')


def already_exists(kind: ObjectKind, name: str) -> ApiStatusError:
    return ApiStatusError(409, f'{kind.resource} "{name}" already exists', "AlreadyExists")


def changed_meanwhile(kind: ObjectKind, name: str) -> ApiStatusError:
    message = (
        f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; please apply your '
        "changes to the latest version and try again"
    )
    return ApiStatusError(409, message, "Conflict")


def conflict(error: ApplyConflictError) -> ApiStatusError:
    return ApiStatusError(409, str(error), "Conflict", error.causes)


def immutable(kind: ObjectKind, name: str, key: str, value: Any) -> ApiStatusError:
    field, found = f"spec.{key}", json.dumps(value, separators=(",", ":"))
    told = f"Invalid value: {found}: field is immutable"
    cause = {"reason": "FieldValueInvalid", "message": told, "field": field}
    return ApiStatusError(422, f'{kind.kind}.{kind.group} "{name}" is invalid: {field}: {told}', "Invalid", [cause])


def manager_required() -> ApiStatusError:
    told = "Required value: is required for apply patch"
    cause = {"reason": "FieldValueRequired", "message": told, "field": "fieldManager"}
    return ApiStatusError(422, f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {told}', "Invalid", [cause])
