"""Kinds of catalogs: required settings, and options for Iceberg's Java client and PyIceberg."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, NoAuth, PasswordAuth
from lakewright_spark.catalog.warehouse import CatalogWarehouse, Delegation, StorageKind
from lakewright_spark.iceberg_values import COMMIT_RETRIES, CONNECT_SECONDS, SOCKET_SECONDS

Kind = Literal["lakekeeper", "rest", "jdbc", "hadoop"]

DELEGATION_HEADER = "X-Iceberg-Access-Delegation"
NO_CREDENTIALS = "client-managed"
"""Value of the header by which Lakekeeper returns no credentials of the storage."""
PROJECT_HEADER = "x-project-id"
DELEGATION_VALUES: Mapping[Delegation, str] = {"vended": "vended-credentials", "remote-signing": "remote-signing"}

_POSTGRES_TIMEOUTS: Mapping[str, str] = {
    "jdbc.connectTimeout": str(int(CONNECT_SECONDS)),
    "jdbc.socketTimeout": str(int(SOCKET_SECONDS)),
}
"""Seconds. By default, the PostgreSQL driver waits for a response without a time limit."""

_FILE_IO: Mapping[StorageKind, str] = {
    "s3": "org.apache.iceberg.aws.s3.S3FileIO",
    "adls": "org.apache.iceberg.azure.adlsv2.ADLSFileIO",
    "gcs": "org.apache.iceberg.gcp.gcs.GCSFileIO",
}
"""Iceberg's implementations of FileIO by storage service."""

_RESERVED_HEADERS = frozenset({"authorization", DELEGATION_HEADER.lower()})
_SECRET_HEADER = re.compile(
    r"authorization|cookie|password|secret|token|credential|(^|[-_])auth([-_]|$)|api-?_?key|access-?_?key"
)
"""Part of the names of headers that have secrets. Headers are plain text in the configuration and in Spark."""
_S3_LOCATION = re.compile(r"s3://[^/]+(/.*)?")


class _Settings(Protocol):
    """The settings of a CatalogConfig that depend on its kind."""

    @property
    def kind(self) -> Kind: ...

    @property
    def uri(self) -> str: ...

    @property
    def project_id(self) -> str | None: ...

    @property
    def auth(self) -> CatalogAuth: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def ca_bundle(self) -> str | None: ...

    @property
    def warehouses(self) -> Sequence[CatalogWarehouse]: ...


def check_address(kind: Kind, uri: str) -> str:
    """Return the address without a trailing slash.

    Raises:
        ValueError: The address does not suit the kind, or holds a secret.
    """
    parts = urlsplit(uri)
    secret = parts.username or parts.password or parts.query or parts.fragment
    if kind == "hadoop":
        if not re.fullmatch(r"s3a?://[^/]+/.+|file:///.+", uri) or secret:
            raise ValueError("expected the folder of a Hadoop catalog: s3://BUCKET/PREFIX or file:///PATH")
        return uri.rstrip("/")
    if kind != "jdbc":
        if parts.scheme not in {"http", "https"} or not parts.hostname or secret:
            raise ValueError("expected an http(s) address without user, password or query")
        return uri.rstrip("/")
    host_or_none = bool(parts.hostname) if parts.scheme == "postgresql" else not parts.netloc
    if parts.scheme not in {"postgresql", "sqlite"} or not host_or_none or len(parts.path) < 2 or secret:
        raise ValueError(
            "expected postgresql://HOST[:PORT]/DATABASE or sqlite:///PATH, without user, password or query"
        )
    return uri


def check_kind(config: _Settings) -> None:
    """Raise ValueError if a required setting of the kind is missing, or an unsupported setting is present."""
    if config.kind == "lakekeeper":
        if config.project_id is None or any(warehouse.id is None for warehouse in config.warehouses):
            raise ValueError("kind lakekeeper: expected project_id, and an id in every warehouse")
    elif config.project_id is not None:
        raise ValueError(f"kind {config.kind}: expected no project_id, which only kind lakekeeper has")
    _check_headers(config)
    if config.kind == "jdbc":
        if not isinstance(config.auth, NoAuth | PasswordAuth):
            raise ValueError(f"kind jdbc: expected auth of kind password or none, found {config.auth.kind}")
        for warehouse in config.warehouses:
            if not _S3_LOCATION.fullmatch(warehouse.location or ""):
                raise ValueError(f"kind jdbc: expected a location s3://BUCKET/PREFIX of warehouse {warehouse.name}")
    elif config.kind == "hadoop":
        if not isinstance(config.auth, NoAuth) or len(config.warehouses) != 1:
            raise ValueError("kind hadoop: expected auth of kind none and one warehouse, the folder `uri`")
    elif isinstance(config.auth, PasswordAuth):
        raise ValueError(f"kind {config.kind}: expected auth by token or client credentials, found password")


