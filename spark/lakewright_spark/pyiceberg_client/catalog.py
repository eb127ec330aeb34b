"""PyIceberg's catalogs from a CatalogConfig, and its failures as errors of this package."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pydantic
import requests
from pyiceberg import exceptions as iceberg
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.utils.config import Config, merge_config
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import PasswordAuth
from lakewright_spark.catalog.kinds import DELEGATION_HEADER, NO_CREDENTIALS
from lakewright_spark.commit_conflicts import is_outdated
from lakewright_spark.errors import (
    AccessDeniedError,
    CatalogUnreachableError,
    IdentityError,
    JobFailedError,
    LakewrightSparkError,
    NoSuchResultError,
    WarehouseHiddenError,
    WarehouseRefusedError,
)
from lakewright_spark.iceberg_values import CONNECT_SECONDS, SOCKET_SECONDS
from lakewright_spark.pyiceberg_client.database_catalog import DatabaseCatalog
from lakewright_spark.pyiceberg_client.hadoop_catalog import HadoopCatalog
from lakewright_spark.pyiceberg_client.read_errors import invalid_part


class TimedAdapter(HTTPAdapter):
    """Sets a default time limit of requests, to connect and between two reads of the response."""

    def send(self, request: PreparedRequest, *args: Any, timeout: Any = None, **kwargs: Any) -> Response:
        """Send a request with a time limit."""
        return super().send(request, *args, timeout=timeout or (CONNECT_SECONDS, SOCKET_SECONDS), **kwargs)


class TimedRestCatalog(RestCatalog):
    """A REST catalog with time limits of requests, which PyIceberg 0.12 lacks, and with all conflicts of commits."""

    def _create_session(self) -> Session:
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, TimedAdapter())
        return session

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates to a table. Raises CommitFailedException also for the conflicts of `commit_conflicts`."""
        try:
            return super().commit_table(table, requirements, updates)
        except iceberg.BadRequestError as error:
            if is_outdated(str(error)):
                raise iceberg.CommitFailedException(str(error)) from error
            raise


_CLASSES: Mapping[str, Callable[..., Catalog]] = {
    "sql": DatabaseCatalog,
    "hadoop": HadoopCatalog,
    "rest": TimedRestCatalog,
}
"""Clients by the type of a catalog."""

_UNKNOWN = (iceberg.UnauthorizedError, iceberg.AuthorizationExpiredError, iceberg.OAuthError)
_OLD_SNAPSHOT = "Invalid snapshot timestamp"
_CLOCK_ADVICE = ". Compare the clocks of this machine and of the table's last writer: they differ by more than a minute"
_DOWN = (
    requests.RequestException,
    SQLAlchemyError,
    iceberg.ServerError,
    iceberg.ServiceUnavailableError,
    ConnectionError,
    TimeoutError,
)


def open_catalog(config: CatalogConfig, name: str, environ: Mapping[str, str] = os.environ) -> Catalog:
    """Open the catalog of a warehouse. Raises this package's errors."""
    return _open(config, name, environ, {})


def open_metadata_catalog(config: CatalogConfig, name: str, catalog: Catalog) -> Catalog:
    """Return a catalog whose tables have no credentials of the storage, for work on their metadata.

    Lakekeeper asks the storage service for credentials at each load that returns some. For other kinds of servers, the
    given catalog is returned.
    """
    if config.kind != "lakekeeper":
        return catalog
    return _open(config, name, os.environ, {f"header.{DELEGATION_HEADER}": NO_CREDENTIALS})


def _open(config: CatalogConfig, name: str, environ: Mapping[str, str], more: Mapping[str, str]) -> Catalog:
    try:
        warehouse = config.warehouse(name)
    except KeyError as error:
        raise WarehouseRefusedError(error.args[0]) from None
    properties: dict[str, Any] = config.pyiceberg(name)
    if warehouse.s3_keys:
        properties |= warehouse.s3_keys.secret_options(environ)
    if isinstance(config.auth, PasswordAuth):
        secret = config.auth.secret_options(environ)
        url = make_url(properties["uri"]).set(username=secret["jdbc.user"], password=secret["jdbc.password"])
        properties["uri"] = url.render_as_string(hide_password=False)
    if properties["uri"].startswith("postgresql"):
        url = make_url(properties["uri"]).update_query_dict(
            {"connect_timeout": str(int(CONNECT_SECONDS)), "tcp_user_timeout": str(int(SOCKET_SECONDS * 1000))}
        )
        properties["uri"] = url.render_as_string(hide_password=False)
    if warehouse.delegation == "remote-signing":
        # PyIceberg 0.12 removes and adds the signer of a file system, which its threads share since
        # fsspec 2026.9: with several threads, a request may be sent unsigned in between.
        os.environ.setdefault("PYICEBERG_MAX_WORKERS", "1")
        if config.ca_bundle:
            os.environ.setdefault("AWS_CA_BUNDLE", config.ca_bundle)
    with explain_errors(config, name):
        # The user's file and variables apply as well, as in PyIceberg's `load_catalog`.
        merged: dict[str, Any] = merge_config(Config().get_catalog_config(name) or {}, properties)
        merged.pop("type", None)
        merged |= more
        try:
            return _CLASSES[properties["type"]](name, **merged)
        except iceberg.RESTError as error:
            if _status(error) != 404:
                raise
            raise WarehouseHiddenError(
                f"warehouse {name} of {config.uri} does not exist, or this identity may not use it: "
                f"{_first_line(error)}"
            ) from error


