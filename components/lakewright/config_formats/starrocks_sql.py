"""Format `starrocks`: `CREATE EXTERNAL CATALOG` for each warehouse."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.properties import select_properties
from lakewright.config_formats.sql import join_assignments, quote_identifier
from lakewright.config_formats.values import ICEBERG_JAVA, describe_variables, gather_values


def _render_sql(request: ConfigRequest) -> dict[str, str]:
    statements: list[str] = []
    for warehouse in request.config.warehouses:
        values = gather_values(request.config, warehouse, ICEBERG_JAVA)
        properties = select_properties("starrocks", request.version, values)
        assignments = join_assignments(properties, quote_names='"')
        name = quote_identifier(warehouse.name, "`")
        statements.append(f"CREATE EXTERNAL CATALOG {name} PROPERTIES (\n{assignments}\n);\n")
    return {"catalogs.sql": "\n".join(statements)}


FORMAT = ConfigFormat(
    _render_sql,
    lambda request: describe_variables(request.config, ICEBERG_JAVA),
    EngineFacts(
        title="StarRocks",
        version="4.0",
        oldest="3.4.1",
        oldest_reason="older versions use no vended credentials of S3 stores with their own endpoint",
        secrets="`env:NAME` for `ID:SECRET`, resolved by Iceberg's client in the frontend",
        refreshes_since=None,
        refresh="not known, so no",
        default_scope="catalog",
        tested="properties compared with the documentation",
        advice=(
            "with Keycloak, the client needs Standard Token Exchange; otherwise StarRocks cannot renew its token",
            "the variable is needed in every frontend (FE)",
        ),
    ),
    comment="--",
)
