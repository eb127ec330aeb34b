"""Marks that connect a typed setting with Lakekeeper's environment variable, and a walk over a model's marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

PREFIX = "LAKEKEEPER__"
OLDEST = "0.11.0"
"""The oldest supported release. Variables without `since` exist from it on."""

Form = Literal["plain", "string", "comma", "array", "raw", "file"]
"""Form of a value: `string` quotes numbers, `comma` joins a list, `array` is TOML, `raw` is never quoted, `file`
is the path of a file with the value."""


@dataclass(frozen=True)
class FormerName:
    """The name of a variable in releases before a version."""

    name: str
    before: str


@dataclass(frozen=True)
class EnvVar:
    """The variable of a setting, without the prefix `LAKEKEEPER__`."""

    name: str
    since: str = OLDEST
    former: FormerName | None = None
    form: Form = "plain"
    has_prefix: bool = True
    """Whether the name has the prefix. `RUST_LOG` has none."""
    secret: bool = False
    """Whether the value is the source of a secret."""

    def format_name(self, version: str) -> str:
        """Return the complete name in a version."""
        former = self.former
        name = former.name if former and parse_release(version) < parse_release(former.before) else self.name
        return PREFIX + name if self.has_prefix else name


@dataclass(frozen=True)
class EnvPrefix:
    """The beginning of the names of a nested model's variables. `{key}` is the key in a mapping."""

    prefix: str
    since: str = OLDEST


@dataclass(frozen=True)
class Setting:
    """A value of a variable, and the path of its setting."""

    path: str
    variable: EnvVar
    value: Any


def parse_release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version."""
    return tuple(int(part) for part in version.split("."))


def list_settings(model: BaseModel, path: str = "", prefix: str = "") -> Iterator[Setting]:
    """Yield the settings of a model that are not None, in the order of its fields."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if value is None:
            continue
        yield from _list_field_settings(field, value, f"{path}.{name}".lstrip("."), prefix)


def _list_field_settings(field: FieldInfo, value: Any, path: str, prefix: str) -> Iterator[Setting]:
    nested = next((mark for mark in field.metadata if isinstance(mark, EnvPrefix)), None)
    if isinstance(value, BaseModel):
        since = nested.since if nested else OLDEST
        for setting in list_settings(value, path, prefix + (nested.prefix if nested else "")):
            yield Setting(setting.path, _apply_since(setting.variable, since), setting.value)
    elif nested and isinstance(value, Mapping):
        for key, entry in cast(Mapping[str, BaseModel], value).items():
            inner = prefix + nested.prefix.format(key=key.upper())
            for setting in list_settings(entry, f"{path}.{key}", inner):
                yield Setting(setting.path, _apply_since(setting.variable, nested.since), setting.value)
    elif variable := next((mark for mark in field.metadata if isinstance(mark, EnvVar)), None):
        yield Setting(path, _add_prefix(variable, prefix), value)


def list_variables(model: type[BaseModel], prefix: str = "", since: str = OLDEST) -> Iterator[EnvVar]:
    """Yield all variables that a model has settings for. `<ID>` stands for the key in a mapping."""
    for field in model.model_fields.values():
        nested = next((mark for mark in field.metadata if isinstance(mark, EnvPrefix)), None)
        if variable := next((mark for mark in field.metadata if isinstance(mark, EnvVar)), None):
            yield _apply_since(_add_prefix(variable, prefix), since)
        inner = prefix + (nested.prefix.format(key="<ID>") if nested else "")
        for part in list_models(field.annotation):
            yield from list_variables(part, inner, max(since, nested.since if nested else since, key=parse_release))


def list_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models within a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from list_models(part)


def _add_prefix(variable: EnvVar, prefix: str) -> EnvVar:
    return replace(variable, name=prefix + variable.name)


def _apply_since(variable: EnvVar, since: str) -> EnvVar:
    return replace(variable, since=max(variable.since, since, key=parse_release))
