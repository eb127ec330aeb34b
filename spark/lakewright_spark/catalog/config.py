"""CatalogConfig: the contract between a stack and its jobs. Stacks write it, jobs read it; it never holds a secret."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from lakewright_spark.catalog import kinds as catalog_kinds
from lakewright_spark.catalog.auth import CatalogAuth, NoAuth, S3Keys
from lakewright_spark.catalog.kinds import COMMIT_RETRIES, DELEGATION_HEADER, DELEGATION_VALUES, Delegation, Kind
from lakewright_spark.policies.model import Job, PolicyPattern

__all__ = [
    "COMMIT_RETRIES",
    "DELEGATION_HEADER",
    "DELEGATION_VALUES",
    "REDACTION",
    "CatalogConfig",
    "CatalogWarehouse",
    "Delegation",
    "Kind",
    "trust_variables",
]

ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

REDACTION: Mapping[str, str] = {"spark.redaction.regex": "(?i)secret|password|token|credential|access[.-]?key"}
"""Hides values in Spark's event log and pages. Its own pattern lacks Iceberg's `credential` and the hyphen."""

_SECRET_OPTION = re.compile(r"secret|password|token|access-key|credential", re.IGNORECASE)


def _no_secret_options(options: dict[str, str]) -> dict[str, str]:
    if secret := sorted(name for name in options if _SECRET_OPTION.search(name)):
        raise ValueError(f"expected options that are no secrets, found {', '.join(secret)}")
    return options


_SINCE: dict[str, Any] = {"x-since": "0.2"}
_LATER = Field(json_schema_extra=_SINCE)
"""Marks a field that `version: 1` did not have in its first release."""


class _ConfigModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_serializer(mode="wrap")
    def _without_what_nobody_set(self, told: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Fields that `version: 1` got later are left out at their default: who knows only the older ones reads it too.
        fields = type(self).model_fields
        later = {name for name, field in fields.items() if field.json_schema_extra == _SINCE}
        return {k: v for k, v in told(self).items() if not (k in later and getattr(self, k) == fields[k].default)}


class CatalogWarehouse(_ConfigModel):
    """One warehouse as a job sees it: a catalog of the same name in Spark and in PyIceberg."""

    name: str
    id: str | None = None
    """The UUID that Lakekeeper gave it; other kinds of catalogs have none."""
    delegation: Delegation = "vended"
    namespaces: list[str] = []
    """Full names, levels joined by a dot."""
    s3: Annotated[dict[str, str], AfterValidator(_no_secret_options)] = {}
    """Client options under Iceberg's own names, such as `s3.endpoint`."""
    location: Annotated[str | None, _LATER] = None
    """jdbc: where tables are put, s3://BUCKET/PREFIX. rest: what the server calls the warehouse; default its name."""
    s3_keys: Annotated[S3Keys | None, _LATER] = None
    """For catalogs that vend no credentials. Default: those that AWS's own chain finds."""
    owner: Annotated[str | None, _LATER] = None
    """The principal whose runs write here, `user:IDP~SUBJECT` or `role:NAME`. Default: every run of the tenant may."""
    writers: Annotated[tuple[str, ...], _LATER] = ()
    """Other principals whose runs may write here, by a grant."""
    server_jobs: Annotated[tuple[Job, ...], _LATER] = ()
    """What the catalog's server does itself; jobs leave it alone."""


