"""PyIceberg's catalogs from a CatalogConfig, and its failures as errors of this package."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pydantic
import requests
from pyiceberg import exceptions as iceberg
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.utils.config import Config, merge_config
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import PasswordAuth
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
from lakewright_spark.pyiceberg_client.read_errors import invalid_part
from lakewright_spark.timeouts import CONNECT, SOCKET


class TimedAdapter(HTTPAdapter):
    """Gives every request that has none a time-out: to connect, and between two bytes of the answer."""

    def send(self, request: PreparedRequest, *args: Any, timeout: Any = None, **kwargs: Any) -> Response:
        return super().send(request, *args, timeout=timeout or (CONNECT, SOCKET), **kwargs)


class TimedRestCatalog(RestCatalog):
    """A catalog service whose silence ends a request. PyIceberg 0.12 waits for an answer without end."""

    def _create_session(self) -> Session:
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, TimedAdapter())
        return session


class UniqueLocationSqlCatalog(SqlCatalog):
    """A catalog in a database that gives every new table a location of its own, as Java's `unique-table-location`.

    By default a location is made of the table's name alone, so that a table that is made under the name of a renamed
    one shares its files' folder. PyIceberg 0.12 has no such setting.
    """

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        return f"{super()._get_default_warehouse_location(database_name, table_name)}-{uuid4().hex}"


_UNKNOWN = (iceberg.UnauthorizedError, iceberg.AuthorizationExpiredError, iceberg.OAuthError)
_DOWN = (
    requests.RequestException,
    SQLAlchemyError,
    iceberg.ServerError,
    iceberg.ServiceUnavailableError,
    ConnectionError,
    TimeoutError,
)


def open_catalog(config: CatalogConfig, name: str, environ: Mapping[str, str] = os.environ) -> Catalog:
    """The catalog of the warehouse with that name. Raises this package's errors; nothing is kept but the catalog."""
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
            {"connect_timeout": str(int(CONNECT)), "tcp_user_timeout": str(int(SOCKET * 1000))}
        )
        properties["uri"] = url.render_as_string(hide_password=False)
    if warehouse.delegation == "remote-signing":
        # PyIceberg 0.12 takes the signer off a file system and puts it on again, on one that its threads share since
        # fsspec 2026.9: with several threads a request may go out unsigned in between.
        os.environ.setdefault("PYICEBERG_MAX_WORKERS", "1")
        if config.ca_bundle:
            os.environ.setdefault("AWS_CA_BUNDLE", config.ca_bundle)
    with explain_errors(config, name):
        # What the user's own file or variables say of this catalog counts too, as with PyIceberg's `load_catalog`.
        merged: dict[str, Any] = merge_config(Config().get_catalog_config(name) or {}, properties)
        merged.pop("type", None)
        kind = UniqueLocationSqlCatalog if properties["type"] == "sql" else TimedRestCatalog
        try:
            return kind(name, **merged)
        except iceberg.RESTError as error:
            if _status(error) != 404:
                raise
            raise WarehouseHiddenError(
                f"warehouse {name} of {config.uri} does not exist, or this identity may not use it: "
                f"{_first_line(error)}"
            ) from error


@contextmanager
def explain_errors(config: CatalogConfig, warehouse: str, what: str = "") -> Iterator[None]:
    """Turns what PyIceberg raises into one sentence that names the warehouse, the address and `what` was asked for."""
    where = f"warehouse {warehouse} of {config.uri}"
    try:
        yield
    except LakewrightSparkError:
        raise
    except iceberg.ForbiddenError as error:
        raise AccessDeniedError(
            f"{where} does not grant this identity what it asks for: {_first_line(error)}"
        ) from error
    except _UNKNOWN as error:
        raise IdentityError(f"{where} does not accept this identity: {_first_line(error)}") from error
    except (iceberg.NoSuchTableError, iceberg.NoSuchNamespaceError, iceberg.NoSuchIdentifierError) as error:
        raise NoSuchResultError(f"{where} has no {what or 'such table'}: {_first_line(error)}") from error
    except _DOWN as error:
        raise CatalogUnreachableError(f"{where} does not answer: {_first_line(error)}") from error
    except OSError as error:
        raise CatalogUnreachableError(f"{where}: its storage fails: {_first_line(error)}") from error
    except (iceberg.ValidationError, pydantic.ValidationError) as error:
        raise JobFailedError(
            f"{where}: the metadata of {what or 'a table'} cannot be read: {invalid_part(error)}"
        ) from error
    except (iceberg.CommitFailedException, iceberg.ValidationException) as error:
        raise JobFailedError(
            f"{where}: others changed {what or 'the table'} at the same time, again and again: {_first_line(error)}"
        ) from error
    except iceberg.RESTError as error:
        raise JobFailedError(f"{where} refused {what or 'the request'}: {_first_line(error)}") from error


def _status(error: iceberg.RESTError) -> int | None:
    """The status of the answer that PyIceberg made this error of."""
    cause = error.__cause__
    answer = cause.response if isinstance(cause, requests.HTTPError) else None
    return None if answer is None else answer.status_code


def _first_line(error: BaseException) -> str:
    if isinstance(error, requests.RequestException | SQLAlchemyError):
        # Their texts hold addresses with parameters; the kind says enough.
        return type(error).__name__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def list_namespaces(
    catalog: Catalog,
    parent: tuple[str, ...] = (),
    *,
    on_error: Callable[[tuple[str, ...], Exception], None] | None = None,
) -> Iterator[tuple[str, ...]]:
    """Yield every namespace below one, parents first; one that is dropped meanwhile is left out.

    `on_error` gets a namespace whose children cannot be listed, and why. Without it, and for the root, that is raised.
    """
    try:
        found = catalog.list_namespaces(parent)
    except NoSuchNamespaceError:
        return
    except Exception as error:
        if on_error is None or not parent:
            raise
        on_error(parent, error)
        return
    for one in found:
        # A catalog in a database answers with every level below, a service with the next one.
        if len(one) == len(parent) + 1:
            yield tuple(one)
            yield from list_namespaces(catalog, tuple(one), on_error=on_error)
