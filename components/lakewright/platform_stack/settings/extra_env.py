"""Rules of `server.extra_env`: the escape hatch has no names that a setting covers, no retired names, no secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import BaseModel

from lakewright.platform_stack.settings.database import Persistence
from lakewright.platform_stack.settings.platform import PlatformSpec, ServerSettings
from lakewright.platform_stack.settings.retired import RETIRED, SET_BY_STACK, SET_WITHOUT_PREFIX
from lakewright.platform_stack.settings.variables import PREFIX, EnvPrefix, EnvVar, list_models
from lakewright.validation.problems import Problem

_LEGACY_PREFIX = "ICEBERG_REST__"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"(PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|ACCESS_KEY|CREDENTIALS?)$")


def find_extra_env_problems(spec: PlatformSpec) -> Iterator[Problem]:
    """Yield the variables of `server.extra_env` that are refused."""
    for name in sorted(spec.server.extra_env):
        if reason := find_rejection_reason(name):
            yield Problem(f"server.extra_env.{name}", reason)


def find_rejection_reason(name: str) -> str | None:
    """Return why a variable is refused; None if it is accepted."""
    upper = name.upper()
    if not _NAME.fullmatch(name):
        return "expected the name of an environment variable"
    if upper.startswith(_LEGACY_PREFIX):
        return f"is a retired name; its successor is `{PREFIX}{upper.removeprefix(_LEGACY_PREFIX)}`"
    if upper in SET_WITHOUT_PREFIX:
        return f"is set by the stack, from {SET_WITHOUT_PREFIX[upper]}"
    if upper.startswith(PREFIX) and (reason := _find_prefixed_rejection_reason(upper.removeprefix(PREFIX))):
        return reason
    if _SECRET.search(upper):
        return "looks like a secret, which would be readable in the Deployment. Use a setting that takes a reference"
    return None


def _find_prefixed_rejection_reason(name: str) -> str | None:
    if name in RETIRED:
        return f"is a retired name; its successor is {RETIRED[name]}"
    if name in SET_BY_STACK:
        return f"is set by the stack, from {SET_BY_STACK[name]}"
    if path := _find_setting_path(name):
        return f"has a setting: use `{path}`"
    return None


def _find_setting_path(name: str) -> str | None:
    """Return the path of the setting that a variable belongs to. A compound name (`KV2`) covers all below it."""
    for root, model in (("server", ServerSettings), ("database", Persistence)):
        for path, pattern in _list_patterns(model, root, ""):
            if re.fullmatch(pattern, name) or pattern.startswith(f"{name}__"):
                return path
    return None


def _list_patterns(model: type[BaseModel], path: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each setting, and a pattern of its variable's name."""
    for key, field in model.model_fields.items():
        setting_path = f"{path}.{key}"
        nested = next((mark for mark in field.metadata if isinstance(mark, EnvPrefix)), None)
        if variable := next((mark for mark in field.metadata if isinstance(mark, EnvVar)), None):
            yield setting_path, prefix + variable.name
        inner = prefix + (nested.prefix.replace("{key}", "[A-Z0-9_-]+") if nested else "")
        for part in list_models(field.annotation):
            yield from _list_patterns(part, setting_path, inner)
