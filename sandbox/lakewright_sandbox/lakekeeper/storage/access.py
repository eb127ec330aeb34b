"""Access to warehouses' objects, and the identities that are used for it on S3."""

from __future__ import annotations

import configparser
import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.storage.azure_storage import AzureStorage
from lakewright_sandbox.lakekeeper.storage.google_storage import GoogleStorage
from lakewright_sandbox.lakekeeper.storage.object_store import ObjectStore, StorageError
from lakewright_sandbox.lakekeeper.storage.s3_profile import S3Credential, S3ProfileBody
from lakewright_sandbox.typed.boto import (
    UNSIGNED,
    BotoCoreError,
    ClientError,
    Config,
    ResponseParserError,
    botocore_session,
    error_detail,
)

IO_KINDS = {
    "AccessDenied": "PermissionDenied",
    "403": "PermissionDenied",
    "NoSuchBucket": "NotFound",
    "NoSuchKey": "NotFound",
    "404": "NotFound",
    "ExpiredToken": "CredentialsExpired",
    "SlowDown": "RateLimited",
    "Throttling": "RateLimited",
    "RequestTimeout": "RequestTimeout",
    "PreconditionFailed": "ConditionNotMatch",
    "ServiceUnavailable": "ServiceUnavailable",
}
# Short, because the sandbox's AWS loses its sessions when it restarts.
SESSION_REUSE_SECONDS = 15
MAX_CLIENTS = 256


class RoleRefusedError(ApiError):
    """STS refused to assume a role."""


class NoKeysError(SandboxError, BotoCoreError):
    """There is no identity to sign a request with."""

    fmt = "no credentials"


class _ClientWithoutKeys:
    """A client whose operations all fail, as the server's does if its role is refused at the first request."""

    def __getattr__(self, operation: str) -> Any:
        def fail(*_: Any, **__: Any) -> Any:
            raise NoKeysError

        return fail


