"""The catalog configuration: the contract between a stack and its jobs. Needs pydantic and PyYAML only."""

from lakewright_spark.catalog.config import CatalogConfig, trust_variables
from lakewright_spark.catalog.kinds import COMMIT_RETRIES, DELEGATION_HEADER, DELEGATION_VALUES, Kind
from lakewright_spark.catalog.warehouse import CatalogWarehouse, Delegation

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
