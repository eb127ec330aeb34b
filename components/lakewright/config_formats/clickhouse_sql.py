"""Format `clickhouse`: a database of the engine `DataLakeCatalog` for each warehouse."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.properties import Meaning, select_properties
from lakewright.config_formats.sql import join_assignments, quote_escaped_literal, quote_identifier
from lakewright.config_formats.values import SHELL, describe_variables, gather_values


def _render_sql(request: ConfigRequest) -> dict[str, str]:
    parts = ["SET allow_experimental_database_iceberg = 1;\n"]
    for warehouse in request.config.warehouses:
        values = gather_values(request.config, warehouse, SHELL)
        values = {meaning: value.replace("\\", "\\\\") for meaning, value in values.items()}
        settings = join_assignments(select_properties("clickhouse", request.version, values))
        parts.append(
            f"CREATE DATABASE {quote_identifier(warehouse.name, '`')}\n"
            f"ENGINE = DataLakeCatalog({quote_escaped_literal(values[Meaning.URI])})\nSETTINGS\n{settings};\n"
        )
    return {"databases.sql": "\n".join(parts)}


def _describe_omissions(request: ConfigRequest) -> tuple[str, ...]:
    variables = describe_variables(request.config, SHELL)
    command = "envsubst < databases.sql | clickhouse-client"
    return (*variables, f"run it with the secret filled in: {command}") if variables else ()


FORMAT = ConfigFormat(
    _render_sql,
    _describe_omissions,
    EngineFacts(
        title="ClickHouse",
        version="26.3",
        secrets="`${NAME}`, which `envsubst` fills in",
        refreshes_since=None,
        refresh="not known, so no",
        storages=frozenset({"s3", "adls"}),
        auth_kinds=frozenset({"none", "client-credentials"}),
        default_scope="PRINCIPAL_ROLE:ALL",
        tested="`make test-engines`: reads with OAuth2 and vended credentials, in chDB 26.9",
        advice=("tables are named in backquotes, with their namespace: SELECT * FROM database.`namespace.table`",),
    ),
    comment="--",
)
