"""Format `duckdb`: a secret and `ATTACH` for each warehouse."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.duckdb_names import list_reserved_names
from lakewright.config_formats.properties import Meaning, select_properties
from lakewright.config_formats.sql import join_assignments, quote_identifier, quote_literal
from lakewright.config_formats.values import Expression, SecretSyntax, describe_variables, gather_values

_SYNTAX = SecretSyntax(lambda variable: Expression(f"getenv({quote_literal(variable)})"))


def _render_sql(request: ConfigRequest) -> dict[str, str]:
    parts = ["INSTALL iceberg;\nLOAD iceberg;\nINSTALL httpfs;\nLOAD httpfs;\n"]
    for warehouse in request.config.warehouses:
        values = gather_values(request.config, warehouse, _SYNTAX)
        name = quote_identifier(warehouse.name)
        secret = select_properties("duckdb secret", request.version, values)
        attach = {
            option: Expression(value) if value == "true" else value
            for option, value in select_properties("duckdb attach", request.version, values).items()
        }
        if secret:
            parts.append(
                f"CREATE OR REPLACE SECRET {name} (\n  TYPE iceberg,\n{join_assignments(secret, assign=' ')}\n);\n"
            )
            identity = f"  SECRET {name},\n"
        else:
            identity = "  AUTHORIZATION_TYPE 'none',\n"
        parts.append(
            f"ATTACH {quote_literal(values[Meaning.WAREHOUSE])} AS {name} (\n  TYPE iceberg,\n"
            f"{identity}{join_assignments(attach, assign=' ')}\n);\n"
        )
    return {"attach.sql": "\n".join(parts)}


FORMAT = ConfigFormat(
    _render_sql,
    lambda request: describe_variables(request.config, _SYNTAX),
    EngineFacts(
        title="DuckDB",
        version="1.5",
        oldest="1.4",
        oldest_reason="older versions cannot write Iceberg tables",
        secrets="`getenv('NAME')`",
        refreshes_since=None,
        refresh="no",
        default_scope="PRINCIPAL_ROLE:ALL",
        tested="`make test-engines`: writes and reads with OAuth2 and vended credentials",
        advice=("`getenv` exists in DuckDB's command line only; a program registers a function of this name first",),
    ),
    comment="--",
    list_problems=list_reserved_names,
)
