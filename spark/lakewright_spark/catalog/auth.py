"""How a job proves to the catalog who it is: the configuration says where the proof is, jobs read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from lakewright_spark.errors import IdentityError

_MANAGERS = "lakewright_spark.pyiceberg_client.auth"


class _Auth(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def java_options(self) -> dict[str, str]:
        """Options of Iceberg's Java catalog that are no secrets."""
        return {}

    def pyiceberg_options(self) -> dict[str, Any]:
        """Options of PyIceberg's catalog. They hold no secret: where it needs one, it reads it by its reference."""
        return {}

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """What Iceberg's Java catalog needs besides, read now from where the reference says. Never store it.

        Raises IdentityError.
        """
        _ = environ
        return {}


class NoAuth(_Auth):
    """The catalog asks for no proof."""

    kind: Literal["none"] = "none"

    def java_options(self) -> dict[str, str]:
        return {"rest.auth.type": "none"}


class TokenAuth(_Auth):
    """A bearer token: `env:NAME` or `file:PATH`."""

    kind: Literal["token"]
    token: str

    def java_options(self) -> dict[str, str]:
        # Nobody could renew it, and without a refresh Iceberg does not ask the server for another one.
        return {"token-refresh-enabled": "false"}

    def pyiceberg_options(self) -> dict[str, Any]:
        return _custom("ReferencedToken", {"token": self.token})

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        return {"token": resolve(self.token, environ)}


class TokenFileAuth(_Auth):
    """A file whose token is renewed by somebody else, such as a Kubernetes service account's.

    PyIceberg reads it at every request. Iceberg's Java client cannot: Spark reads it once, at the start.
    """

    kind: Literal["token-file"]
    path: str

    def java_options(self) -> dict[str, str]:
        return {"token-refresh-enabled": "false"}

    def pyiceberg_options(self) -> dict[str, Any]:
        return _custom("ReferencedToken", {"token": f"file:{self.path}"})

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        return {"token": resolve(f"file:{self.path}", environ)}


class ClientCredentialsAuth(_Auth):
    """OAuth 2 client credentials at the identity provider; Lakekeeper has no token endpoint of its own."""

    kind: Literal["client-credentials"]
    token_url: str
    client_id: str
    client_secret: str
    """A reference: `env:NAME` or `file:PATH`."""
    scope: str | None = None

    def java_options(self) -> dict[str, str]:
        # A refresh asks again with the credential; providers rarely offer the token exchange that is the default.
        options = {"rest.auth.type": "oauth2", "oauth2-server-uri": self.token_url, "token-exchange-enabled": "false"}
        return options | ({"scope": self.scope} if self.scope else {})

    def pyiceberg_options(self) -> dict[str, Any]:
        settings = {"client_id": self.client_id, "client_secret": self.client_secret, "token_url": self.token_url}
        return _custom("ReferencedClientCredentials", settings | ({"scope": self.scope} if self.scope else {}))

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        return {"credential": f"{self.client_id}:{resolve(self.client_secret, environ)}"}


class PasswordAuth(_Auth):
    """A user and a password of a database; for catalogs of kind `jdbc` alone."""

    kind: Literal["password"]
    user: str
    password: str
    """A reference: `env:NAME` or `file:PATH`."""

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        return {"jdbc.user": self.user, "jdbc.password": resolve(self.password, environ)}


CatalogAuth: TypeAlias = NoAuth | TokenAuth | ClientCredentialsAuth | TokenFileAuth | PasswordAuth


class S3Keys(BaseModel):
    """A key pair of S3 by references, for catalogs that vend none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    access_key_id: str
    secret_access_key: str

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Under the names that Java and PyIceberg share. Raises IdentityError."""
        return {
            "s3.access-key-id": resolve(self.access_key_id, environ),
            "s3.secret-access-key": resolve(self.secret_access_key, environ),
        }


def resolve(reference: str, environ: Mapping[str, str] = os.environ) -> str:
    """The secret that `env:NAME` or `file:PATH` refers to, as it is now. Raises IdentityError."""
    scheme, _, place = reference.partition(":")
    try:
        if scheme == "env" and environ.get(place):
            return environ[place]
        if scheme == "file" and (text := Path(place).read_text(encoding="utf-8").strip()):
            return text
    except (OSError, UnicodeDecodeError):
        pass
    raise IdentityError(
        f"catalog credential {reference!r}: expected a variable env:NAME or a file file:PATH that exists and holds it"
    )


def _custom(manager: str, settings: Mapping[str, str]) -> dict[str, Any]:
    return {"auth": {"type": "custom", "impl": f"{_MANAGERS}.{manager}", "custom": dict(settings)}}