@dataclass(frozen=True)
class Keys:
    """An AWS identity, a session if it has a token. `expires_at` is in seconds since the epoch."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None


@dataclass(frozen=True)
class WarehouseStorage:
    """The storage of a warehouse: its profile and credential."""

    profile: S3ProfileBody
    credential: S3Credential | None

    @property
    def vends_credentials(self) -> bool:
        """Return whether clients may get keys of a session."""
        return self.profile.sts_enabled

    @property
    def signs_requests(self) -> bool:
        """Return whether the server signs requests of clients."""
        return self.profile.remote_signing_enabled


AnyStorage = WarehouseStorage | AzureStorage | GoogleStorage


class StorageAccess:
    """Clients of stores: S3 and STS, cached by identity, and HTTP for other stores."""

    def __init__(self, settings: Settings) -> None:
        """Start without clients."""
        self.settings = settings
        self._session = botocore_session()
        self._lock = threading.Lock()
        self._clients: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._assumed: dict[tuple[Any, ...], tuple[float, Keys]] = {}
        self.http = httpx.Client(timeout=20)

    def s3_endpoint(self, profile: S3ProfileBody) -> str | None:
        """Return the S3 endpoint of a profile, None for AWS itself."""
        return profile.endpoint or self.settings.aws_endpoint

    def base_keys(self, storage: WarehouseStorage) -> Keys | None:
        """Return the credential's own keys, before any role; None for anonymous access."""
        credential = storage.credential
        if credential is None:
            return None
        if credential.credential_type == "aws-system-identity":
            if not self.settings.aws_system_identity:
                raise _build_misconfiguration("System identity credentials are disabled in this Lakekeeper deployment.")
            return self._system_keys()
        return Keys(credential.access_key_id or "", credential.secret_access_key or "", credential.token)

    def find_vending_keys(self, storage: WarehouseStorage) -> Keys | None:
        """Return the keys that ask STS for vended credentials. Raises 400 `Misconfiguration`."""
        keys = self.base_keys(storage)
        self._check_vending(storage)
        return keys

    def own_keys(self, storage: WarehouseStorage) -> Keys | None:
        """Return the keys of the server's own reads and writes: the base keys, or keys of the assumed role."""
        base, role = self.base_keys(storage), storage.profile.assume_role_arn
        if role is None:
            return base
        external_id = storage.credential.external_id if storage.credential else None
        name = (base, storage.profile.model_dump_json(), external_id)
        until, keys = self._assumed.get(name, (0.0, None))
        if keys is None or until < time.monotonic():
            keys = self.assume_role(storage, base, role=role, session="lakekeeper-assume-role")
            self._assumed[name] = (time.monotonic() + SESSION_REUSE_SECONDS, keys)
        return keys

    def assume_role(
        self, storage: WarehouseStorage, base: Keys | None, *, role: str | None, session: str, policy: str | None = None
    ) -> Keys:
        """Return the keys of a session.

        Args:
            storage: The storage whose STS endpoint and tags to use.
            base: Keys that sign the call.
            role: ARN of the role.
            session: Name of the session.
            policy: Session policy.

        Raises:
            RoleRefusedError: 412 `ShortTermCredentialError`, because STS refused.
        """
        profile, credential = storage.profile, storage.credential
        parameters: dict[str, Any] = {"RoleSessionName": session}
        if policy is not None:
            parameters |= {"DurationSeconds": profile.sts_token_validity_seconds, "Policy": policy}
        if role:
            parameters["RoleArn"] = role
        if credential and credential.external_id:
            parameters["ExternalId"] = credential.external_id
        if profile.sts_session_tags:
            parameters["Tags"] = [{"Key": key, "Value": value} for key, value in profile.sts_session_tags.items()]
        endpoint = profile.sts_endpoint or self.s3_endpoint(profile)
        try:
            client = self._client("sts", endpoint, profile.region, base, addressing="auto")
            response = client.assume_role(**parameters)["Credentials"]
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            message = f"Failed to create short-term credential: Failed to assume role via STS: {_error_message(error)}"
            raise RoleRefusedError(412, "ShortTermCredentialError", message) from None
        return Keys(
            response["AccessKeyId"],
            response["SecretAccessKey"],
            response["SessionToken"],
            response["Expiration"].timestamp(),
        )

    def objects(self, storage: AnyStorage) -> ObjectStore:
        """Return the warehouse's objects for the server's own identity."""
        if isinstance(storage, WarehouseStorage):
            return self.s3_objects(storage)
        return storage.open_objects(self.http)

    def s3_objects(self, storage: WarehouseStorage, keys: Keys | None = None, *, vended: bool = False) -> S3Objects:
        """Return the objects on S3 for the server's own identity, or for the vended `keys`."""
        profile = storage.profile
        if not vended:
            try:
                keys = self.own_keys(storage)
            except RoleRefusedError:
                return S3Objects(_ClientWithoutKeys())
        endpoint = self.s3_endpoint(profile)
        path = profile.path_style_access or profile.endpoint is None
        addressing = "path" if path and endpoint else "auto"
        return S3Objects(
            self._client("s3", endpoint, profile.region, keys, addressing=addressing, keeps_client=not vended)
        )

    def _client(
        self,
        service: str,
        endpoint: str | None,
        region: str,
        keys: Keys | None,
        *,
        addressing: str,
        keeps_client: bool = True,
    ) -> Any:
        name = (service, endpoint, region, keys, addressing)
        with self._lock:
            if name in self._clients:
                self._clients.move_to_end(name)
                return self._clients[name]
            client = self._session.create_client(
                service,
                region_name=region,
                endpoint_url=endpoint,
                aws_access_key_id=keys.access_key_id if keys else None,
                aws_secret_access_key=keys.secret_access_key if keys else None,
                aws_session_token=keys.session_token if keys else None,
                config=Config(
                    signature_version=None if keys else UNSIGNED,
                    connect_timeout=5,
                    read_timeout=20,
                    retries={"total_max_attempts": 2, "mode": "standard"},
                    max_pool_connections=50,
                    parameter_validation=False,
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    s3={"addressing_style": addressing},
                ),
            )
            if keeps_client:
                self._clients[name] = client
                while len(self._clients) > MAX_CLIENTS:
                    self._clients.popitem(last=False)
        return client

    def _check_vending(self, storage: WarehouseStorage) -> None:
        """Refuse what the server checks before it asks STS for vended credentials, and nowhere else."""
        settings, profile, credential = self.settings, storage.profile, storage.credential
        if credential is None or credential.credential_type != "aws-system-identity":
            return
        if not (profile.vending_role or settings.direct_system_identity):
            reason = "An `assume-role-arn` is required when using the system identity."
        elif profile.vending_role and settings.require_external_id and not credential.external_id:
            reason = "An `external-id` is required when using the system identity with a role."
        else:
            return
        raise _build_misconfiguration(reason)

    def _system_keys(self) -> Keys:
        file, profile = self.settings.credentials_file, self.settings.profile
        parser = configparser.RawConfigParser()
        if file is None or not parser.read(file) or not parser.has_section(profile):
            message = f"No profile `{profile}` in the credentials file {file}: the server has no identity."
            raise ApiError(412, "InitializeClientError", message)
        section = parser[profile]
        return Keys(
            section["aws_access_key_id"], section["aws_secret_access_key"], section.get("aws_session_token") or None
        )


