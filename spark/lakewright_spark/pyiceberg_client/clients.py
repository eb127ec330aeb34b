"""PyIceberg's catalogs with what its own lack: time-outs of requests, and locations of one table each."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter

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
