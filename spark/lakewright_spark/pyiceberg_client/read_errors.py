"""Reasons why a single table or namespace cannot be read while its catalog works for others."""

from __future__ import annotations

import pydantic
import requests
from pyiceberg import exceptions as iceberg
from pyiceberg.catalog import Catalog
from sqlalchemy.exc import SQLAlchemyError

from lakewright_spark.errors import LakewrightSparkError

ALL_TABLES = "*"
"""Stands for the table name where a namespace cannot be listed."""

_IDENTITY = (iceberg.UnauthorizedError, iceberg.AuthorizationExpiredError, iceberg.OAuthError)
_TRANSPORT = (requests.RequestException, SQLAlchemyError)
_SERVER = (*_TRANSPORT, iceberg.ServerError, iceberg.ServiceUnavailableError, iceberg.TooManyRequestsError, OSError)


def reason_unreadable(catalog: Catalog, error: Exception) -> str:
    """Return why one table or namespace cannot be read.

    Args:
        catalog: Its namespaces are listed if the whole catalog may be the cause of the error.
        error: Error of reading the table or the namespace.

    Raises:
        Exception: The error itself, if the catalog rejects this identity or does not respond at all.
    """
    if isinstance(error, _IDENTITY):
        raise error
    if isinstance(error, _SERVER):
        _check_answers(catalog, error)
    return describe_error(error)


def describe_error(error: Exception) -> str:
    """Return why a table cannot be read or changed, in one line without secrets."""
    if isinstance(error, FileNotFoundError):
        return f"a file is missing: {_first_line(error)}"
    if isinstance(error, iceberg.ForbiddenError):
        return f"this identity may not read it: {_first_line(error)}"
    if isinstance(error, iceberg.ValidationError | pydantic.ValidationError):
        return f"its metadata cannot be read: {invalid_part(error)}"
    if isinstance(error, LakewrightSparkError):
        return _first_line(error)
    if isinstance(error, _TRANSPORT):
        return f"the catalog did not respond: {type(error).__name__}"  # their texts contain addresses with parameters
    return f"{type(error).__name__}: {_first_line(error)}"


def is_damage(error: Exception) -> bool:
    """Return whether reading the table fails whenever it is tried: a file is missing or malformed."""
    return isinstance(
        error, FileNotFoundError | iceberg.ValidationError | ValueError | LookupError | TypeError | EOFError
    )


def invalid_part(error: Exception) -> str:
    """Return the first thing that does not fit a document's form, and where, without the document's own text."""
    validation_error = error if isinstance(error, pydantic.ValidationError) else error.__cause__
    if not isinstance(validation_error, pydantic.ValidationError):
        return _first_line(error)
    first = validation_error.errors(include_url=False, include_input=False)[0]
    field_path = ".".join(str(step) for step in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{message} at {field_path}" if field_path else message


def _check_answers(catalog: Catalog, error: Exception) -> None:
    try:
        catalog.list_namespaces()
    except Exception:  # noqa: BLE001  # the first error is the reason
        raise error from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
