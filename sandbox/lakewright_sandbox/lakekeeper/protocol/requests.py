"""Parse requests as the real server's framework does, which refuses invalid requests in plain text.

Wording and positions follow serde_json; clients see them in the body of a 400 or 422.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from lakewright_sandbox.lakekeeper.protocol.errors import RequestRejectedError
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST, is_at_least
from lakewright_sandbox.typed.json_values import is_array, is_object

M = TypeVar("M", bound=BaseModel)

UNKNOWN_NAME = "unknown_name"
"""Type of a validation error about the field that selects an object's variant."""
STORAGE = ("storage-profile", "storage-credential", "new-storage-credential")

TRUE = {"1", "t", "T", "TRUE", "true", "True"}
FALSE = {"0", "f", "F", "FALSE", "false", "False"}


@dataclass(frozen=True)
class TokenPrincipal:
    """The caller of a request by the verified token: `oidc~SUBJECT` and other claims."""

    id: str
    name: str | None = None
    email: str | None = None
    is_human: bool = False
    has_roles: bool = False


async def read_principal(request: Request) -> TokenPrincipal | None:
    """Return the request's caller, None for an anonymous caller. A server without tokens has anonymous callers only."""
    return getattr(request.state, "principal", None)


Caller = Annotated[TokenPrincipal | None, Depends(read_principal)]


async def raw_body(request: Request) -> bytes:
    """Return the body as it was sent."""
    return await request.body()


RawBody = Annotated[bytes, Depends(raw_body)]


def unknown_variant(raw: bytes, name: str, path: str, variants: Iterable[str]) -> RequestRejectedError:
    """Return the 422 of an unknown value in the body."""
    before, match, _ = raw.partition(f'"{name}"'.encode())
    line, column = before.count(b"\n") + 1, len(before.rpartition(b"\n")[2] + match)
    names = [f"`{variant}`" for variant in variants]
    expected = f"one of {', '.join(names)}" if len(names) > 1 else names[0]
    reason = f"{path}: unknown variant `{name}`, expected {expected} at line {line} column {column}"
    return RequestRejectedError(422, f"Failed to deserialize the JSON body into the target type: {reason}")


def wrong_type(value: Any, expected: str) -> PydanticCustomError:
    """Return the validator's error for a value of another JSON type."""
    texts = {str: f'string "{value}"', bool: f"boolean `{json.dumps(value)}`", int: f"integer `{value}`"}
    texts |= {float: f"floating point `{value}`", dict: "map", list: "sequence", type(None): "null"}
    reason = f"invalid type: {texts[type(value)]}, expected {expected}"
    return PydanticCustomError("wrong_type", "{reason}", {"reason": reason})


def build_missing_field_error(name: str) -> PydanticCustomError:
    """Return the validator's error for a missing field."""
    return PydanticCustomError("missing_field", "{reason}", {"reason": f"missing field `{name}`"})


def unknown_name(field: str, name: Any, variants: Iterable[str]) -> PydanticCustomError:
    """Return the validator's error for a field that names an unknown variant."""
    if not isinstance(name, str):
        return wrong_type(name, "variant identifier")
    return PydanticCustomError(UNKNOWN_NAME, "unknown", {"field": field, "name": name, "known": tuple(variants)})


def knows(info: ValidationInfo, since: str) -> bool:
    """Return, within a validator, whether the emulated server has at least that version."""
    context: dict[str, str] = info.context or {}
    return is_at_least(context.get("version", NEWEST), since)


class Body(BaseModel):
    """A request body with kebab-case keys. Unknown keys are ignored."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True)


def read_body(model: type[M]) -> Any:
    """Return a dependency that parses the request's JSON body as `model`."""

    async def read(request: Request) -> M:
        version = request.app.state.lakekeeper.settings.version
        return parse(model, await request.body(), request.headers.get("content-type", ""), version)

    reader: Callable[[Request], Awaitable[M]] = read
    return Depends(reader)


def parse(model: type[M], raw: bytes, content_type: str, version: str = NEWEST) -> M:
    """Return the parsed body.

    Validators see the server's version in their context, so that models drop fields that an old version lacks.

    Raises:
        RequestRejectedError: The body is not JSON or does not match the model.
    """
    media_type = content_type.split(";", maxsplit=1)[0].strip().lower()
    if not re.fullmatch(r"application/(json|[\w.-]+\+json)", media_type):
        raise RequestRejectedError(415, "Expected request with `Content-Type: application/json`")
    try:
        return model.model_validate_json(raw, strict=True, context={"version": version})
    except ValidationError as error:
        raise _rejection(raw, error) from None


