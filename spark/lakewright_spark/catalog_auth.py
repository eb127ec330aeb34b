"""How a job proves to the catalog who it is: the configuration says where the proof is, jobs read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict


class _Auth(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def java_options(self) -> dict[str, str]:
        """Options of Iceberg's Java catalog that are no secrets."""
        return {}

    def pyiceberg_options(self) -> dict[str, str]:
        """Options of PyIceberg's catalog that are no secrets."""
        return {}

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """What is to be added in the job's own process, read now from where the reference says. Never store it."""
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

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        return {"token": _resolve(self.token, environ)}


class ClientCredentialsAuth(_Auth):
    """OAuth 2 client credentials at the identity provider; Lakekeeper has no token endpoint of its own."""

    kind: Literal["client-credentials"]
    token_url: str
    client_id: str
    client_secret: str
    """A reference: `env:NAME` or `file:PATH`."""
    scope: str | None = None

    def java_options(self) -> dict[str, str]:
        return {"rest.auth.type": "oauth2", **self.pyiceberg_options()}

    def pyiceberg_options(self) -> dict[str, str]:
        return {"oauth2-server-uri": self.token_url, **({"scope": self.scope} if self.scope else {})}

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        return {"credential": f"{self.client_id}:{_resolve(self.client_secret, environ)}"}


class TokenFileAuth(_Auth):
    """A file whose token is renewed by somebody else, such as a Kubernetes service account's."""

    kind: Literal["token-file"]
    path: str

    def secret_options(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        return {"token": _resolve(f"file:{self.path}", environ)}


CatalogAuth: TypeAlias = NoAuth | TokenAuth | ClientCredentialsAuth | TokenFileAuth


def _resolve(reference: str, environ: Mapping[str, str]) -> str:
    scheme, _, place = reference.partition(":")
    if scheme == "env" and place in environ:
        return environ[place]
    if scheme == "file" and Path(place).is_file():
        return Path(place).read_text(encoding="utf-8").strip()
    raise LookupError(f"catalog credential {reference!r}: expected a variable env:NAME or a file file:PATH that exists")
