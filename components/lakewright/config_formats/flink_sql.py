"""Format `flink`: `CREATE CATALOG` for each warehouse."""

from __future__ import annotations

from lakewright.config_formats import iceberg_java
from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.sql import join_assignments, quote_identifier
from lakewright.config_formats.values import ICEBERG_JAVA, describe_variables


def _render_sql(request: ConfigRequest) -> dict[str, str]:
    statements: list[str] = []
    for warehouse in request.config.warehouses:
        options = iceberg_java.list_options(request.config, warehouse)
        del options["type"]
        properties = {"type": "iceberg", "catalog-type": "rest", **options}
        assignments = join_assignments(properties, assign="=", quote_names="'")
        statements.append(f"CREATE CATALOG {quote_identifier(warehouse.name, '`')} WITH (\n{assignments}\n);\n")
    return {"catalogs.sql": "\n".join(statements)}


FORMAT = ConfigFormat(
    _render_sql,
    lambda request: describe_variables(request.config, ICEBERG_JAVA),
    EngineFacts(
        title="Flink",
        version="2.1",
        oldest="1.20",
        oldest_reason="Iceberg has runtimes for Flink 1.20, 2.0 and 2.1",
        secrets="`env:NAME` for `ID:SECRET`, resolved by Iceberg's client",
        refreshes_since="",
        refresh="yes, by Iceberg's client",
        delegations=frozenset({"vended", "remote-signing"}),
        storages=frozenset({"s3", "adls", "gcs"}),
        has_audience=True,
        tested="`make test-engines`: writes and reads with OAuth2 and vended credentials, in PyFlink with Iceberg 1.11",
        advice=(
            "jars in `lib/`: iceberg-flink-runtime, and iceberg-aws-bundle for S3 (azure, gcp for other storages), both"
            " of one version of Iceberg; and the jars of Hadoop's client, or HADOOP_CLASSPATH names them",
            "the variable is needed in JobManager, TaskManagers and the SQL client",
        ),
    ),
    comment="--",
)