def _check_headers(config: _Settings) -> None:
    if config.headers and config.kind != "rest":
        raise ValueError(f"kind {config.kind}: expected no headers, which only kind rest has")
    if reserved_names := sorted(name for name in config.headers if name.lower() in _RESERVED_HEADERS):
        raise ValueError(f"headers: expected no {', '.join(reserved_names)}, which `auth` and `delegation` set")
    if secret_names := sorted(name for name in config.headers if _SECRET_HEADER.search(name.lower())):
        raise ValueError(
            f"headers: expected headers without secrets, such as Polaris-Realm, found {', '.join(secret_names)}. "
            "Headers are plain text in this configuration and in Spark. Use `auth` for credentials"
        )


def java_options(config: _Settings, warehouse: CatalogWarehouse) -> dict[str, str]:
    """Return the options of `spark.sql.catalog.NAME`, without secrets."""
    if config.kind == "hadoop":
        return {"type": "hadoop", "warehouse": config.uri, **_files(warehouse)}
    if config.kind == "jdbc":
        return {
            "type": "jdbc",
            "uri": f"jdbc:{config.uri.replace(':///', ':/') if config.uri.startswith('sqlite') else config.uri}",
            "warehouse": warehouse.location or "",
            # Otherwise a new table with the old name of a renamed table gets the renamed table's location.
            "unique-table-location": "true",
            **(_POSTGRES_TIMEOUTS if config.uri.startswith("postgresql") else {}),
            **_files(warehouse),
        }
    options = {
        "type": "rest",
        "uri": config.uri,
        "warehouse": _server_warehouse(config, warehouse),
        # By default, Iceberg's client waits for a response without a time limit.
        "rest.client.connection-timeout-ms": str(int(CONNECT_SECONDS * 1000)),
        "rest.client.socket-timeout-ms": str(int(SOCKET_SECONDS * 1000)),
        **_files(warehouse),
        **_headers(config, warehouse),
        **config.auth.java_options(),
    }
    if config.kind == "lakekeeper" or warehouse.delegation == "remote-signing":
        # Otherwise the client deletes the files of DROP TABLE PURGE: a second time, or without signed requests.
        options["rest-catalog-purge"] = "true"
    return options


def pyiceberg_options(config: _Settings, warehouse: CatalogWarehouse) -> dict[str, Any]:
    """Return the properties for `load_catalog(name, ...)`, without secrets. All but `auth` and `ssl` are text."""
    if config.kind == "hadoop":
        # PyIceberg has no Hadoop catalog; `open_catalog` opens this package's.
        return {"type": "hadoop", "uri": config.uri, "warehouse": config.uri, **warehouse.s3}
    if config.kind == "jdbc":
        driver = {"postgresql": "postgresql+psycopg"}
        scheme, _, address = config.uri.partition(":")
        uri = f"{driver.get(scheme, scheme)}:{address}"
        return {
            "type": "sql",
            "uri": uri,
            "warehouse": warehouse.location or "",
            **warehouse.s3,
            **_file_io(config, warehouse),
        }
    return {
        "type": "rest",
        "uri": config.uri,
        "warehouse": _server_warehouse(config, warehouse),
        **_headers(config, warehouse),
        **warehouse.s3,
        **_build_pyiceberg_auth(config),
        **({"ssl": {"cabundle": config.ca_bundle}} if config.ca_bundle else {}),
        **(_file_io(config, warehouse) if warehouse.delegation == "vended" else {}),
    }


def _server_warehouse(config: _Settings, warehouse: CatalogWarehouse) -> str:
    # Lakekeeper reads the text before the first slash as the project.
    if config.project_id is not None:
        return f"{config.project_id}/{warehouse.name}"
    return warehouse.location or warehouse.name


def _headers(config: _Settings, warehouse: CatalogWarehouse) -> dict[str, str]:
    headers = {**config.headers, DELEGATION_HEADER: DELEGATION_VALUES[warehouse.delegation]}
    if config.project_id is not None:
        # A server without a default project that reads roles from tokens rejects every request without this header.
        headers[PROJECT_HEADER] = config.project_id
    return {f"header.{name}": value for name, value in headers.items()}


def _build_pyiceberg_auth(config: _Settings) -> dict[str, Any]:
    options = config.auth.pyiceberg_options()
    if config.headers and isinstance(config.auth, ClientCredentialsAuth):
        # The token endpoint of Polaris needs the realm, too.
        options["auth"]["custom"]["headers"] = dict(config.headers)
    return options


def _files(warehouse: CatalogWarehouse) -> dict[str, str]:
    return {
        "io-impl": _FILE_IO[warehouse.storage],
        **warehouse.s3,
        **{f"table-default.{key}": value for key, value in COMMIT_RETRIES.items()},
    }


def _file_io(config: _Settings, warehouse: CatalogWarehouse) -> dict[str, str]:
    """Return the FileIO that trusts `ca_bundle`; PyIceberg's default FileIO on S3 trusts only the system's authorities.

    Azure and Google have certificates that every machine trusts.
    """
    if config.ca_bundle is None or warehouse.storage != "s3":
        return {}
    return {
        "py-io-impl": "lakewright_spark.pyiceberg_client.file_io.TrustingFileIO",
        "lakewright.ca-bundle": config.ca_bundle,
    }