def _rejection(raw: bytes, error: ValidationError) -> RequestRejectedError:
    detail = error.errors(include_url=False)[0]
    if detail["type"] == "json_invalid":
        reason = detail.get("ctx", {}).get("error", "invalid JSON")
        return RequestRejectedError(400, f"Failed to parse the request body as JSON: {reason}")
    path = _select_existing_path(json.loads(raw), detail["loc"])
    text = raw.decode()
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        message, path = f"missing field `{detail['loc'][-1]}`", path[:-1] if _is_last(path, detail["loc"]) else path
    if path and path[0] in STORAGE:  # serde parses these as a whole, and names none of their fields but the type
        path[1:] = []
    line, column = _position(text, path)
    dotted_path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    if detail["type"] == UNKNOWN_NAME:
        unknown = detail.get("ctx", {})
        return unknown_variant(raw, unknown["name"], f"{dotted_path}.{unknown['field']}", unknown["known"])
    prefix = f"{dotted_path}: " if dotted_path else ""
    return RequestRejectedError(
        422,
        f"Failed to deserialize the JSON body into the target type: {prefix}{message} at line {line} column {column}",
    )


def _is_last(path: list[str | int], loc: tuple[str | int, ...]) -> bool:
    return bool(path) and path[-1] == loc[-1]


def _select_existing_path(document: Any, loc: tuple[str | int, ...]) -> list[str | int]:
    """Return the part of pydantic's `loc` that exists in the document, without union tags and missing keys."""
    path: list[str | int] = []
    for part in loc:
        if is_object(document) and part in document:
            document = document[part]
        elif is_array(document) and isinstance(part, int):
            document = document[part] if part < len(document) else None
        else:
            continue
        path.append(part)
    return path


def _position(text: str, path: list[str | int]) -> tuple[int, int]:
    """Return where serde_json stops: after the first-level value that is wrong, or after the whole document.

    After the last value it consumes one more byte, the closing brace.
    """
    end = len(text.rstrip())
    if path and text.lstrip().startswith("{"):
        end = _end_of_member(text, str(path[0]))
        remaining_text = text[end:]
        if remaining_text.lstrip().startswith("}"):
            end += remaining_text.index("}") + 1
    before = text[:end]
    return before.count("\n") + 1, len(before.rpartition("\n")[2].encode())


def _end_of_member(text: str, key: str) -> int:
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while True:
        at = _skip(text, at, " \t\r\n,")
        name, at = decoder.raw_decode(text, at)
        at = _skip(text, at, " \t\r\n:")
        _, at = decoder.raw_decode(text, at)
        if name == key:
            return at


def _skip(text: str, at: int, over: str) -> int:
    while text[at] in over:
        at += 1
    return at


def reject_query(error: RequestValidationError) -> RequestRejectedError:
    """Return the 400 in plain text of an invalid path or query parameter."""
    detail = error.errors()[0]
    parameter_kind, name = detail["loc"][0], detail["loc"][-1]
    value = detail.get("input")
    if parameter_kind == "path":
        reason = f"UUID parsing failed: {uuid_fault(str(value))}"
        return RequestRejectedError(400, f"Invalid URL: Cannot parse `{name}` with value `{value}`: {reason}")
    message = str(detail["msg"]).removeprefix("Value error, ")
    return RequestRejectedError(400, f"Failed to deserialize query string: {name}: {message}")


def uuid_fault(text: str) -> str:
    """Return why a text is not a UUID, in the real server's words."""
    for index, character in enumerate(text):
        if character not in "0123456789abcdefABCDEF-":
            return f"invalid character: found `{character}` at {index}"
    return f"invalid length: expected length 32 for simple format, found {len(text)}"


def _flag(value: Any) -> Any:
    if isinstance(value, str):
        if value in TRUE:
            return True
        if value in FALSE:
            return False
        raise ValueError(f"provided string was not `true` or `false`: `{value}`")
    return value


Flag = Annotated[bool, BeforeValidator(_flag), Query()]
