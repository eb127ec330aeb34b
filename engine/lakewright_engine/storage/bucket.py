"""An S3 bucket as storage of a backend, in the layout of the Pulumi CLI."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from lakewright_engine.model.errors import StateConflictError
from lakewright_engine.storage.interface import ABSENT, ObjectEntry, StoredObject
from lakewright_engine.storage.s3_client import require_boto3, s3_client
from lakewright_engine.storage.s3_errors import explain_errors, find_error_code
from lakewright_engine.storage.s3_location import BucketLocation

_MISSING = ("NoSuchKey", "404", "NotFound")
_CONFLICTS = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
_NO_CONDITIONS = ("NotImplemented", "501")


class BucketStorage:
    """The objects below `.pulumi` in a bucket or a prefix of it. Requests are retried as AWS_MAX_ATTEMPTS says."""

    def __init__(self, url: str) -> None:
        """Use the bucket of an `s3://` URL.

        Raises:
            StateError: The URL is invalid.
            UnsupportedFeatureError: boto3 is not installed.
        """
        require_boto3(url)
        self._url = url
        self._location = BucketLocation.parse(url)
        self._root = f"{self._location.prefix}.pulumi/"
        self._has_conditions = True
        """Whether the store implements conditional writes, until it says otherwise."""

    @property
    def url(self) -> str:
        """The URL for the Pulumi CLI."""
        return self._url

    def describe(self, key: str = "") -> str:
        """Return the URL of an object."""
        return f"s3://{self._location.bucket}/{self._root}{key}"

    def read(self, key: str) -> StoredObject | None:
        """Return an object and its ETag; None if it does not exist."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

        with explain_errors(self._location, "s3:GetObject", self.describe(key)):
            try:
                response: dict[str, Any] = self._client.get_object(**self._place(key))
            except ClientError as error:
                if find_error_code(error) in _MISSING:
                    return None
                raise
            return StoredObject(response["Body"].read(), response["ETag"])

    def write(self, key: str, content: bytes, expected: str | None = None) -> str | None:
        """Write an object if it has the expected ETag. Return its new ETag."""
        from botocore.exceptions import ClientError  # noqa: PLC0415

        with explain_errors(self._location, "s3:PutObject", self.describe(key)):
            try:
                return self._put_object(key, content, expected)
            except ClientError as error:
                is_lost = find_error_code(error) in _CONFLICTS
                if not is_lost and not (expected and find_error_code(error) in _MISSING):
                    raise
        # A retried request finds its own object if the first response was lost.
        stored = self.read(key)
        if stored is not None and stored.content == content:
            return stored.version
        raise StateConflictError(f"another process wrote or removed {self.describe(key)}")

    def keep_copy(self, key: str, copy: str) -> None:
        """Copy an object."""
        with explain_errors(self._location, "s3:PutObject", self.describe(copy)):
            source = {"Bucket": self._location.bucket, "Key": f"{self._root}{key}"}
            self._client.copy_object(**self._place(copy), **self._encryption, CopySource=source)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, if they exist."""
        for key in keys:
            with explain_errors(self._location, "s3:DeleteObject", self.describe(key)):
                self._client.delete_object(**self._place(key))

    def delete_folder(self, folder: str) -> None:
        """Delete all objects whose keys start with `folder/`."""
        self.delete([entry.key for entry in self.list_folder(folder)])

    def entries(self, keys: Iterable[str]) -> Mapping[str, ObjectEntry]:
        """Return the entries of existing keys. All keys start with the first key."""
        requested_keys = [*keys]
        existing_entries = {
            entry.key: entry for page in self._pages(requested_keys[0], "/") for entry in self._entries(page)
        }
        return {key: existing_entries[key] for key in requested_keys if key in existing_entries}

    def list_folder(self, folder: str) -> list[ObjectEntry]:
        """Return all objects whose keys start with `folder/`, sorted by key."""
        return [entry for page in self._pages(f"{folder}/") for entry in self._entries(page)]

    def list_with_ages(self, folder: str) -> list[tuple[str, float]]:
        """Return keys and seconds since the last write, by the clock of the store."""
        return [
            (entry.key, _moment(page).timestamp() - entry.modified)
            for page in self._pages(f"{folder}/")
            for entry in self._entries(page)
        ]

    def prepare(self) -> None:
        """Do nothing: the bucket's policy decides about access."""

    def remove_leftovers(self, folder: str, names: str) -> None:
        """Do nothing: S3 has no incomplete writes."""

    def _put_object(self, key: str, content: bytes, expected: str | None) -> str | None:
        from botocore.exceptions import ClientError  # noqa: PLC0415

        request = {**self._place(key), **self._encryption, "Body": content}
        if expected is None:
            return self._client.put_object(**request)["ETag"]
        if self._has_conditions:
            condition = {"IfNoneMatch": "*"} if expected == ABSENT else {"IfMatch": expected}
            try:
                return self._client.put_object(**request, **condition)["ETag"]
            except ClientError as error:
                if find_error_code(error) not in _NO_CONDITIONS:
                    raise
                self._has_conditions = False
        entry = self.entries([key]).get(key)
        if (entry.version if entry is not None else ABSENT) != expected:
            raise StateConflictError(f"another process wrote or removed {self.describe(key)}")
        return self._client.put_object(**request)["ETag"]

    def _pages(self, prefix: str, delimiter: str = "") -> Iterator[dict[str, Any]]:
        # The prefix of a key may not be the directory: `Delimiter` leaves out the keys below it.
        request = {"Bucket": self._location.bucket, "Prefix": f"{self._root}{prefix}"}
        if delimiter:
            request["Delimiter"] = delimiter
        with explain_errors(self._location, "s3:ListBucket", self.describe(prefix)):
            for page in self._client.get_paginator("list_objects_v2").paginate(**request):
                yield cast("dict[str, Any]", page)

    def _entries(self, page: dict[str, Any]) -> Iterator[ObjectEntry]:
        for item in page.get("Contents", ()):
            key = str(item["Key"]).removeprefix(self._root)
            yield ObjectEntry(key, item["LastModified"].timestamp(), item["ETag"])

    def _place(self, key: str) -> dict[str, str]:
        return {"Bucket": self._location.bucket, "Key": f"{self._root}{key}"}

    @property
    def _encryption(self) -> dict[str, str]:
        parameters = {"ServerSideEncryption": self._location.encryption, "SSEKMSKeyId": self._location.kms_key}
        return {name: value for name, value in parameters.items() if value}

    @property
    def _client(self) -> Any:
        return s3_client(self._location, self.describe())


def _moment(page: dict[str, Any]) -> datetime:
    """Return the time of a response by the clock of the store."""
    date = page["ResponseMetadata"]["HTTPHeaders"].get("date")
    return parsedate_to_datetime(date) if date else datetime.now().astimezone()
