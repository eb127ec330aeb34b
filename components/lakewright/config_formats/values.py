"""Values of catalog properties: a warehouse of the configuration, with secrets as references in an engine's syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth, TokenAuth

from lakewright.config_formats.properties import Meaning


class Expression(str):
    """Text that a writer does not quote, such as the call of a function."""

    __slots__ = ()


@dataclass(frozen=True)
class SecretSyntax:
    """How an engine's configuration refers to environment variables."""

    refer: Callable[[str], str]
    """Returns the reference to a variable."""
    refers_to_whole_values: bool = False
    """Whether a reference must be a whole value: then a variable has client id and secret, joined by a colon."""


ICEBERG_JAVA = SecretSyntax(lambda variable: f"env:{variable}", refers_to_whole_values=True)
"""Iceberg's Java client replaces such values of a REST catalog by variables of its process."""
SHELL = SecretSyntax(lambda variable: f"${{{variable}}}")
"""For engines without references: `envsubst` fills in the variables, and its output is never stored."""


def gather_values(config: CatalogConfig, warehouse: CatalogWarehouse, syntax: SecretSyntax) -> dict[Meaning, str]:
    """Return the values of a warehouse by meaning. Secrets are references."""
    server_name = f"{config.project_id}/{warehouse.name}" if config.project_id else warehouse.location or warehouse.name
    s3 = warehouse.s3
    optional = {
        Meaning.PROJECT: config.project_id,
        Meaning.REGION: s3.get("s3.region") or s3.get("client.region"),
        Meaning.ENDPOINT: s3.get("s3.endpoint"),
        Meaning.PATH_STYLE: s3.get("s3.path-style-access"),
    }
    auth = config.auth
    if isinstance(auth, ClientCredentialsAuth):
        variable = name_secret(config)
        secret = syntax.refer(variable)
        optional |= {
            Meaning.CREDENTIAL: syntax.refer(name_credential(config))
            if syntax.refers_to_whole_values
            else f"{auth.client_id}:{secret}",
            Meaning.CLIENT_ID: auth.client_id,
            Meaning.CLIENT_SECRET: secret,
            Meaning.TOKEN_URL: auth.token_url,
            Meaning.SCOPE: auth.scope,
            Meaning.AUDIENCE: auth.audience,
        }
    if isinstance(auth, TokenAuth):
        optional[Meaning.TOKEN] = syntax.refer(name_secret(config))
    return {
        Meaning.URI: config.uri,
        Meaning.WAREHOUSE: server_name,
        **{meaning: value for meaning, value in optional.items() if value},
    }


def name_secret(config: CatalogConfig) -> str:
    """Return the variable that has the client secret or the token."""
    auth = config.auth
    reference = auth.client_secret if isinstance(auth, ClientCredentialsAuth) else getattr(auth, "token", "")
    scheme, _, target = reference.partition(":")
    if scheme == "env":
        return target
    return "LAKEKEEPER_CLIENT_SECRET" if isinstance(auth, ClientCredentialsAuth) else "LAKEKEEPER_TOKEN"


def name_credential(config: CatalogConfig) -> str:
    """Return the variable that has client id and secret, joined by a colon."""
    variable = name_secret(config)
    stem = re.sub(r"_?(CLIENT_)?SECRET$", "", variable)
    return f"{stem or variable}_CREDENTIAL"


def describe_variables(config: CatalogConfig, syntax: SecretSyntax) -> tuple[str, ...]:
    """Return commands that set the variables of the configuration, for notes."""
    auth = config.auth
    if not isinstance(auth, ClientCredentialsAuth | TokenAuth):
        return ()
    reference = auth.client_secret if isinstance(auth, ClientCredentialsAuth) else auth.token
    scheme, _, target = reference.partition(":")
    variable = name_secret(config)
    secret = f"$(cat {target})" if scheme == "file" else f"${variable}"
    if isinstance(auth, ClientCredentialsAuth) and syntax.refers_to_whole_values:
        return (f'set {name_credential(config)} where the engine runs: "{auth.client_id}:{secret}"',)
    text = f' to "{secret}"' if scheme == "file" else ""
    return (f"set {variable}{text} where the engine runs",)
