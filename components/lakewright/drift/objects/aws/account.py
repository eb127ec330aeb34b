"""An AWS account as an `aws` provider reaches it: boto3 clients by service and region."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from lakewright_engine.model.properties import plaintext

from lakewright.credentials.aws_session import open_aws_session
from lakewright.drift.session import ScanSession, StackResource
from lakewright.errors import LakewrightError
from lakewright.lakekeeper.api.connection.list_cache import SharedAnswers
from lakewright.validation.documents import as_list, as_mapping

SETTINGS = frozenset(
    {
        "accessKey",
        "endpoints",
        "profile",
        "region",
        "s3UsePathStyle",
        "secretKey",
        "sharedCredentialsFiles",
        "skipCredentialsValidation",
        "skipMetadataApiCheck",
        "skipRegionValidation",
        "skipRequestingAccountId",
        "token",
        "version",
    }
)
"""Settings of a provider that are followed here. Only the provider itself knows the effect of other settings."""

_REFUSED = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
"""Error codes that concern the credentials, not the single object."""


class AccountUnreachableError(LakewrightError):
    """A service of the account does not respond, or its credentials cannot be used. The message has one line."""


class ReadRefusedError(LakewrightError):
    """AWS refused to read one object or list; `code` is its error code."""

    def __init__(self, code: str) -> None:
        """Set the error code."""
        super().__init__(code)
        self.code = code


class AwsAccountReader:
    """Clients of an account. Thread-safe."""

    def __init__(self, settings: Mapping[str, Any], connections: int) -> None:
        """Open a session.

        Args:
            settings: The inputs of the provider, without secret marks.
            connections: The number of concurrent connections to each service.

        Raises:
            AccountUnreachableError: The settings name no usable credentials.
        """
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - slow to load

        self._settings, self._connections = settings, connections
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}
        self._lists = SharedAnswers(max_age=math.inf)
        try:
            self._session = self._open()
        except BotoCoreError as error:
            raise AccountUnreachableError(f"the credentials cannot be used: {error}") from None

    def _open(self) -> Any:
        import boto3  # noqa: PLC0415 - slow to load

        text = self._settings.get
        if text("accessKey"):
            return cast(Any, boto3).Session(text("accessKey"), text("secretKey"), text("token") or None)
        files = as_list(_parse_setting(text("sharedCredentialsFiles")))
        return open_aws_session(text("profile") or None, None, files[-1] if files else None)

    @property
    def region(self) -> str:
        """The region of the provider."""
        environ = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        return str(self._settings.get("region") or environ or "us-east-1")

    def client(self, service: str, region: str = "") -> Any:
        """Return the client of a service, in the provider's region or in another region."""
        from botocore.config import Config  # noqa: PLC0415

        client_key = service, region or self.region
        with self._lock:
            if client_key not in self._clients:
                path_style = str(self._settings.get("s3UsePathStyle")).lower() == "true"
                config = Config(
                    connect_timeout=5,
                    read_timeout=30,
                    max_pool_connections=self._connections,
                    retries={"mode": "standard", "total_max_attempts": 3},
                    s3={"addressing_style": "path"} if path_style else {},
                )
                self._clients[client_key] = self._session.client(
                    service, region_name=client_key[1], endpoint_url=self._endpoint(service), config=config
                )
            return self._clients[client_key]

    def list_role_details(self) -> list[Mapping[str, Any]]:
        """Return all roles of the account with their policies, from one list for all readers of a run.

        Raises:
            AccountUnreachableError: IAM does not respond.
            ReadRefusedError: IAM refuses the list.
        """
        return self._lists.get_cached("role details", self._read_role_details)

    def _read_role_details(self) -> list[Mapping[str, Any]]:
        with explain_errors("IAM"):
            pages = self.client("iam").get_paginator("get_account_authorization_details").paginate(Filter=["Role"])
            return [as_mapping(role) for page in pages for role in as_list(page.get("RoleDetailList"))]

    def _endpoint(self, service: str) -> str | None:
        entries = map(as_mapping, as_list(_parse_setting(self._settings.get("endpoints"))))
        return next((entry[service] for entry in entries if entry.get(service)), None)


def open_account(settings: Mapping[str, Any], session: ScanSession) -> AwsAccountReader:
    """Return the clients of an account, opened once in a run.

    Raises:
        AccountUnreachableError: The settings name no usable credentials.
    """
    key = ("aws", account_key(settings), settings.get("region"))
    return session.shared.get_cached(key, lambda: AwsAccountReader(settings, session.parallel))


def account_key(settings: Mapping[str, Any]) -> str:
    """Return a text that is equal for providers of the same account and credentials, whatever their region."""
    return json.dumps({key: settings.get(key) for key in sorted(SETTINGS - {"region", "version"})}, default=repr)


def find_region(resource: StackResource) -> str:
    """Return the region of an object by its state, else by its provider; empty for the default of the environment."""
    holders = (resource.state.inputs, resource.state.outputs, resource.provider.inputs if resource.provider else {})
    regions = (plaintext(holder.get("region")) for holder in holders)
    return next((region for region in regions if isinstance(region, str) and region), "")


@contextmanager
def explain_errors(service: str) -> Generator[None]:
    """Raise botocore's errors as AccountUnreachableError or ReadRefusedError.

    Args:
        service: The service, such as "S3".
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        yield
    except ClientError as error:
        code = str(as_mapping(cast(Any, error).response.get("Error")).get("Code"))
        if code in _REFUSED:
            raise AccountUnreachableError(f"{service} refused the credentials: {code}") from None
        raise ReadRefusedError(code) from None
    except BotoCoreError as error:
        raise AccountUnreachableError(f"{service} does not respond: {' '.join(str(error).split())}") from None


def _parse_setting(value: object) -> object:
    """Return a structured setting, which the SDK stores as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None
