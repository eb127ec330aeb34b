"""Format `snowflake`: `CREATE CATALOG INTEGRATION` for each warehouse."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.properties import Meaning, select_properties
from lakewright.config_formats.sql import quote_escaped_literal, quote_identifier
from lakewright.config_formats.values import SHELL, Expression, describe_variables, gather_values

_KEYWORDS = frozenset({"ACCESS_DELEGATION_MODE", "TYPE"})
"""Properties whose values are keywords, without quotes."""


def _render_sql(request: ConfigRequest) -> dict[str, str]:
    statements: list[str] = []
    for warehouse in request.config.warehouses:
        values = gather_values(request.config, warehouse, SHELL)
        config = select_properties("snowflake config", request.version, values)
        authentication = select_properties("snowflake authentication", request.version, values)
        if Meaning.SCOPE in values:
            scopes = ", ".join(quote_escaped_literal(scope) for scope in values[Meaning.SCOPE].split())
            authentication["OAUTH_ALLOWED_SCOPES"] = Expression(f"({scopes})")
        statements.append(
            f"CREATE CATALOG INTEGRATION {quote_identifier(warehouse.name)}\n"
            "  CATALOG_SOURCE = ICEBERG_REST\n  TABLE_FORMAT = ICEBERG\n"
            f"  REST_CONFIG = (\n{_join_lines(config)}\n  )\n"
            f"  REST_AUTHENTICATION = (\n{_join_lines(authentication)}\n  )\n"
            "  ENABLED = TRUE;\n"
        )
    return {"integrations.sql": "\n".join(statements)}


def _join_lines(properties: dict[str, str]) -> str:
    return "\n".join(
        f"    {name} = {value if name in _KEYWORDS or isinstance(value, Expression) else quote_escaped_literal(value)}"
        for name, value in properties.items()
    )


def _describe_omissions(request: ConfigRequest) -> tuple[str, ...]:
    variables = describe_variables(request.config, SHELL)
    return (*variables, "run it with the secret filled in: envsubst < integrations.sql | snow sql --stdin")


FORMAT = ConfigFormat(
    _render_sql,
    _describe_omissions,
    EngineFacts(
        title="Snowflake",
        version="2026",
        secrets="`${NAME}`, which `envsubst` fills in",
        refreshes_since="",
        refresh="by its documentation, it reads the expiry of the credentials",
        storages=frozenset({"s3", "adls", "gcs"}),
        auth_kinds=frozenset({"client-credentials", "token"}),
        tested="properties compared with the documentation",
        advice=(
            "Snowflake must reach the catalog and the identity provider by https from its network",
            "make tables visible with CREATE DATABASE name LINKED_CATALOG = (CATALOG = 'integration')",
        ),
    ),
    comment="--",
)
