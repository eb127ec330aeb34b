"""The catalog configuration: the contract between a stack and its jobs. Needs pydantic and PyYAML only."""

from lakewright_spark.catalog.config import CatalogConfig, trust_variables
from lakewright_spark.catalog.kinds import DELEGATION_HEADER, DELEGATION_VALUES, Kind
from lakewright_spark.catalog.warehouse import CatalogWarehouse, Delegation
from lakewright_spark.iceberg_values import COMMIT_RETRIES

__all__ = [
    "COMMIT_RETRIES",
    "DELEGATION_HEADER",
    "DELEGATION_VALUES",
    "CatalogConfig",
    "CatalogWarehouse",
    "Delegation",
    "Kind",
    "trust_variables",
]
