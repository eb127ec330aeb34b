"""Authentication of jobs to the catalog. The configuration holds references to credentials, which jobs resolve."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from lakewright_spark.errors import IdentityError

_MANAGERS = "lakewright_spark.pyiceberg_client.auth"
JAVA_MANAGER = "lakewright.spark.ReferencedAuthManager"
"""Class in this package's jar (spark/lakewright_spark/java)."""


class _Auth(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def java_options(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog, without secrets."""
        return {}

    def java_references(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog by which it reads the credential itself, at every use.

        They need this package's jar, and replace `java_options` and `secret_options`.
        """
        return self.java_options()

    def pyiceberg_options(self) -> dict[str, Any]:
        """Return the options of PyIceberg's catalog. They hold references to secrets, not the secrets."""
        return {}

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the secret options of Iceberg's Java catalog, read now. Never store them.

        Raises:
            IdentityError: A reference cannot be resolved.
        """
        _ = environ
        return {}


class NoAuth(_Auth):
    """No authentication."""

    kind: Literal["none"] = "none"

    def java_options(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog, without secrets."""
        return {"rest.auth.type": "none"}


class TokenAuth(_Auth):
    """A bearer token: `env:NAME` or `file:PATH`."""

    kind: Literal["token"]
    token: str

    def java_options(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog, without secrets."""
        # Iceberg would request a new token from the server, which fails for a fixed token.
        return {"token-refresh-enabled": "false"}

    def java_references(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog by which it reads the token at every request."""
        return _java_manager({"token": self.token})

    def pyiceberg_options(self) -> dict[str, Any]:
        """Return the options of PyIceberg's catalog, without secrets."""
        return _custom("ReferencedToken", {"token": self.token})

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the secret options of Iceberg's Java catalog, read now."""
        return {"token": resolve(self.token, environ)}


class TokenFileAuth(_Auth):
    """A token file that another process renews, such as a Kubernetes service-account token.

    PyIceberg and Spark Connect in a computing unit read it at every request. Other Spark jobs read it at their start.
    """

    kind: Literal["token-file"]
    path: str

    def java_options(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog, without secrets."""
        return {"token-refresh-enabled": "false"}

    def java_references(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog by which it reads the file at every request."""
        return _java_manager({"token": f"file:{self.path}"})

    def pyiceberg_options(self) -> dict[str, Any]:
        """Return the options of PyIceberg's catalog, without secrets."""
        return _custom("ReferencedToken", {"token": f"file:{self.path}"})

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the secret options of Iceberg's Java catalog, read now."""
        return {"token": resolve(f"file:{self.path}", environ)}


class ClientCredentialsAuth(_Auth):
    """OAuth 2 client credentials at the identity provider; Lakekeeper has no token endpoint of its own."""

    kind: Literal["client-credentials"]
    token_url: str
    client_id: str
    client_secret: str
    """A reference: `env:NAME` or `file:PATH`."""
    scope: str | None = None
    audience: str | None = None
    """Requested audience of the token, for identity providers that require one. Lakekeeper checks it."""

    def java_options(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog, without secrets."""
        # A refresh sends the credential again. Few providers support the token exchange that is Iceberg's default.
        options = {"rest.auth.type": "oauth2", "oauth2-server-uri": self.token_url, "token-exchange-enabled": "false"}
        # Without a scope, Iceberg requests `catalog`, which identity providers refuse if they do not know it. An empty
        # parameter counts as left out (RFC 6749, section 3.2).
        return options | {"scope": ""} | self._restrictions

    def java_references(self) -> dict[str, str]:
        """Return the options of Iceberg's Java catalog by which it reads the client secret for each token."""
        settings = {"token-url": self.token_url, "client-id": self.client_id, "client-secret": self.client_secret}
        return _java_manager(settings | self._restrictions)

    def pyiceberg_options(self) -> dict[str, Any]:
        """Return the options of PyIceberg's catalog, without secrets."""
        settings = {"client_id": self.client_id, "client_secret": self.client_secret, "token_url": self.token_url}
        return _custom("ReferencedClientCredentials", settings | self._restrictions)

    @model_serializer(mode="wrap")
    def _omit_missing_audience(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Readers of the first release reject fields that they do not know.
        values: dict[str, Any] = serialize(self)
        return values if self.audience else {key: value for key, value in values.items() if key != "audience"}

    @property
    def _restrictions(self) -> dict[str, str]:
        parameters = {"scope": self.scope, "audience": self.audience}
        return {name: value for name, value in parameters.items() if value}

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the secret options of Iceberg's Java catalog, read now."""
        return {"credential": f"{self.client_id}:{resolve(self.client_secret, environ)}"}


class PasswordAuth(_Auth):
    """User and password of a database, for catalogs of kind `jdbc` only."""

    kind: Literal["password"]
    user: str
    password: str
    """A reference: `env:NAME` or `file:PATH`."""

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the secret options of Iceberg's Java catalog, read now."""
        return {"jdbc.user": self.user, "jdbc.password": resolve(self.password, environ)}


CatalogAuth: TypeAlias = NoAuth | TokenAuth | ClientCredentialsAuth | TokenFileAuth | PasswordAuth


class S3Keys(BaseModel):
    """References to an S3 key pair, for catalogs that do not vend credentials."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    access_key_id: str
    secret_access_key: str

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the keys under the names that Iceberg's Java client and PyIceberg share.

        Raises:
            IdentityError: A reference cannot be resolved.
        """
        return {
            "s3.access-key-id": resolve(self.access_key_id, environ),
            "s3.secret-access-key": resolve(self.secret_access_key, environ),
        }


def resolve(reference: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the current secret of a reference `env:NAME` or `file:PATH`.

    Raises:
        IdentityError: The reference cannot be resolved, or the secret is empty.
    """
    scheme, _, target = reference.partition(":")
    try:
        if scheme == "env" and environ.get(target):
            return environ[target]
        if scheme == "file" and (text := Path(target).read_text(encoding="utf-8").strip()):
            return text
    except (OSError, UnicodeDecodeError):
        pass
    raise IdentityError(
        f"catalog credential {reference!r}: expected env:NAME or file:PATH of a variable or file that is not empty"
    )


def _java_manager(settings: Mapping[str, str]) -> dict[str, str]:
    return {"rest.auth.type": JAVA_MANAGER, **{f"lakewright.auth.{name}": value for name, value in settings.items()}}


def _custom(manager: str, settings: Mapping[str, str]) -> dict[str, Any]:
    return {"auth": {"type": "custom", "impl": f"{_MANAGERS}.{manager}", "custom": dict(settings)}}
