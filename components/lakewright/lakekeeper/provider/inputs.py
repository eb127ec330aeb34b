"""Base of all property models, and marks that define what a change of a property requires."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar, cast, get_args

from pulumi.output import Unknown
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic.fields import FieldInfo

from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.connection.versions import Server, Version
from lakewright.names.types import RECORDED, Deletion

UNKNOWN = Unknown()
_SCALARS = frozenset({str, int, float, bool, type(None)})
"""Types of most values. They contain no other values, and are checked first for speed."""


def _return_unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Replace:
    """A change needs a new object, because the server cannot change the property."""


@dataclass(frozen=True)
class Update:
    """A change is made in place."""

    via: str
    """Name of the call that makes it."""


@dataclass(frozen=True)
class Rotate:
    """A change of a credential, made by a call of its own."""

    via: str
    """Name of the call that makes it."""


@dataclass(frozen=True)
class StateOnly:
    """A change is written into the state, without any call."""


@dataclass(frozen=True)
class CreateOnly:
    """The property applies only when the object is created."""


@dataclass(frozen=True)
class ServerKeeps:
    """The server keeps its value if the property is left out. Without this mark, the value is then removed."""


@dataclass(frozen=True)
class Since:
    """The property needs a server of this version or newer. Older servers drop it silently."""

    version: Version


@dataclass(frozen=True)
class NeedsActive:
    """The property can change only in an active warehouse. Otherwise the server reports a missing warehouse."""


@dataclass(frozen=True)
class NeedsOpenFga:
    """The property needs a server that authorizes with OpenFGA."""


@dataclass(frozen=True)
class Wire:
    """The key of a property in requests and responses, for a property that needs no code of its own."""

    key: str
    in_create: bool = False
    """Whether the request that creates the object has it."""
    optional: bool = False
    """Whether responses may lack it."""
    to_wire: Callable[[Any], Any] = _return_unchanged
    """Converts a declared value to JSON."""
    from_wire: Callable[[Any], Any] = _return_unchanged
    """Converts the JSON of a response, or None, to a declared value."""


Mark = Replace | Update | Rotate | StateOnly | CreateOnly
MARKS = (Replace, Update, Rotate, StateOnly, CreateOnly)


class Declared(BaseModel):
    """Properties as a program declares them. Any of them may be Unknown in a preview."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _unknown_passes(cls, value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if not has_unknown(value):
            return check(value)
        nested = isinstance(value, dict) and not isinstance(cast(dict[str, Any], value).get("type"), Unknown)
        if nested and info.field_name and _nests_declared(cls.model_fields[info.field_name].annotation):
            return check(value)
        return UNKNOWN

    @classmethod
    def parse(cls, props: dict[str, Any]) -> Self:
        """Parse properties as the engine passes them. Raises pydantic.ValidationError."""
        return cls.model_validate(tidy(props))

    @classmethod
    def from_state(cls, props: dict[str, Any]) -> Self:
        """Parse properties of the state, which also has computed properties. Raises pydantic.ValidationError."""
        return cls.model_validate(tidy(props), extra="ignore", context=RECORDED)

    def props(self) -> dict[str, Any]:
        """Return the properties for the engine: plain values, without unset properties."""
        return _with_unknown(self, self.model_dump(exclude_none=True, warnings=False))


class ResourceInputs(Declared):
    """Properties of every object on a server."""

    server: Annotated[ServerRef, StateOnly()]
    """`endpoint` and `auth` of the server; secrets by reference."""


class Deletable(ResourceInputs):
    """An object that contains data or leads to it."""

    deletion: Annotated[Deletion, StateOnly()] = "protect"
    """Effect on data when the resource is deleted: `protect` refuses while there is data, `retain` keeps it,
    `purge` deletes it."""


M = TypeVar("M")


def find_mark(field: FieldInfo, kind: type[M]) -> M | None:
    """Return the mark of a kind that a field carries, or None."""
    return next((mark for mark in field.metadata if isinstance(mark, kind)), None)