def _build_misconfiguration(reason: str) -> ApiError:
    return ApiError(400, "Misconfiguration", f"Credentials misconfigured: {reason}")


class S3Objects:
    """Objects by their `s3://` URI. Raises `StorageError`."""

    def __init__(self, client: Any) -> None:
        """Use an S3 client."""
        self._client = client

    def write(self, uri: str, body: bytes) -> None:
        """Write an object."""
        with _as_storage_errors("write", uri):
            self._client.put_object(**_split_uri(uri), Body=body)

    def read(self, uri: str) -> bytes:
        """Return the content of an object."""
        with _as_storage_errors("read", uri):
            return self._client.get_object(**_split_uri(uri))["Body"].read()

    def delete(self, uri: str) -> None:
        """Delete an object."""
        with _as_storage_errors("delete", uri):
            self._client.delete_object(**_split_uri(uri))

    def list(self, uri: str) -> Iterator[str]:
        """Yield the URIs under a location, which is taken as a directory."""
        location = _split_uri(uri.rstrip("/") + "/")
        with _as_storage_errors("list", uri):
            for page in self._client.get_paginator("list_objects_v2").paginate(
                Bucket=location["Bucket"], Prefix=location["Key"]
            ):
                for entry in page.get("Contents", []):
                    yield f"s3://{location['Bucket']}/{entry['Key']}"

    def is_empty(self, uri: str) -> bool:
        """Return whether there is no object under a location."""
        location = _split_uri(uri.rstrip("/") + "/")
        with _as_storage_errors("list", uri):
            page = self._client.list_objects_v2(Bucket=location["Bucket"], Prefix=location["Key"], MaxKeys=1)
        return page.get("KeyCount", len(page.get("Contents", []))) == 0

    def delete_under(self, uri: str) -> int:
        """Delete all objects under a location, a thousand at a time. Return their number."""
        uris = list(self.list(uri))
        for start in range(0, len(uris), 1000):
            places = [_split_uri(object_uri) for object_uri in uris[start : start + 1000]]
            with _as_storage_errors("delete", uri):
                response = self._client.delete_objects(
                    Bucket=places[0]["Bucket"], Delete={"Objects": [{"Key": p["Key"]} for p in places], "Quiet": True}
                )
            for refused in response.get("Errors", []):
                raise _failure("delete", f"{uri}/{refused.get('Key')}", refused.get("Code", ""), refused["Message"])
        return len(uris)


def _split_uri(uri: str) -> dict[str, str]:
    bucket, _, key = uri.partition("://")[2].partition("/")
    return {"Bucket": bucket, "Key": key}


@contextmanager
def _as_storage_errors(operation: str, uri: str) -> Generator[None, None, None]:
    try:
        yield
    except ClientError as error:
        code = str(error_detail(error).get("Code", ""))
        raise _failure(operation, uri, code, _error_message(error)) from None
    except BotoCoreError:  # the real server's client gives no reason for a missing response
        message = f"IO error at `{uri}`: Unknown S3 error during {operation}: unhandled error"
        raise StorageError("Unexpected", message) from None
    except ResponseParserError as error:
        raise _failure(operation, uri, "", _error_message(error)) from None


def _failure(operation: str, uri: str, code: str, message: str) -> StorageError:
    return StorageError(IO_KINDS.get(code, "Unexpected"), f"IO error at `{uri}`: S3 {operation} failed: {message}")


def _error_message(error: ClientError | BotoCoreError | ResponseParserError) -> str:
    if isinstance(error, ClientError):
        detail = error_detail(error)
        return f"{detail.get('Message') or detail.get('Code')}"
    return str(error)
