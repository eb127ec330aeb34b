"""Names of catalog properties by engine and version: a table whose rows the formats select.

Sources: the public documentation and sources of each engine, November 2026. Tests with the engine itself, where its
packages can be installed, are in `tests/engines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewright.config_formats.versions import is_at_least, parse_version


class Meaning(StrEnum):
    """Meaning of the value of a property."""

    URI = "address of the catalog"
    WAREHOUSE = "warehouse at the server"
    CREDENTIAL = "client id, colon, client secret"
    CLIENT_ID = "client id"
    CLIENT_SECRET = "client secret"  # noqa: S105 - a description
    TOKEN_URL = "token endpoint of the identity provider"  # noqa: S105 - a description
    SCOPE = "requested scope"
    AUDIENCE = "requested audience"
    TOKEN = "bearer token"  # noqa: S105 - a description
    PROJECT = "project id"
    REGION = "region of the bucket"
    ENDPOINT = "endpoint of the store"
    PATH_STYLE = "whether bucket names are in the path"


@dataclass(frozen=True)
class EngineProperty:
    """A property of an engine."""

    name: str
    value: Meaning | str
    """Meaning of the value, or the value itself."""
    needs: Meaning | None = None
    """Without a value of this meaning, the property is left out."""
    since: str = ""
    """First version of the engine that has the property."""
    before: str = ""
    """First version of the engine that no longer has the property."""


PROPERTIES: Mapping[str, tuple[EngineProperty, ...]] = {
    "trino": (
        EngineProperty("connector.name", "iceberg"),
        EngineProperty("iceberg.catalog.type", "rest"),
        EngineProperty("iceberg.rest-catalog.uri", Meaning.URI),
        EngineProperty("iceberg.rest-catalog.warehouse", Meaning.WAREHOUSE),
        EngineProperty("iceberg.rest-catalog.nested-namespace-enabled", "true"),
        EngineProperty("iceberg.rest-catalog.vended-credentials-enabled", "true"),
        # A dropped table keeps its location until the server purges its files.
        EngineProperty("iceberg.unique-table-location", "true"),
        EngineProperty("iceberg.rest-catalog.security", "OAUTH2", needs=Meaning.CREDENTIAL),
        EngineProperty("iceberg.rest-catalog.oauth2.credential", Meaning.CREDENTIAL),
        EngineProperty("iceberg.rest-catalog.oauth2.server-uri", Meaning.TOKEN_URL),
        EngineProperty("iceberg.rest-catalog.oauth2.scope", Meaning.SCOPE),
        EngineProperty("iceberg.rest-catalog.oauth2.token-exchange-enabled", "false", needs=Meaning.CREDENTIAL),
        EngineProperty("iceberg.rest-catalog.security", "OAUTH2", needs=Meaning.TOKEN),
        EngineProperty("iceberg.rest-catalog.oauth2.token", Meaning.TOKEN),
        EngineProperty("iceberg.rest-catalog.oauth2.token-refresh-enabled", "false", needs=Meaning.TOKEN),
        EngineProperty("fs.s3.enabled", "true", since="481"),
        EngineProperty("fs.native-s3.enabled", "true", before="481"),
        EngineProperty("s3.region", Meaning.REGION),
        EngineProperty("s3.endpoint", Meaning.ENDPOINT),
        EngineProperty("s3.path-style-access", Meaning.PATH_STYLE),
    ),
    # The other options of Iceberg's Java client and of PyIceberg are in `lakewright_spark.catalog`.
    "iceberg": (
        EngineProperty("credential", Meaning.CREDENTIAL),
        EngineProperty("token", Meaning.TOKEN),
    ),
    "duckdb secret": (
        EngineProperty("CLIENT_ID", Meaning.CLIENT_ID),
        EngineProperty("CLIENT_SECRET", Meaning.CLIENT_SECRET),
        EngineProperty("OAUTH2_SERVER_URI", Meaning.TOKEN_URL),
        EngineProperty("OAUTH2_SCOPE", Meaning.SCOPE),
        EngineProperty("TOKEN", Meaning.TOKEN),
    ),
    "duckdb attach": (
        EngineProperty("ENDPOINT", Meaning.URI, before="2.0"),
        EngineProperty("URI", Meaning.URI, since="2.0"),
        EngineProperty("ACCESS_DELEGATION_MODE", "vended_credentials"),
        EngineProperty("SUPPORT_NESTED_NAMESPACES", "true"),
        EngineProperty("DEFAULT_REGION", Meaning.REGION, since="1.5"),
    ),
    "dbt catalog": (
        EngineProperty("endpoint", Meaning.URI),
        EngineProperty("warehouse", Meaning.WAREHOUSE),
        EngineProperty("authorization_type", "OAUTH2", needs=Meaning.CREDENTIAL),
        EngineProperty("access_delegation_mode", "VENDED_CREDENTIALS"),
        EngineProperty("support_nested_namespaces", "true"),
    ),
    "starrocks": (
        EngineProperty("type", "iceberg"),
        EngineProperty("iceberg.catalog.type", "rest"),
        EngineProperty("iceberg.catalog.uri", Meaning.URI),
        EngineProperty("iceberg.catalog.warehouse", Meaning.WAREHOUSE),
        EngineProperty("iceberg.catalog.vended-credentials-enabled", "true"),
        EngineProperty("iceberg.catalog.rest.nested-namespace-enabled", "true"),
        EngineProperty("iceberg.catalog.security", "oauth2", needs=Meaning.CREDENTIAL),
        EngineProperty("iceberg.catalog.oauth2.credential", Meaning.CREDENTIAL),
        EngineProperty("iceberg.catalog.oauth2.server-uri", Meaning.TOKEN_URL),
        EngineProperty("iceberg.catalog.oauth2.scope", Meaning.SCOPE),
        EngineProperty("iceberg.catalog.security", "oauth2", needs=Meaning.TOKEN),
        EngineProperty("iceberg.catalog.oauth2.token", Meaning.TOKEN),
        EngineProperty("aws.s3.region", Meaning.REGION),
        EngineProperty("aws.s3.endpoint", Meaning.ENDPOINT),
        EngineProperty("aws.s3.enable_path_style_access", Meaning.PATH_STYLE),
    ),
    "doris": (
        EngineProperty("type", "iceberg"),
        EngineProperty("iceberg.catalog.type", "rest"),
        EngineProperty("iceberg.rest.uri", Meaning.URI),
        EngineProperty("warehouse", Meaning.WAREHOUSE),
        EngineProperty("iceberg.rest.vended-credentials-enabled", "true"),
        EngineProperty("iceberg.rest.nested-namespace-enabled", "true", since="3.1.2"),
        EngineProperty("iceberg.rest.security.type", "oauth2", needs=Meaning.CREDENTIAL),
        EngineProperty("iceberg.rest.oauth2.credential", Meaning.CREDENTIAL),
        EngineProperty("iceberg.rest.oauth2.server-uri", Meaning.TOKEN_URL),
        EngineProperty("iceberg.rest.oauth2.scope", Meaning.SCOPE),
        EngineProperty("iceberg.rest.security.type", "oauth2", needs=Meaning.TOKEN),
        EngineProperty("iceberg.rest.oauth2.token", Meaning.TOKEN),
        EngineProperty("s3.region", Meaning.REGION),
        EngineProperty("s3.endpoint", Meaning.ENDPOINT),
        EngineProperty("use_path_style", Meaning.PATH_STYLE),
    ),
    "clickhouse": (
        EngineProperty("catalog_type", "rest"),
        EngineProperty("warehouse", Meaning.WAREHOUSE),
        EngineProperty("catalog_credential", Meaning.CREDENTIAL),
        EngineProperty("oauth_server_uri", Meaning.TOKEN_URL),
        # The default is PRINCIPAL_ROLE:ALL, which belongs to another catalog.
        EngineProperty("auth_scope", Meaning.SCOPE),
        EngineProperty("vended_credentials", "true"),
        EngineProperty("region", Meaning.REGION),
        EngineProperty("storage_endpoint", Meaning.ENDPOINT),
    ),
    "snowflake config": (
        EngineProperty("CATALOG_URI", Meaning.URI),
        EngineProperty("CATALOG_NAME", Meaning.WAREHOUSE),
        EngineProperty("ACCESS_DELEGATION_MODE", "VENDED_CREDENTIALS"),
    ),
    "snowflake authentication": (
        EngineProperty("TYPE", "OAUTH", needs=Meaning.CREDENTIAL),
        EngineProperty("OAUTH_TOKEN_URI", Meaning.TOKEN_URL),
        EngineProperty("OAUTH_CLIENT_ID", Meaning.CLIENT_ID),
        EngineProperty("OAUTH_CLIENT_SECRET", Meaning.CLIENT_SECRET),
        EngineProperty("OAUTH_ALLOWED_SCOPES", Meaning.SCOPE),
        EngineProperty("TYPE", "BEARER", needs=Meaning.TOKEN),
        EngineProperty("BEARER_TOKEN", Meaning.TOKEN),
    ),
    "dremio": (
        EngineProperty("warehouse", Meaning.WAREHOUSE),
        EngineProperty("header.x-project-id", Meaning.PROJECT),
        EngineProperty("rest.auth.type", "oauth2", needs=Meaning.CREDENTIAL),
        EngineProperty("oauth2-server-uri", Meaning.TOKEN_URL),
        EngineProperty("scope", Meaning.SCOPE),
        EngineProperty("token-exchange-enabled", "false", needs=Meaning.CREDENTIAL),
        EngineProperty("fs.s3a.endpoint.region", Meaning.REGION),
        EngineProperty("fs.s3a.endpoint", Meaning.ENDPOINT),
        EngineProperty("fs.s3a.path.style.access", Meaning.PATH_STYLE),
    ),
    "dremio secret": (
        EngineProperty("credential", Meaning.CREDENTIAL),
        EngineProperty("token", Meaning.TOKEN),
    ),
    "pyiceberg": (
        EngineProperty("credential", Meaning.CREDENTIAL),
        EngineProperty("oauth2-server-uri", Meaning.TOKEN_URL),
        EngineProperty("scope", Meaning.SCOPE),
        EngineProperty("audience", Meaning.AUDIENCE),
        EngineProperty("token", Meaning.TOKEN),
    ),
}
"""Properties by engine, and by part of the configuration where an engine has several. Order as written."""


def select_properties(table: str, version: str, values: Mapping[Meaning, str]) -> dict[str, str]:
    """Return the properties of a table in an engine's version, with their values.

    Args:
        table: Key of `PROPERTIES`.
        version: Version of the engine.
        values: Values by meaning. Properties without a value are left out.
    """
    return {
        entry.name: values[entry.value] if isinstance(entry.value, Meaning) else entry.value
        for entry in PROPERTIES[table]
        if is_at_least(version, entry.since)
        and not (entry.before and parse_version(version) >= parse_version(entry.before))
        and (entry.needs is None or entry.needs in values)
        and (not isinstance(entry.value, Meaning) or entry.value in values)
    }
