"""Rules of `server.extra_env`: the escape hatch has no names that a setting covers, no retired names, no secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from lakewright.platform_stack.settings.database import Persistence
from lakewright.platform_stack.settings.platform import PlatformSpec, ServerSettings
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


RETIRED: Mapping[str, str] = {
    "QUEUE_CONFIG__MAX_RETRIES": "nothing: the number of attempts of a task is a constant of the server",
    "QUEUE_CONFIG__MAX_AGE": "`max_seconds_since_last_heartbeat` of `task_queues` in the spec of a tenant",
    "QUEUE_CONFIG__POLL_INTERVAL": "`server.tasks.poll_interval`",
    "SERVER_ID": "nothing: the server generates its id at bootstrap",
    "METRICS_PORT": "nothing: the stack sets the port of metrics, 9000",
    "TASK_TABULAR_EXPIRATION_WORKERS": "`server.tasks.soft_deletion_workers`",
}
"""Successors of names that current releases do not read, or read for compatibility only."""

SET_BY_STACK: Mapping[str, str] = {
    "BASE_URI": "`gateway.url`",
    "USE_X_FORWARDED_HEADERS": "`false`, because BASE_URI is set",
    "LISTEN_PORT": "8181",
    "BIND_IP": "0.0.0.0",  # noqa: S104 - within a pod
    "METRICS__PORT": "9000",
    "PG_SSL_ROOT_CERT": "`database.postgres.ca_bundle`",
    "PG_DATABASE_URL_READ": "`database.postgres`, by its parts",
    "PG_DATABASE_URL_WRITE": "`database.postgres`, by its parts",
    "KAFKA_CONFIG": "`server.events.kafka`",
    "KAFKA_CONFIG_FILE": "`server.events.kafka`",
    "UI__LAKEKEEPER_URL": "`management.url`",
    "DEBUG__MIGRATE_BEFORE_SERVE": "the migration Job, which runs before the server",
    "DEBUG__AUTO_SERVE": "the command of the pod",
}
"""Source of each variable that the stack sets, by name."""

SET_WITHOUT_PREFIX: Mapping[str, str] = {
    "RUST_LOG": "`server.logs.level`",
    "SSL_CERT_FILE": "`server.ca_bundle`",
    "SSL_CERT_DIR": "`server.ca_bundle`",
    "AWS_ROLE_ARN": "`aws.role_arn`",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "`aws.role_arn`",
}
"""Source of each variable that the stack sets, by name without Lakekeeper's prefix."""
