"""CatalogConfig: the contract between a stack and its jobs. Stacks write it, jobs read it; it never holds a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lakewright_spark.catalog_auth import CatalogAuth, NoAuth

Delegation = Literal["vended", "remote-signing"]

DELEGATION_HEADER = "X-Iceberg-Access-Delegation"
DELEGATION_VALUES: Mapping[Delegation, str] = {"vended": "vended-credentials", "remote-signing": "remote-signing"}

COMMIT_RETRIES: Mapping[str, str] = {
    "commit.retry.num-retries": "10",
    "commit.retry.min-wait-ms": "100",
    "commit.retry.max-wait-ms": "10000",
}
"""Table properties (milliseconds) that new tables get: Texera's defaults, which suit many writers on one table."""

ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

_SECRET_OPTION = re.compile(r"secret|password|token|access-key|credential", re.IGNORECASE)


def _plain_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password or parts.query:
        raise ValueError("expected an http(s) address without user, password or query")
    return url.rstrip("/")


def _no_secret_options(options: dict[str, str]) -> dict[str, str]:
    if secret := sorted(name for name in options if _SECRET_OPTION.search(name)):
        raise ValueError(f"expected options that are no secrets, found {', '.join(secret)}")
    return options


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CatalogWarehouse(_Part):
    """One warehouse as a job sees it: a catalog of the same name in Spark and in PyIceberg."""

    name: str
    id: str
    """The UUID that Lakekeeper gave it."""
    delegation: Delegation = "vended"
    namespaces: list[str] = []
    """Full names, levels joined by a dot."""
    s3: Annotated[dict[str, str], AfterValidator(_no_secret_options)] = {}
    """Client options under Iceberg's own names, such as `s3.endpoint`."""


class CatalogConfig(_Part):
    """What a job needs to use a tenant's warehouses: addresses and names. S3 keys come from the catalog, per table."""

    version: Literal[1] = 1
    tenant: str
    uri: Annotated[str, AfterValidator(_plain_url)]
    """The catalog's address, as in `https://lakekeeper.example/catalog`."""
    project_id: str
    auth: Annotated[CatalogAuth, Field(discriminator="kind")] = NoAuth()
    warehouses: list[CatalogWarehouse]

    def warehouse(self, name: str) -> CatalogWarehouse:
        """The warehouse of that name; KeyError, with the names that there are, if there is none."""
        for warehouse in self.warehouses:
            if warehouse.name == name:
                return warehouse
        known = ", ".join(w.name for w in self.warehouses) or "none"
        raise KeyError(f"tenant {self.tenant} has no warehouse {name!r} in this configuration; it has: {known}")

    def for_warehouses(self, names: Iterable[str]) -> CatalogConfig:
        """The same configuration with these warehouses alone, in this order."""
        return self.model_copy(update={"warehouses": [self.warehouse(name) for name in names]})

    def spark_properties(self) -> dict[str, str]:
        """Spark's properties: a named catalog per warehouse; the only one, if there is one, is the default catalog."""
        properties = {"spark.sql.extensions": ICEBERG_EXTENSIONS}
        if len(self.warehouses) == 1:
            properties["spark.sql.defaultCatalog"] = self.warehouses[0].name
        for warehouse in self.warehouses:
            prefix = f"spark.sql.catalog.{warehouse.name}"
            properties[prefix] = "org.apache.iceberg.spark.SparkCatalog"
            properties |= {f"{prefix}.{key}": value for key, value in self._java_options(warehouse).items()}
        return properties

    def pyiceberg(self, name: str) -> dict[str, str]:
        """The properties that `pyiceberg.catalog.load_catalog(name, **properties)` takes."""
        warehouse = self.warehouse(name)
        return {
            "type": "rest",
            "uri": self.uri,
            "warehouse": self._qualified(warehouse),
            f"header.{DELEGATION_HEADER}": DELEGATION_VALUES[warehouse.delegation],
            **warehouse.s3,
            **self.auth.pyiceberg_options(),
        }

    def pyiceberg_yaml(self) -> str:
        """The text of a `.pyiceberg.yaml`."""
        return yaml.safe_dump({"catalog": {w.name: self.pyiceberg(w.name) for w in self.warehouses}}, sort_keys=False)

    def environment(self) -> dict[str, str]:
        """Environment variables: the whole configuration as JSON, and PyIceberg's own variables for each warehouse.

        PyIceberg reads `PYICEBERG_CATALOG__NAME__A__B_C` as the property `a.b-c`, so header names lose their case;
        HTTP does not mind. It reads `_` in NAME as `-` too, so a warehouse with `_` in its name has none of PyIceberg's
        variables. Jobs find it in `LAKEWRIGHT_CATALOG`, or in the file that `pyiceberg_yaml` writes.
        """
        variables = {"LAKEWRIGHT_CATALOG": json.dumps(self.model_dump(mode="json"), separators=(",", ":"))}
        for warehouse in self.warehouses:
            if "_" in warehouse.name:
                continue
            prefix = f"PYICEBERG_CATALOG__{_variable(warehouse.name)}"
            variables |= {f"{prefix}__{_variable(k)}": v for k, v in self.pyiceberg(warehouse.name).items()}
        return variables

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(cls, text: str) -> CatalogConfig:
        """Read what `to_json` wrote; pydantic's ValidationError if it is something else."""
        return cls.model_validate_json(text)

    @classmethod
    def load(cls, path: Path) -> CatalogConfig:
        """Read a file that holds `to_json`'s text."""
        return cls.from_json(path.read_text(encoding="utf-8"))

    def _java_options(self, warehouse: CatalogWarehouse) -> dict[str, Any]:
        return {
            "type": "rest",
            "uri": self.uri,
            "warehouse": self._qualified(warehouse),
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            f"header.{DELEGATION_HEADER}": DELEGATION_VALUES[warehouse.delegation],
            **warehouse.s3,
            **{f"table-default.{key}": value for key, value in COMMIT_RETRIES.items()},
            **self.auth.java_options(),
        }

    def _qualified(self, warehouse: CatalogWarehouse) -> str:
        # Lakekeeper takes the text before the first slash as the project: no project header is needed then.
        return f"{self.project_id}/{warehouse.name}"


def _variable(name: str) -> str:
    return name.upper().replace(".", "__").replace("-", "_")
