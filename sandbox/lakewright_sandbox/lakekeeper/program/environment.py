"""Read the environment variables of a released Lakekeeper, and refuse names that the release does not have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal
from urllib.parse import quote, urlencode

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.authentication.openid_configuration import is_url
from lakewright_sandbox.lakekeeper.protocol.settings import (
    DEFAULT_SUBJECT_CLAIMS,
    NIL_PROJECT,
    KeyValueStore,
    OpenidProvider,
    Settings,
)
from lakewright_sandbox.lakekeeper.protocol.versions import RELEASED, Version

PREFIX = "LAKEKEEPER__"
_NAMES_FILE = "configuration_names.json"
_PROVIDER = re.compile(r"OPENID_PROVIDERS__([A-Z0-9_-]+?)__")
_PROVIDER_ID = re.compile(r"[a-z0-9-]+")


class EnvironmentRefusedError(SandboxError):
    """The release does not have a variable, or the stand-in cannot do what it requires."""


@cache
def read_names() -> dict[str, dict[str, str]]:
    """Return the variables of all releases without the prefix, each with its first and, if removed, last release."""
    return json.loads(resources.files(__package__ or "").joinpath(_NAMES_FILE).read_text(encoding="utf-8"))


def list_names(release: str) -> set[str]:
    """Return the variables of a release, without the prefix. `<ID>` stands for the id of an identity provider."""
    return {
        name
        for name, life in read_names().items()
        if _parse(life["since"]) <= _parse(release) and _parse(release) <= _parse(life.get("last", release))
    }


def find_problems(environ: Mapping[str, str], release: str) -> Iterator[str]:
    """Yield a message for each variable that is refused."""
    names = list_names(release)
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX)
        if _PROVIDER.sub("OPENID_PROVIDERS__<ID>__", name) not in names:
            yield f"{variable}: Lakekeeper {release} does not have this variable"
    for name in ("KUBERNETES_AUTHENTICATION_ACCEPT_LEGACY_SERVICEACCOUNT", "LOG_CLOUDEVENTS"):
        if environ.get(PREFIX + name) == "true":
            yield f"{PREFIX}{name}: the stand-in cannot do this"


class Variables:
    """The variables of one process, without the prefix."""

    def __init__(self, environ: Mapping[str, str], release: str) -> None:
        """Read variables. Raises EnvironmentRefusedError, which names all that are refused and repeats no value."""
        if problems := list(find_problems(environ, release)):
            raise EnvironmentRefusedError("\n".join(problems))
        self.release = release
        self._environ = environ

    def get(self, name: str) -> str | None:
        """Return a text. A quoted value is a string of TOML, which the server's configuration reads without quotes."""
        value = self._environ.get(PREFIX + name)
        return json.loads(value) if value and value.startswith('"') else value

    def require(self, name: str) -> str:
        """Return a text that must exist. Raises EnvironmentRefusedError."""
        value = self.get(name)
        if not value:
            raise EnvironmentRefusedError(f"{PREFIX}{name} is required")
        return value

    def get_flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean. Raises EnvironmentRefusedError for another value."""
        value = self._environ.get(PREFIX + name)
        if value not in {None, "true", "false"}:
            raise EnvironmentRefusedError(f"{PREFIX}{name}: expected true or false")
        return default if value is None else value == "true"

    def get_number(self, name: str, default: int) -> int:
        """Return a whole number. Raises EnvironmentRefusedError for another value."""
        value = self.get(name)
        if value is not None and not value.isdecimal():
            raise EnvironmentRefusedError(f"{PREFIX}{name}: expected a whole number")
        return default if value is None else int(value)

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return the parts of a list with commas."""
        return tuple(part for part in (self.get(name) or "").split(",") if part)

    def build_database_url(self, host_variable: str) -> str:
        """Return the URL of the database at the host that a variable names."""
        options = {"sslmode": self.get("PG_SSL_MODE") or "prefer", "connect_timeout": "5"}
        if authorities := self.get("PG_SSL_ROOT_CERT"):
            options["sslrootcert"] = authorities
        elif options["sslmode"].startswith("verify"):
            options["sslrootcert"] = "system"
        host = self.get(host_variable) or self.require("PG_HOST_W")
        user, password = (quote(self.require(name), safe="") for name in ("PG_USER", "PG_PASSWORD"))
        address = f"{host}:{self.get_number('PG_PORT', 5432)}/{self.require('PG_DATABASE')}"
        return f"postgresql+psycopg://{user}:{password}@{address}?{urlencode(options)}"

    def build_settings(self) -> Settings:
        """Return the settings of the server. Raises EnvironmentRefusedError for missing or conflicting variables."""
        return Settings(
            database=self.build_database_url("PG_HOST_W"),
            read_database=self.build_database_url("PG_HOST_R"),
            creates_tables=False,
            version=choose_version(self.release),
            base_uri=self.get("BASE_URI"),
            ca_file=self._environ.get("SSL_CERT_FILE"),
            openid_provider_uri=self._get_url("OPENID_PROVIDER_URI"),
            openid_audiences=self.get_list("OPENID_AUDIENCE"),
            openid_roles_claim=self.get("OPENID_ROLES_CLAIM"),
            openid_subject_claims=self._get_subject_claims("OPENID_SUBJECT_CLAIM"),
            openid_additional_issuers=self.get_list("OPENID_ADDITIONAL_ISSUERS"),
            openid_scope=self.get("OPENID_SCOPE"),
            openid_providers=tuple(self._list_providers()),
            authorizer="openfga" if self.get("AUTHZ_BACKEND") == "openfga" else "allowall",
            default_project=NIL_PROJECT if self.get_flag("ENABLE_DEFAULT_PROJECT", default=True) else "",
            aws_system_identity=self.get_flag("ENABLE_AWS_SYSTEM_CREDENTIALS", default=False),
            skip_storage_validation=self.get_flag("SKIP_STORAGE_VALIDATION", default=False),
            page_size_default=self.get_number("PAGINATION_SIZE_DEFAULT", 100),
            page_size_max=self.get_number("PAGINATION_SIZE_MAX", 1000),
            in_cluster=self.get_flag("ENABLE_KUBERNETES_AUTHENTICATION", default=False),
            kubernetes_audiences=self.get_list("KUBERNETES_AUTHENTICATION_AUDIENCE"),
            kubernetes_subject=self._choose_kubernetes_subject(),
            **self._choose_secret_store(),
        )

    def _get_url(self, name: str) -> str | None:
        """Return an absolute URL. Raises EnvironmentRefusedError for another text."""
        value = self.get(name)
        if value is not None and not is_url(value):
            raise EnvironmentRefusedError(f"{PREFIX}{name}: expected a URL")
        return value

    def _get_subject_claims(self, name: str) -> tuple[str, ...]:
        """Return the names of claims. Spaces, and an empty variable, are names of claims that no token has."""
        value = self.get(name)
        return DEFAULT_SUBJECT_CLAIMS if value is None else tuple(value.split(","))

    def _list_providers(self) -> Iterator[OpenidProvider]:
        """Yield the providers beside the primary provider, sorted by id. Raises EnvironmentRefusedError."""
        names = (variable.removeprefix(PREFIX) for variable in self._environ if variable.startswith(PREFIX))
        for key in sorted({match[1] for name in names if (match := _PROVIDER.match(name))}):
            provider_id, prefix = key.lower(), f"OPENID_PROVIDERS__{key}__"
            if not _PROVIDER_ID.fullmatch(provider_id) or provider_id in {"oidc", "kubernetes"}:
                raise EnvironmentRefusedError(
                    f"{PREFIX}{prefix}*: expected an id of letters, digits and `-`; not `oidc`, `kubernetes`"
                )
            yield OpenidProvider(
                id=provider_id,
                uri=self._get_url(f"{prefix}URI") or self.require(f"{prefix}URI"),
                audiences=self.get_list(f"{prefix}AUDIENCE"),
                subject_claims=self._get_subject_claims(f"{prefix}SUBJECT_CLAIMS"),
                roles_claim=self.get(f"{prefix}ROLES_CLAIM"),
                additional_issuers=self.get_list(f"{prefix}ADDITIONAL_ISSUERS"),
                scope=self.get(f"{prefix}SCOPE"),
                must_connect_at_start=self.get_flag(f"{prefix}REQUIRE_CONNECTED_ON_STARTUP", default=True),
            )

    def _choose_kubernetes_subject(self) -> Literal["uid", "username"]:
        match self.get("KUBERNETES_AUTHENTICATION_SUBJECT_SOURCE"):
            case None | "uid":
                return "uid"
            case "username":
                return "username"
            case _:
                raise EnvironmentRefusedError(
                    f"{PREFIX}KUBERNETES_AUTHENTICATION_SUBJECT_SOURCE: expected uid or username"
                )

    def _choose_secret_store(self) -> dict[str, Any]:
        backend = (self.get("SECRET_BACKEND") or "postgres").lower()
        if backend == "postgres":
            return {"encryption_key": self.require("PG_ENCRYPTION_KEY")}
        if backend != "kv2":
            raise EnvironmentRefusedError(f"{PREFIX}SECRET_BACKEND: expected postgres or kv2")
        url, user, password, mount = (
            self.require(f"KV2__{part}") for part in ("URL", "USER", "PASSWORD", "SECRET_MOUNT")
        )
        return {"key_value_store": KeyValueStore(url, user, password, mount)}


def choose_version(release: str) -> Version:
    """Return the emulated version of a release. Raises EnvironmentRefusedError if there is none."""
    versions: dict[str, Version] = {"0.11": "0.11", "0.12": "0.12", "0.13": "0.13", "0.14": "0.14"}
    version = versions.get(".".join(release.split(".")[:2]))
    if version is None:
        raise EnvironmentRefusedError(
            f"the stand-in has no release {release}; it has 0.11 to 0.14, such as {RELEASED}.3"
        )
    return version


def _parse(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
