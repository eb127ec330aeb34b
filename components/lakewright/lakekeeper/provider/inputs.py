"""What a program declares: the base of all models of properties, and the marks that say what a change of one means."""

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
"""Most values are one of these, with nothing in them: asked first, for speed."""


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Replace:
    """A change needs a new object: the server never changes this."""


@dataclass(frozen=True)
class Update:
    """A change is made in place."""

    via: str
    """Name of the call that makes it."""


@dataclass(frozen=True)
class Rotate:
    """A change of a credential, which no other property goes with."""

    via: str
    """Name of the call that makes it."""


@dataclass(frozen=True)
class StateOnly:
    """A change is written into the state, without any call."""


@dataclass(frozen=True)
class CreateOnly:
    """Matters when the object is created and never again."""


@dataclass(frozen=True)
class ServerKeeps:
    """Left out means: whatever the server has. Without this mark, left out means that there is to be none."""


@dataclass(frozen=True)
class Since:
    """Needs a server of this version or newer. Older servers drop the property silently."""

    version: Version


@dataclass(frozen=True)
class NeedsActive:
    """Changes in an active warehouse only. In an inactive one, the server answers as if the warehouse were missing."""


@dataclass(frozen=True)
class NeedsOpenFga:
    """Needs a server that authorizes by OpenFGA."""


@dataclass(frozen=True)
class Wire:
    """The key of a property in requests and responses, for a property that needs no code of its own."""

    key: str
    in_create: bool = False
    """Whether the request that creates the object has it."""
    optional: bool = False
    """Whether responses may lack it."""
    to_wire: Callable[[Any], Any] = _unchanged
    """Converts a declared value to JSON."""
    from_wire: Callable[[Any], Any] = _unchanged
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
        """From properties as the engine hands them over. Raises pydantic.ValidationError."""
        return cls.model_validate(tidied(props))

    @classmethod
    def from_state(cls, props: dict[str, Any]) -> Self:
        """From what the state holds, where there are computed properties too. Raises pydantic.ValidationError."""
        return cls.model_validate(tidied(props), extra="ignore", context=RECORDED)

    def props(self) -> dict[str, Any]:
        """As properties for the engine: plain values, without those that are not set."""
        return _with_unknown(self, self.model_dump(exclude_none=True, warnings=False))


class ResourceInputs(Declared):
    """What every object on a server has."""

    server: Annotated[ServerRef, StateOnly()]
    """`endpoint` and `auth` of the server; secrets by reference."""


class Deletable(ResourceInputs):
    """An object that holds data, or leads to it."""

    deletion: Annotated[Deletion, StateOnly()] = "protect"
    """What happens to data when the resource goes: `protect` refuses while there is some, `retain` leaves all, `purge`
    deletes."""


M = TypeVar("M")


def find_mark(field: FieldInfo, kind: type[M]) -> M | None:
    """Return the mark of a kind that a field carries, or None."""
    return next((mark for mark in field.metadata if isinstance(mark, kind)), None)


def require_supported(server: Server, declared: Declared, prefix: str = "") -> None:
    """Refuse declared properties that a server does not support.

    Args:
        server: The server.
        declared: The declaration; every property of it is known.
        prefix: Path of the declaration within another one, with a dot at its end.

    Raises:
        UnsupportedServerError: A property with `Since` or `NeedsOpenFga` is set, and the server is older or has another
            authorizer.
    """
    for name, field in type(declared).model_fields.items():
        value, path = getattr(declared, name), f"{prefix}{name}"
        if value is None:
            continue
        if since := find_mark(field, Since):
            server.require_version(path, since.version)
        if find_mark(field, NeedsOpenFga):
            server.require_openfga(path)
        if isinstance(value, Declared):
            require_supported(server, value, f"{path}.")


def _type_of(value: Any) -> Any:
    return cast(dict[str, Any], value).get("type") if isinstance(value, dict) else getattr(value, "type", None)


def one_of(*types: str, default: str | None = None) -> Discriminator:
    """Tells the kinds of a property apart by their `type`, which may be left out where there is a default."""
    return Discriminator(
        lambda value: _type_of(value) or default,
        custom_error_type="unknown_type",
        custom_error_message=f"`type` must be one of {', '.join(f'`{name}`' for name in types)}",
    )


def _nests_declared(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, Declared)
    return any(_nests_declared(argument) for argument in get_args(annotation))


def _with_unknown(declared: Declared, props: dict[str, Any]) -> dict[str, Any]:
    """Props with what is not known yet: where there is to be a model, pydantic would write an empty one."""
    for name, value in vars(declared).items():
        if type(value) in _SCALARS:
            continue
        if isinstance(value, Unknown):
            props[name] = value
        elif isinstance(value, Declared):
            _with_unknown(value, props[name])
    return props


def is_unknown(value: Any) -> bool:
    """Whether a value as a whole is not known yet."""
    return isinstance(value, Unknown)


def has_unknown(value: Any) -> bool:
    """Whether a value, or anything in it, is not known yet."""
    if type(value) in _SCALARS:
        return False
    if isinstance(value, BaseModel):
        return any(has_unknown(item) for _, item in value)
    if isinstance(value, dict):
        return any(has_unknown(item) for item in cast(dict[str, Any], value).values())
    if isinstance(value, list | tuple):
        return any(has_unknown(item) for item in cast(list[Any], value))
    return is_unknown(value)


def tidied(value: Any) -> Any:
    """Values as they were before the engine: it makes floats of integers, and adds keys of its own."""
    if type(value) is str:
        return value
    if isinstance(value, dict):
        items = cast(dict[str, Any], value).items()
        return {key: tidied(item) for key, item in items if item is not None and not key.startswith("__")}
    if isinstance(value, list):
        return [tidied(item) for item in cast(list[Any], value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def failures(error: ValidationError, props: dict[str, Any]) -> list[tuple[str, str]]:
    """Path and reason of each error. A reason never repeats the value: it may be a secret."""
    found: list[tuple[str, str]] = []
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        reason = one["msg"].removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            reason = "is not a property here"
        elif one["type"] == "missing":
            reason = "is required"
        found.append((_path(one["loc"], props, missing=one["type"] == "missing"), reason))
    return found


def _path(location: tuple[int | str, ...], props: Any, *, missing: bool) -> str:
    """A pydantic location without the tags of unions, which no program writes."""
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
