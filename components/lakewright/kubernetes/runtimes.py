"""Runtimes of computing units: port, user, command, and configuration of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from lakewright_spark.catalog import CatalogConfig, trust_variables
from lakewright_spark.session.truststore import java_options

from lakewright.names.table_name import PRESETS
from lakewright.spec.computing_unit import Runtime

CONFIG_DIR = "/etc/lakewright"
"""Folder of the catalog configuration in a computing unit."""

SCRATCH_DIR = "/scratch"
"""Folder that a unit may write to, besides /tmp."""


@dataclass(frozen=True)
class RuntimeSettings:
    """Settings of a runtime."""

    port: int
    port_name: str
    user: int
    """User ID; `runAsNonRoot` cannot check a name."""


RUNTIMES: Mapping[Runtime, RuntimeSettings] = {
    "spark": RuntimeSettings(port=15002, port_name="connect", user=185),
    # Port and user as Texera's own computing-unit manager sets them.
    "texera": RuntimeSettings(port=8085, port_name="texera", user=1001),
}


def catalog_files(catalog: CatalogConfig) -> dict[str, str]:
    """Return the files under CONFIG_DIR: the catalog configuration, also in the forms of Spark and PyIceberg."""
    return {
        "catalog.json": catalog.to_json(),
        "spark.properties": spark_defaults(catalog),
        ".pyiceberg.yaml": catalog.pyiceberg_yaml(),
    }


def spark_defaults(catalog: CatalogConfig) -> str:
    """Return the text of a spark-defaults.conf for an image with the jar of `lakewright-spark`, without secrets.

    Spark reads the credential from its file or variable. Java reads no PEM, so custom authorities need a truststore.
    """
    properties = add_truststore(catalog.spark_properties_with_references(), catalog)
    return "".join(f"{key} {value}\n" for key, value in properties.items())


def add_truststore(properties: Mapping[str, str], catalog: CatalogConfig) -> dict[str, str]:
    """Return Spark properties with the truststore of the catalog, if it has one."""
    if not catalog.truststore:
        return dict(properties)
    trust = java_options(PurePosixPath(catalog.truststore))
    return {**properties, "spark.driver.extraJavaOptions": trust, "spark.executor.extraJavaOptions": trust}


def environment(runtime: Runtime, catalog: CatalogConfig) -> dict[str, str]:
    """Return the environment variables of a unit's container. They hold no S3 key and no database setting."""
    common = {
        "LAKEWRIGHT_CATALOG_FILE": f"{CONFIG_DIR}/catalog.json",
        "PYICEBERG_HOME": CONFIG_DIR,
        "HOME": SCRATCH_DIR,
        "TMPDIR": SCRATCH_DIR,
        **trust_variables(catalog),
    }
    if runtime == "spark":
        return {**common, "SPARK_LOCAL_DIRS": SCRATCH_DIR}
    trust = f" {java_options(PurePosixPath(catalog.truststore))}" if catalog.truststore else ""
    return {**common, **texera_environment(catalog), "JAVA_OPTS": f"-XX:MaxRAMPercentage=75.0{trust}"}


def texera_environment(catalog: CatalogConfig) -> dict[str, str]:
    """Return Texera's storage settings, named as in its storage.conf.

    Executions that choose no warehouse use the first warehouse.
    """
    results, console, statistics, state = PRESETS["texera"]
    return {
        "STORAGE_ICEBERG_CATALOG_TYPE": "rest",
        "STORAGE_ICEBERG_CATALOG_REST_URI": catalog.uri,
        # Texera sends no project header; Lakekeeper takes the text before the slash as the project.
        "STORAGE_ICEBERG_CATALOG_REST_WAREHOUSE_NAME": f"{catalog.project_id}/{catalog.warehouses[0].name}",
        "STORAGE_ICEBERG_TABLE_RESULT_NAMESPACE": results,
        "STORAGE_ICEBERG_TABLE_CONSOLE_MESSAGES_NAMESPACE": console,
        "STORAGE_ICEBERG_TABLE_RUNTIME_STATISTICS_NAMESPACE": statistics,
        "STORAGE_ICEBERG_TABLE_STATE_NAMESPACE": state,
    }
