"""botocore and boto3, which have no types. No other module imports them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

import botocore.configloader  # pyright: ignore[reportMissingTypeStubs]
import botocore.loaders  # pyright: ignore[reportMissingTypeStubs]
import botocore.session  # pyright: ignore[reportMissingTypeStubs]
from botocore import UNSIGNED  # pyright: ignore[reportMissingTypeStubs]
from botocore.auth import S3SigV4Auth  # pyright: ignore[reportMissingTypeStubs]
from botocore.awsrequest import AWSRequest  # pyright: ignore[reportMissingTypeStubs]
from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]
from botocore.credentials import Credentials  # pyright: ignore[reportMissingTypeStubs]
from botocore.exceptions import (  # pyright: ignore[reportMissingTypeStubs]
    BotoCoreError,
    ClientError,
    ConfigNotFound,
    ConfigParseError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
    ProfileNotFound,
)
from botocore.exceptions import ConnectionError as BotoConnectionError  # pyright: ignore[reportMissingTypeStubs]
from botocore.parsers import ResponseParserError  # pyright: ignore[reportMissingTypeStubs]

if TYPE_CHECKING:
    import boto3  # pyright: ignore[reportMissingTypeStubs]

__all__ = [
    "UNSIGNED",
    "AWSRequest",
    "BotoConnectionError",
    "BotoCoreError",
    "ClientError",
    "Config",
    "ConfigNotFound",
    "ConfigParseError",
    "Credentials",
    "HTTPClientError",
    "NoCredentialsError",
    "ParamValidationError",
    "ProfileNotFound",
    "ResponseParserError",
    "S3SigV4Auth",
    "boto3_session",
    "botocore_session",
    "create_client",
    "error_code",
    "error_detail",
    "load_service_models",
    "read_credentials_file",
]


def botocore_session(profile: str | None = None) -> Any:
    """Return a session of botocore, which shares the descriptions of AWS services with the other sessions."""
    session: Any = botocore.session.Session(profile=profile)
    session.register_component("data_loader", _get_loader(session.get_config_variable("data_path")))
    return session


@cache
def _get_loader(data_path: str | None) -> Any:
    """Return the loader of service descriptions. Each session would load them again, for 40 ms per service."""
    return cast("Any", botocore.loaders).create_loader(data_path)


def load_service_models(*services: str) -> None:
    """Load what clients of these services read, for all sessions without a data path of their own."""
    loader = _get_loader(None)
    for service in services:
        loader.list_available_services("service-2")
        loader.load_service_model(service, "service-2")
        loader.load_service_model(service, "endpoint-rule-set-1")
    for document in ("_retry", "endpoints", "partitions", "sdk-default-configuration"):
        loader.load_data_with_path(document)
        loader.load_data(document)


def boto3_session(*keys: str | None, profile: str | None = None) -> boto3.Session:
    """Return a session of boto3 with access key id, secret access key and session token, or with a profile."""
    import boto3  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - slow to load

    base = botocore_session(profile)
    session = boto3.Session(*keys, botocore_session=base)
    paths = base.get_component("data_loader").search_paths
    paths[:] = dict.fromkeys(paths)  # each session of boto3 adds its own folder
    return session


def create_client(session: Any, service: str, **options: Any) -> Any:
    """Return a client of a boto3 session."""
    return session.client(service, **options)


def error_detail(error: ClientError) -> dict[str, Any]:
    """Return code and message of an AWS error as its response has them."""
    return cast("dict[str, Any]", cast("Any", error).response.get("Error", {}))


def error_code(error: ClientError) -> str:
    """Return AWS's error code; for a HEAD request, which has no body, the HTTP status."""
    return str(error_detail(error).get("Code", "Unknown"))


def read_credentials_file(file: str) -> dict[str, dict[str, str]]:
    """Return the sections of a shared-credentials file.

    Raises:
        ConfigNotFound: There is no such file.
        ConfigParseError: The file has another format.
    """
    return cast("Any", botocore.configloader).raw_config_parse(file)
