"""Format `doris`: `CREATE CATALOG` for each warehouse."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.properties import select_properties
from lakewright.config_formats.sql import join_assignments, quote_identifier
from lakewright.config_formats.values import ICEBERG_JAVA, describe_variables, gather_values


def _render_sql(request: ConfigRequest) -> dict[str, str]:
    statements: list[str] = []
    for warehouse in request.config.warehouses:
        values = gather_values(request.config, warehouse, ICEBERG_JAVA)
        assignments = join_assignments(select_properties("doris", request.version, values), quote_names='"')
        statements.append(f"CREATE CATALOG {quote_identifier(warehouse.name, '`')} PROPERTIES (\n{assignments}\n);\n")
    return {"catalogs.sql": "\n".join(statements)}


FORMAT = ConfigFormat(
    _render_sql,
    lambda request: describe_variables(request.config, ICEBERG_JAVA),
    EngineFacts(
        title="Doris",
        version="3.1.2",
        oldest="3.1",
        oldest_reason="older versions have neither OAuth2 nor vended credentials for REST catalogs",
        secrets="`env:NAME` for `ID:SECRET`, resolved by Iceberg's client in the frontend",
        refreshes_since=None,
        refresh="not known, so no",
        default_scope="catalog",
        tested="properties compared with the documentation",
        advice=(
            "nested namespaces appear as databases `parent.child` from Doris 3.1.2",
            "the variable is needed in every frontend (FE)",
        ),
    ),
    comment="--",
)