class CatalogConfig(_ConfigModel):
    """What a job needs to use a tenant's warehouses: addresses and names. Of S3 keys, it says at most where they are.

    Kinds: `lakekeeper`; `rest`, any Iceberg REST service; `jdbc`, Iceberg's tables in a database, where the warehouse's
    name is the catalog's in those tables (Texera's is `texera_iceberg`).
    """

    version: Literal[1] = 1
    kind: Annotated[Kind, _LATER] = "lakekeeper"
    tenant: str
    uri: str
    """The catalog's address, as in `https://lakekeeper.example/catalog` or `postgresql://db.example/iceberg`."""
    project_id: str | None = None
    """Lakekeeper's; other kinds have none."""
    auth: Annotated[CatalogAuth, Field(discriminator="kind")] = NoAuth()
    ca_bundle: Annotated[str | None, _LATER] = None
    """Path, where jobs run, of a PEM file with the certificate authorities of catalog and storage."""
    truststore: Annotated[str | None, _LATER] = None
    """Path of the same as a PKCS 12 truststore on every machine of a cluster; one machine makes its own."""
    warehouses: list[CatalogWarehouse]
    policies: Annotated[tuple[PolicyPattern, ...], _LATER] = ()
    """Policies of tables by pattern: a later one wins over an earlier one, and a table's own over all."""

    @model_validator(mode="after")
    def _suits_its_kind(self) -> CatalogConfig:
        address = catalog_kinds.check_address(self.kind, self.uri)
        catalog_kinds.check_kind(self)
        if address != self.uri:
            object.__setattr__(self, "uri", address)
        return self

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
        properties = {"spark.sql.extensions": ICEBERG_EXTENSIONS, **REDACTION}
        if len(self.warehouses) == 1:
            properties["spark.sql.defaultCatalog"] = self.warehouses[0].name
        for warehouse in self.warehouses:
            prefix = f"spark.sql.catalog.{warehouse.name}"
            properties[prefix] = "org.apache.iceberg.spark.SparkCatalog"
            options = catalog_kinds.java_options(self, warehouse)
            properties |= {f"{prefix}.{key}": value for key, value in options.items()}
        return properties

    def spark_secrets(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Properties that a job adds in its own process, read now. Never store them. Raises IdentityError."""
        return {
            f"spark.sql.catalog.{warehouse.name}.{key}": value
            for warehouse in self.warehouses
            for key, value in {
                **self.auth.secret_options(environ),
                **(warehouse.s3_keys.secret_options(environ) if warehouse.s3_keys else {}),
            }.items()
        }

    def pyiceberg(self, name: str) -> dict[str, Any]:
        """The properties that `pyiceberg.catalog.load_catalog(name, **properties)` takes; none of them is a secret."""
        return catalog_kinds.pyiceberg_options(self, self.warehouse(name))

    def pyiceberg_yaml(self) -> str:
        """The text of a `.pyiceberg.yaml`."""
        return yaml.safe_dump({"catalog": {w.name: self.pyiceberg(w.name) for w in self.warehouses}}, sort_keys=False)

    def environment(self) -> dict[str, str]:
        """Environment variables: the whole configuration as JSON, and PyIceberg's own variables for each warehouse.

        PyIceberg reads `PYICEBERG_CATALOG__NAME__A__B_C` as the property `a.b-c`, so header names lose their case;
        HTTP does not mind. What such variables cannot say, `without_variables` names. Jobs find everything in
        `LAKEWRIGHT_CATALOG`, or in the file that `pyiceberg_yaml` writes.
        """
        variables = {"LAKEWRIGHT_CATALOG": json.dumps(self.model_dump(mode="json"), separators=(",", ":"))}
        variables |= trust_variables(self)
        left_out = self.without_variables()
        for warehouse in self.warehouses:
            if warehouse.name not in left_out:
                prefix = f"PYICEBERG_CATALOG__{_variable(warehouse.name)}"
                variables |= {f"{prefix}__{_variable(k)}": v for k, v in self.pyiceberg(warehouse.name).items()}
        return variables

    def without_variables(self) -> list[str]:
        """Warehouses that PyIceberg's variables cannot describe: it reads `_` as `-`, and knows no nested settings."""
        return [
            warehouse.name
            for warehouse in self.warehouses
            if "_" in warehouse.name or not all(isinstance(v, str) for v in self.pyiceberg(warehouse.name).values())
        ]

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


def trust_variables(config: CatalogConfig) -> dict[str, str]:
    """The variables by which Python's libraries trust the configuration's own certificate authorities."""
    names = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
    return dict.fromkeys(names, config.ca_bundle) if config.ca_bundle else {}


def _variable(name: str) -> str:
    return name.upper().replace(".", "__").replace("-", "_")