def build_management_url(config: CatalogConfig, warehouse: str) -> str:
    """Return the address of a warehouse in Lakekeeper's management API."""
    server = config.uri.rstrip("/").removesuffix("/catalog")
    return f"{server}/management/v1/warehouse/{config.warehouse(warehouse).id}"


@contextmanager
def explain_errors(config: CatalogConfig, warehouse: str, target: str = "") -> Generator[None, None, None]:
    """Turn errors of PyIceberg into errors of this package that name the warehouse, its address and the target.

    Args:
        config: The catalog configuration.
        warehouse: Name of the warehouse.
        target: Target of the requests, such as `table a.b`.
    """
    server = f"warehouse {warehouse} of {config.uri}"
    try:
        yield
    except LakewrightSparkError:
        raise
    except iceberg.ForbiddenError as error:
        raise AccessDeniedError(
            f"{server} does not grant this request to the identity: {_first_line(error)}"
        ) from error
    except _UNKNOWN as error:
        raise IdentityError(f"{server} does not accept this identity: {_first_line(error)}") from error
    except (iceberg.NoSuchTableError, iceberg.NoSuchNamespaceError, iceberg.NoSuchIdentifierError) as error:
        raise NoSuchResultError(f"{server} has no {target or 'such table'}: {_first_line(error)}") from error
    except _DOWN as error:
        raise CatalogUnreachableError(f"{server} does not respond: {_first_line(error)}") from error
    except OSError as error:
        raise CatalogUnreachableError(f"{server}: its storage fails: {_first_line(error)}") from error
    except (iceberg.ValidationError, pydantic.ValidationError) as error:
        raise JobFailedError(
            f"{server}: the metadata of {target or 'a table'} cannot be read: {invalid_part(error)}"
        ) from error
    except (iceberg.CommitFailedException, iceberg.ValidationException) as error:
        raise JobFailedError(
            f"{server}: repeated conflicts with other changes of {target or 'the table'}: {_first_line(error)}"
        ) from error
    except iceberg.RESTError as error:
        advice = _CLOCK_ADVICE if _OLD_SNAPSHOT in str(error) else ""
        raise JobFailedError(f"{server} refused {target or 'the request'}: {_first_line(error)}{advice}") from error


def _status(error: iceberg.RESTError) -> int | None:
    """Return the HTTP status behind an error of PyIceberg."""
    cause = error.__cause__
    response = cause.response if isinstance(cause, requests.HTTPError) else None
    return None if response is None else response.status_code


def _first_line(error: BaseException) -> str:
    if isinstance(error, requests.RequestException | SQLAlchemyError):
        # Their texts hold addresses with parameters.
        return type(error).__name__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def list_namespaces(
    catalog: Catalog,
    parent: tuple[str, ...] = (),
    *,
    on_error: Callable[[tuple[str, ...], Exception], None] | None = None,
) -> Iterator[tuple[str, ...]]:
    """Yield every namespace below a parent, parents first. Namespaces that are dropped in the meantime are left out.

    Args:
        catalog: The catalog.
        parent: The parent. Default: the root.
        on_error: Gets namespaces whose children cannot be listed, and the error. Without it, and for the root, errors
            are raised.
    """
    try:
        children = catalog.list_namespaces(parent)
    except NoSuchNamespaceError:
        return
    except Exception as error:
        if on_error is None or not parent:
            raise
        on_error(parent, error)
        return
    for namespace in children:
        # A catalog in a database returns all levels below, a REST catalog only the next level.
        if len(namespace) == len(parent) + 1:
            yield tuple(namespace)
            yield from list_namespaces(catalog, tuple(namespace), on_error=on_error)
