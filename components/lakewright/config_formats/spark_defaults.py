"""Format `spark`: a spark-defaults.conf."""

from __future__ import annotations

from lakewright_spark.catalog.auth import JAVA_MANAGER

from lakewright.config_formats import iceberg_java
from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.values import ICEBERG_JAVA, describe_variables
from lakewright.kubernetes.runtimes import add_truststore, spark_defaults


def _render_defaults(request: ConfigRequest) -> dict[str, str]:
    config = request.config
    if request.refreshing:
        return {"spark-defaults.conf": spark_defaults(config)}
    properties = add_truststore(config.spark_properties(), config)
    for warehouse in config.warehouses if config.kind != "jdbc" else ():
        prefix = f"spark.sql.catalog.{warehouse.name}"
        references = iceberg_java.list_secret_references(config, warehouse)
        properties |= {f"{prefix}.{name}": value for name, value in references.items()}
    return {"spark-defaults.conf": "".join(f"{name} {value}\n" for name, value in properties.items())}


def _describe_variables(request: ConfigRequest) -> tuple[str, ...]:
    return () if request.refreshing else describe_variables(request.config, ICEBERG_JAVA)


FORMAT = ConfigFormat(
    _render_defaults,
    _describe_variables,
    EngineFacts(
        title="Spark",
        version="4.1",
        oldest="3.5",
        oldest_reason="Iceberg 1.12 has no runtime for older versions",
        secrets="`env:NAME` for `ID:SECRET`, resolved by Iceberg's client",
        refreshes_since="",
        refresh="yes, by Iceberg's client",
        delegations=frozenset({"vended", "remote-signing"}),
        storages=frozenset({"s3", "adls", "gcs"}),
        has_audience=True,
        refreshing=f"`{JAVA_MANAGER}` of the jar of lakewright-spark (`lakewright-spark jars` prints its path)",
        tested="properties compared with the documentation",
        advice=(
            "spark.jars.packages: iceberg-spark-runtime of your Spark and Scala, and iceberg-aws-bundle for S3,"
            " iceberg-azure-bundle for ADLS or iceberg-gcp-bundle for Google Cloud Storage",
        ),
    ),
)