def require_supported(server: Server, args: Declared, prefix: str = "") -> None:
    """Refuse declared properties that a server does not support.

    Args:
        server: The server.
        args: The declaration. All its properties are known.
        prefix: Path of the declaration within another declaration, with a dot at its end.

    Raises:
        UnsupportedServerError: A property with `Since` or `NeedsOpenFga` is set, and the server is older or has another
            authorizer.
    """
    for name, field in type(args).model_fields.items():
        value, path = getattr(args, name), f"{prefix}{name}"
        if value is None:
            continue
        if since := find_mark(field, Since):
            server.require_version(path, since.version)
        if find_mark(field, NeedsOpenFga):
            server.require_openfga(path)
        if isinstance(value, Declared):
            require_supported(server, value, f"{path}.")


def _read_type(value: Any) -> Any:
    return cast(dict[str, Any], value).get("type") if isinstance(value, dict) else getattr(value, "type", None)


def discriminate_by_type(*types: str, default: str | None = None) -> Discriminator:
    """Return a discriminator by `type`, which may be left out if there is a default."""
    return Discriminator(
        lambda value: _read_type(value) or default,
        custom_error_type="unknown_type",
        custom_error_message=f"`type` must be one of {', '.join(f'`{name}`' for name in types)}",
    )


def _nests_declared(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, Declared)
    return any(_nests_declared(argument) for argument in get_args(annotation))


def _with_unknown(args: Declared, props: dict[str, Any]) -> dict[str, Any]:
    """Add unknown values to props, because pydantic dumps an unknown model as an empty model."""
    for name, value in vars(args).items():
        if type(value) in _SCALARS:
            continue
        if isinstance(value, Unknown):
            props[name] = value
        elif isinstance(value, Declared):
            _with_unknown(value, props[name])
    return props


def is_unknown(value: Any) -> bool:
    """Return whether a whole value is not known yet."""
    return isinstance(value, Unknown)


def has_unknown(value: Any) -> bool:
    """Return whether a value, or any value in it, is not known yet."""
    if type(value) in _SCALARS:
        return False
    if isinstance(value, BaseModel):
        return any(has_unknown(item) for _, item in value)
    if isinstance(value, dict):
        return any(has_unknown(item) for item in cast(dict[str, Any], value).values())
    if isinstance(value, list | tuple):
        return any(has_unknown(item) for item in cast(list[Any], value))
    return is_unknown(value)


def tidy(value: Any) -> Any:
    """Undo changes of the engine: it converts integers to floats, and adds its own keys."""
    if type(value) is str:
        return value
    if isinstance(value, dict):
        items = cast(dict[str, Any], value).items()
        return {key: tidy(item) for key, item in items if item is not None and not key.startswith("__")}
    if isinstance(value, list):
        return [tidy(item) for item in cast(list[Any], value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def failures(error: ValidationError, props: dict[str, Any]) -> list[tuple[str, str]]:
    """Return path and reason of each error. A reason never contains the value, which may be a secret."""
    failures_found: list[tuple[str, str]] = []
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        reason = details["msg"].removeprefix("Value error, ")
        if details["type"] == "extra_forbidden":
            reason = "is not a property here"
        elif details["type"] == "missing":
            reason = "is required"
        failures_found.append((_path(details["loc"], props, missing=details["type"] == "missing"), reason))
    return failures_found


def _path(location: tuple[int | str, ...], props: Any, *, missing: bool) -> str:
    """Return a pydantic location without tags of unions, which are not part of the program."""
    path: list[str] = []
    for index, part in enumerate(location):
        last = index == len(location) - 1
        if isinstance(props, dict):
            if part in props or (last and missing):
                path.append(str(part))
                props = cast(dict[Any, Any], props).get(part)
        elif isinstance(props, list) and isinstance(part, int):
            path.append(str(part))
            items = cast(list[Any], props)
            props = items[part] if part < len(items) else None
        elif not last or not path:
            path.append(str(part))
    return ".".join(path)
