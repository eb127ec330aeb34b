"""Reading and writing objects on a warehouse's storage, and the identities that do it."""

from __future__ import annotations

import configparser
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from ..protocol.errors import ApiError
from ..protocol.settings import Settings
from .s3_profile import S3Credential, S3ProfileBody

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
# Short, because the sandbox's AWS forgets its sessions when it is restarted, and says so to nobody.
SESSION_REUSE_SECONDS = 15
MAX_CLIENTS = 256


class StorageError(ApiError):
    """S3 refused or could not be reached, with the kind of failure as type; 400 within a validation, else by kind."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__({"NotFound": 400, "Unexpected": 500}.get(kind, 412), kind, message)


class RoleRefusedError(ApiError):
    """STS gave no session of a role."""


class NoKeysError(BotoCoreError):
    """A request is not sent, since there is no identity to sign it with."""

    fmt = "no credentials"


class _ClientWithoutKeys:
    """Fail at each operation, as the server's client does whose role is asked for at its first request."""

    def __getattr__(self, operation: str) -> Any:
        def fail(*_: Any, **__: Any) -> Any:
            raise NoKeysError

        return fail


@dataclass(frozen=True)
class Keys:
    """An AWS identity; `token` makes it a session. `expires_at` is in seconds since the epoch."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None


@dataclass(frozen=True)
class WarehouseStorage:
    """What a warehouse stores on: its profile and the credential given for it."""

    profile: S3ProfileBody
    credential: S3Credential | None


class StorageAccess:
    """S3 and STS clients, kept for as long as their identity holds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session = botocore.session.Session()
        self._lock = threading.Lock()
        self._clients: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._assumed: dict[tuple[Any, ...], tuple[float, Keys]] = {}

    def s3_endpoint(self, profile: S3ProfileBody) -> str | None:
        return profile.endpoint or self._settings.aws_endpoint

    def base_keys(self, storage: WarehouseStorage) -> Keys | None:
        """The credential itself, before any role; None is anonymous."""
        credential = storage.credential
        if credential is None:
            return None
        if credential.credential_type == "aws-system-identity":
            self._check_system_identity(storage)
            return self._system_keys()
        return Keys(credential.access_key_id or "", credential.secret_access_key or "", credential.token)

    def own_keys(self, storage: WarehouseStorage) -> Keys | None:
        """The identity of the server's own reads and writes: the base, or the role it assumes."""
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
        """Raises 412 `ShortTermCredentialError` where STS refuses."""
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
            answer = client.assume_role(**parameters)["Credentials"]
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            message = f"Failed to create short-term credential: Failed to assume role via STS: {_said(error)}"
            raise RoleRefusedError(412, "ShortTermCredentialError", message) from None
        return Keys(
            answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"], answer["Expiration"].timestamp()
        )

    def objects(self, storage: WarehouseStorage, keys: Keys | None = None, *, vended: bool = False) -> ObjectStore:
        """The warehouse's objects with the server's own identity, or with the vended `keys`."""
        profile = storage.profile
        if not vended:
            try:
                keys = self.own_keys(storage)
            except RoleRefusedError:
                return ObjectStore(_ClientWithoutKeys())
        endpoint = self.s3_endpoint(profile)
        path = profile.path_style_access or profile.endpoint is None
        addressing = "path" if path and endpoint else "auto"
        return ObjectStore(self._client("s3", endpoint, profile.region, keys, addressing=addressing, kept=not vended))

    def _client(
        self,
        service: str,
        endpoint: str | None,
        region: str,
        keys: Keys | None,
        *,
        addressing: str,
        kept: bool = True,
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
            if kept:
                self._clients[name] = client
                while len(self._clients) > MAX_CLIENTS:
                    self._clients.popitem(last=False)
        return client

    def _check_system_identity(self, storage: WarehouseStorage) -> None:
        settings, profile, credential = self._settings, storage.profile, storage.credential
        if not settings.aws_system_identity:
            reason = "System identity credentials are disabled in this Lakekeeper deployment."
        elif not (profile.assume_role_arn or profile.sts_role_arn or settings.direct_system_identity):
            reason = "An `assume-role-arn` is required when using the system identity."
        elif profile.vending_role and settings.require_external_id and not (credential and credential.external_id):
            reason = "An `external-id` is required when using the system identity with a role."
        else:
            return
        raise ApiError(400, "Misconfiguration", f"Credentials misconfigured: {reason}")

    def _system_keys(self) -> Keys:
        file, profile = self._settings.credentials_file, self._settings.profile
        parser = configparser.RawConfigParser()
        if file is None or not parser.read(file) or not parser.has_section(profile):
            message = f"No profile `{profile}` in the credentials file {file}: the server has no identity of its own."
            raise ApiError(412, "InitializeClientError", message)
        section = parser[profile]
        return Keys(
            section["aws_access_key_id"], section["aws_secret_access_key"], section.get("aws_session_token") or None
        )


class ObjectStore:
    """Objects by their `s3://` URI. Raises `StorageError`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def write(self, uri: str, body: bytes) -> None:
        with _failing_as("write", uri):
            self._client.put_object(**_place(uri), Body=body)

    def read(self, uri: str) -> bytes:
        with _failing_as("read", uri):
            return self._client.get_object(**_place(uri))["Body"].read()

    def delete(self, uri: str) -> None:
        with _failing_as("delete", uri):
            self._client.delete_object(**_place(uri))

    def list(self, uri: str) -> Iterator[str]:
        """The URIs under a location, which is taken as a directory."""
        place = _place(uri.rstrip("/") + "/")
        with _failing_as("list", uri):
            for page in self._client.get_paginator("list_objects_v2").paginate(
                Bucket=place["Bucket"], Prefix=place["Key"]
            ):
                for entry in page.get("Contents", []):
                    yield f"s3://{place['Bucket']}/{entry['Key']}"

    def is_empty(self, uri: str) -> bool:
        place = _place(uri.rstrip("/") + "/")
        with _failing_as("list", uri):
            page = self._client.list_objects_v2(Bucket=place["Bucket"], Prefix=place["Key"], MaxKeys=1)
        return page.get("KeyCount", len(page.get("Contents", []))) == 0

    def delete_under(self, uri: str) -> int:
        """Deletes everything under a location, by thousands; returns how many objects."""
        uris = list(self.list(uri))
        for start in range(0, len(uris), 1000):
            places = [_place(one) for one in uris[start : start + 1000]]
            with _failing_as("delete", uri):
                answer = self._client.delete_objects(
                    Bucket=places[0]["Bucket"], Delete={"Objects": [{"Key": p["Key"]} for p in places], "Quiet": True}
                )
            for refused in answer.get("Errors", []):
                raise _failure("delete", f"{uri}/{refused.get('Key')}", refused.get("Code", ""), refused["Message"])
        return len(uris)


def _place(uri: str) -> dict[str, str]:
    bucket, _, key = uri.partition("://")[2].partition("/")
    return {"Bucket": bucket, "Key": key}


@contextmanager
def _failing_as(operation: str, uri: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        raise _failure(operation, uri, code, _said(error)) from None
    except BotoCoreError:  # the real server's client does not say why there was no answer
        message = f"IO error at `{uri}`: Unknown S3 error during {operation}: unhandled error"
        raise StorageError("Unexpected", message) from None
    except ResponseParserError as error:
        raise _failure(operation, uri, "", _said(error)) from None


def _failure(operation: str, uri: str, code: str, said: str) -> StorageError:
    return StorageError(IO_KINDS.get(code, "Unexpected"), f"IO error at `{uri}`: S3 {operation} failed: {said}")


def _said(error: ClientError | BotoCoreError | ResponseParserError) -> str:
    if isinstance(error, ClientError):
        detail = error.response.get("Error", {})
        return f"{detail.get('Message') or detail.get('Code')}"
    return str(error)
