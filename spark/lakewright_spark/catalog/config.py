"""CatalogConfig: the contract between a stack and its jobs. Stacks write it, jobs read it. It holds no secrets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, model_validator

from lakewright_spark.catalog import kinds
from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, NoAuth, PasswordAuth
from lakewright_spark.catalog.config_model import ADDED_LATER, ConfigModel
from lakewright_spark.catalog.kinds import Kind
from lakewright_spark.catalog.limits import TenantLimits
from lakewright_spark.catalog.warehouse import CatalogWarehouse
from lakewright_spark.policies.model import PolicyPattern

ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

REDACTION: Mapping[str, str] = {"spark.redaction.regex": "(?i)secret|password|token|credential|access[.-]?key"}
"""Hides secrets in Spark's event log and UI. Spark's default pattern lacks `credential` and the hyphen."""


class CatalogConfig(ConfigModel):
    """Addresses and names that a job needs to use a tenant's warehouses. Credentials are references, never values.

    Kinds: `lakekeeper`; `rest`, any Iceberg REST service; `jdbc`, a catalog in a database, where the warehouse's name
    is the value of `catalog_name` (Texera's is `texera_iceberg`); `hadoop`, a folder of tables with numbered metadata
    files, from which tables can be migrated.
    """

    version: Literal[1] = 1
    kind: Annotated[Kind, ADDED_LATER] = "lakekeeper"
    tenant: str
    uri: str
    """Address of the catalog, such as `https://lakekeeper.example/catalog` or `postgresql://db.example/iceberg`."""
    project_id: str | None = None
    """Project ID in Lakekeeper. None for other kinds."""
    auth: Annotated[CatalogAuth, Field(discriminator="kind")] = NoAuth()
    headers: Annotated[dict[str, str], ADDED_LATER] = {}
    """Kind `rest`: HTTP headers without secrets of all requests, also to `token_url`, such as `Polaris-Realm`."""
    ca_bundle: Annotated[str | None, ADDED_LATER] = None
    """Path of a PEM file with the certificate authorities of catalog and storage, on the machine that runs the job."""
    truststore: Annotated[str | None, ADDED_LATER] = None
    """Path of a PKCS 12 truststore with these authorities on every machine of a cluster. Not needed on one machine."""
    warehouses: list[CatalogWarehouse]
    policies: Annotated[tuple[PolicyPattern, ...], ADDED_LATER] = ()
    """Policies by table-name pattern. Later patterns override earlier patterns; table policies override both."""

    limits: Annotated[TenantLimits | None, ADDED_LATER] = None
    """Limits of all warehouses together, and of computing units. None: no limits."""

    @model_validator(mode="after")
    def _check_kind(self) -> CatalogConfig:
        address = kinds.check_address(self.kind, self.uri)
        kinds.check_kind(self)
        if address != self.uri:
            object.__setattr__(self, "uri", address)
        return self

    def warehouse(self, name: str) -> CatalogWarehouse:
        """Return the warehouse with this name.

        Raises:
            KeyError: No such warehouse. The message lists the existing names.
        """
        for warehouse in self.warehouses:
            if warehouse.name == name:
                return warehouse
        names = ", ".join(warehouse.name for warehouse in self.warehouses) or "none"
        raise KeyError(f"tenant {self.tenant} has no warehouse {name!r} in this configuration; it has: {names}")

    def select_warehouses(self, names: Iterable[str]) -> CatalogConfig:
        """Return this configuration with only these warehouses, in this order."""
        return self.model_copy(update={"warehouses": [self.warehouse(name) for name in names]})

    def spark_properties(self) -> dict[str, str]:
        """Return Spark properties: a named catalog per warehouse. A single warehouse is also the default catalog."""
        properties = {"spark.sql.extensions": ICEBERG_EXTENSIONS, **REDACTION}
        if len(self.warehouses) == 1:
            properties["spark.sql.defaultCatalog"] = self.warehouses[0].name
        for warehouse in self.warehouses:
            prefix = f"spark.sql.catalog.{warehouse.name}"
            properties[prefix] = "org.apache.iceberg.spark.SparkCatalog"
            options = kinds.java_options(self, warehouse)
            properties |= {f"{prefix}.{key}": value for key, value in options.items()}
        return properties

    def spark_properties_with_references(self) -> dict[str, str]:
        """Return Spark properties by which Iceberg reads the credential from its file or variable, at every use.

        They need this package's jar on driver and executors. No property is a secret.

        Raises:
            ValueError: Spark cannot read the credentials of this configuration itself.
        """
        if isinstance(self.auth, PasswordAuth) or any(warehouse.s3_keys for warehouse in self.warehouses):
            raise ValueError("expected auth by token or client credentials and no S3 keys: Spark reads no other itself")
        if self.headers and isinstance(self.auth, ClientCredentialsAuth):
            raise ValueError("expected no headers with client credentials: requests of tokens by Spark lack them")
        properties = self.spark_properties()
        for warehouse in self.warehouses:
            prefix = f"spark.sql.catalog.{warehouse.name}"
            for key in self.auth.java_options():
                del properties[f"{prefix}.{key}"]
            properties |= {f"{prefix}.{key}": value for key, value in self.auth.java_references().items()}
        return properties

    def spark_secrets(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the secret properties, read now. Set them in the job's process and never store them.

        Raises:
            IdentityError: A credential reference cannot be resolved.
        """
        return {
            f"spark.sql.catalog.{warehouse.name}.{key}": value
            for warehouse in self.warehouses
            for key, value in {
                **self.auth.secret_options(environ),
                **(warehouse.s3_keys.secret_options(environ) if warehouse.s3_keys else {}),
            }.items()
        }

    def pyiceberg(self, name: str) -> dict[str, Any]:
        """Return the properties for `pyiceberg.catalog.load_catalog(name, **properties)`, without secrets."""
        return kinds.pyiceberg_options(self, self.warehouse(name))

    def pyiceberg_yaml(self) -> str:
        """Return the text of a `.pyiceberg.yaml`."""
        return yaml.safe_dump({"catalog": {w.name: self.pyiceberg(w.name) for w in self.warehouses}}, sort_keys=False)

    def environment(self) -> dict[str, str]:
        """Return environment variables: the configuration as JSON, and PyIceberg's variables for each warehouse.

        PyIceberg reads `PYICEBERG_CATALOG__NAME__A__B_C` as the property `a.b-c`, so header names lose their case,
        which HTTP ignores. `list_inexpressible_warehouses` lists the warehouses that such variables cannot
        describe. Jobs read `LAKEWRIGHT_CATALOG` or the file that `pyiceberg_yaml` writes.
        """
        variables = {"LAKEWRIGHT_CATALOG": json.dumps(self.model_dump(mode="json"), separators=(",", ":"))}
        variables |= trust_variables(self)
        left_out = self.list_inexpressible_warehouses()
        for warehouse in self.warehouses:
            if warehouse.name not in left_out:
                prefix = f"PYICEBERG_CATALOG__{_variable(warehouse.name)}"
                variables |= {f"{prefix}__{_variable(k)}": v for k, v in self.pyiceberg(warehouse.name).items()}
        return variables

    def list_inexpressible_warehouses(self) -> list[str]:
        """Return warehouses that PyIceberg's variables cannot describe: they turn `_` into `-` and have no nesting."""
        return [
            warehouse.name
            for warehouse in self.warehouses
            if "_" in warehouse.name or not all(isinstance(v, str) for v in self.pyiceberg(warehouse.name).values())
        ]

    def to_json(self) -> str:
        """Return the configuration as indented JSON."""
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(cls, text: str) -> CatalogConfig:
        """Parse the text that `to_json` writes.

        Raises:
            pydantic.ValidationError: The text is not a catalog configuration.
        """
        return cls.model_validate_json(text)

    @classmethod
    def load(cls, path: str | Path) -> CatalogConfig:
        """Read a file that `to_json` wrote."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def trust_variables(config: CatalogConfig) -> dict[str, str]:
    """Return the variables that make Python libraries trust the configuration's certificate authorities."""
    names = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
    return dict.fromkeys(names, config.ca_bundle) if config.ca_bundle else {}


def _variable(name: str) -> str:
    return name.upper().replace(".", "__").replace("-", "_")
