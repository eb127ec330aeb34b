"""Refusals in the API server's words: its `Status` objects."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from .kinds import Kind
from .ownership import ApplyConflictError

_REASONS = {400: "BadRequest", 404: "NotFound", 415: "UnsupportedMediaType", 422: "Invalid"}


class RefusedError(Exception):
    """A request that is answered with a `Status` of failure."""

    def __init__(self, code: int, message: str, reason: str = "", causes: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.causes = code, reason or _REASONS[code], causes or []

    def response(self) -> Response:
        details: dict[str, Any] = {"details": {"causes": self.causes}} if self.causes else {}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": str(self)}
        return JSONResponse(status | {"reason": self.reason, "code": self.code} | details, self.code)


def not_found(kind: Kind, name: str) -> RefusedError:
    return RefusedError(404, f'{kind.resource} "{name}" not found')


def already_exists(kind: Kind, name: str) -> RefusedError:
    return RefusedError(409, f'{kind.resource} "{name}" already exists', "AlreadyExists")


def changed_meanwhile(kind: Kind, name: str) -> RefusedError:
    message = (
        f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; please apply your '
        "changes to the latest version and try again"
    )
    return RefusedError(409, message, "Conflict")


def conflict(error: ApplyConflictError) -> RefusedError:
    return RefusedError(409, str(error), "Conflict", error.causes)


def immutable(kind: Kind, name: str, key: str) -> RefusedError:
    field = f"spec.{key}"
    message = f'{kind.kind}.{kind.group} "{name}" is invalid: {field}: Invalid value: field is immutable'
    cause = {"reason": "FieldValueInvalid", "message": "Invalid value: field is immutable", "field": field}
    return RefusedError(422, message, "Invalid", [cause])
