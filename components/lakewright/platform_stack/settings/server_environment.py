"""The environment variables of the server: plain values, sources of secrets, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.variables import PREFIX, list_settings, parse_release

CA_FILE = "/etc/lakekeeper/ca/ca.pem"
DATABASE_CA_FILE = "/etc/lakekeeper/database-ca/ca.pem"
SECRET_FILES = "/etc/lakekeeper/secrets"  # noqa: S105 - a folder
SERVER_PORT = 8181
METRICS_PORT = 9000
OPENFGA_PORT = 8081
POSTGRES_PORT = 5432


@dataclass(frozen=True)
class ServerEnvironment:
    """Variables of the server and of its migration."""

    plain: Mapping[str, str]
    secrets: Mapping[str, str]
    """Sources of secrets by variable."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sources of secret files by name in `SECRET_FILES`."""


def build_server_environment(spec: PlatformSpec) -> ServerEnvironment:
    """Return the variables of a spec."""
    version = spec.server.version
    plain: dict[str, str] = {}
    secrets: dict[str, str] = {}
    files: dict[str, str] = {}
    for model in (spec.server, spec.database):
        for setting in list_settings(model):
            name, variable = setting.variable.format_name(version), setting.variable
            if variable.form == "file":
                file = variable.name.lower().replace("_", "-")
                files[file], plain[name] = str(setting.value), f"{SECRET_FILES}/{file}"
            elif variable.secret:
                secrets[name] = str(setting.value)
            else:
                plain[name] = to_text(setting.value, form=variable.form)
    plain |= _list_fixed_variables(spec)
    plain |= _list_database_variables(spec)
    openfga = spec.server.authorization.openfga
    if openfga and openfga.server:
        plain[f"{PREFIX}OPENFGA__ENDPOINT"] = f"http://{spec.name}-openfga.{spec.namespace}.svc:{OPENFGA_PORT}"
        secrets[f"{PREFIX}OPENFGA__API_KEY"] = str(openfga.key_source)
    if spec.database.trial_postgres:
        secrets[f"{PREFIX}PG_PASSWORD"] = "generated"
    # A name that is a secret, such as that of the database's user, has no plain value.
    plain = {name: value for name, value in plain.items() if name not in secrets}
    return ServerEnvironment(dict(sorted((plain | spec.server.extra_env).items())), secrets, files=files)


def list_kafka_sources(spec: PlatformSpec) -> dict[str, str]:
    """Return the sources of Kafka's secret settings."""
    return dict(spec.server.events.kafka.secrets) if spec.server.events.kafka else {}


def format_kafka_config(spec: PlatformSpec, secrets: Mapping[str, str]) -> str:
    """Return the value of KAFKA_CONFIG, a TOML table of all settings of librdkafka."""
    kafka = spec.server.events.kafka
    settings = {**(kafka.config if kafka else {}), **secrets}
    return "{" + ",".join(f"{_quote(key)}={_quote(value)}" for key, value in sorted(settings.items())) + "}"


def _list_fixed_variables(spec: PlatformSpec) -> dict[str, str]:
    metrics = "METRICS__PORT" if parse_release(spec.server.version) >= (0, 12, 0) else "METRICS_PORT"
    values = {
        "BASE_URI": spec.catalog_url,
        "USE_X_FORWARDED_HEADERS": "false",
        "LISTEN_PORT": str(SERVER_PORT),
        "BIND_IP": "0.0.0.0",  # noqa: S104 - within a pod
        metrics: str(METRICS_PORT),
    }
    if spec.server.ui and spec.management_url:
        values["UI__LAKEKEEPER_URL"] = spec.management_url
    if spec.aws and spec.server.storage.aws_system_credentials is None:
        values["ENABLE_AWS_SYSTEM_CREDENTIALS"] = "true"
    if spec.database.postgres and spec.database.postgres.ca_bundle:
        values["PG_SSL_ROOT_CERT"] = DATABASE_CA_FILE
    trusted = {"SSL_CERT_FILE": CA_FILE} if spec.server.ca_bundle else {}
    return {PREFIX + name: value for name, value in values.items()} | trusted


def _list_database_variables(spec: PlatformSpec) -> dict[str, str]:
    if postgres := spec.database.postgres:
        return {} if postgres.host_read else {f"{PREFIX}PG_HOST_R": postgres.host_write}
    host = f"{spec.name}-postgres.{spec.namespace}.svc"
    values = {
        "PG_HOST_W": host,
        "PG_HOST_R": host,
        "PG_PORT": str(POSTGRES_PORT),
        "PG_DATABASE": "lakekeeper",
        "PG_USER": "lakekeeper",
        "PG_SSL_MODE": "disable",
    }
    return {PREFIX + name: value for name, value in values.items()}


def to_text(value: Any, *, form: str = "plain") -> str:
    """Return a value as Lakekeeper reads it from a variable."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return as_string(str(value)) if form == "string" else str(value)
    if isinstance(value, list):
        parts = [str(part) for part in cast(list[Any], value)]
        return "[" + ",".join(_quote(part) for part in parts) + "]" if form == "array" else as_string(",".join(parts))
    return str(value) if form == "raw" else as_string(str(value))


def as_string(text: str) -> str:
    """Return a text so that Lakekeeper reads it as a string.

    Its configuration library (figment) reads a value such as `123`, `true` or `[a]` as a number, boolean or list, and
    refuses it where a string is expected. Such values are quoted, others written as they are.
    """
    return _quote(text) if _reads_otherwise(text) else text


def _reads_otherwise(text: str) -> bool:
    if text != text.strip() or text[:1] in {"{", "[", '"', "'"} or text in {"true", "false"}:
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _quote(text: str) -> str:
    # A basic string of TOML. JSON escapes these characters, and its escapes are valid in TOML.
    return json.dumps(text, ensure_ascii=False)
