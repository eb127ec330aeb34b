"""Contents of a bucket of the stack. They are checked before a deletion, as AWS deletes only empty buckets."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, cast

from pydantic import PrivateAttr

from lakewright.credentials import references as credentials
from lakewright.credentials.aws_session import open_aws_session, write_certificate_file
from lakewright.credentials.references import Reference
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.provider.errors import BucketTagsDeniedError, CannotCountError
from lakewright.lakekeeper.provider.inputs import Declared

MAX_LISTED_KEYS = 3
"""Maximum of keys in a message."""
MAX_COUNTED_OBJECTS = 1000
"""Maximum of objects and versions counted for a message."""
_FORBIDDEN = frozenset({"403", "AccessDenied"})
NO_BUCKET = frozenset({"404", "NoSuchBucket"})
_PROBE = re.compile(r"(?:.*/)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:/vended-test)?/metadata/test")
"""Key of the object that Lakekeeper writes, reads and deletes when it validates a storage profile (0.11 to 0.14)."""
_PROBE_BYTES = 64
"""A probe has 26 bytes; a larger object of the same key is not a probe."""


@dataclass(frozen=True)
class ObjectVersion:
    """A version of an object, or a delete marker."""

    key: str
    version: str
    is_current: bool = False
    is_marker: bool = False
    size: int = 0
    """Bytes of the version."""

    @property
    def is_deleted_probe(self) -> bool:
        """Whether this is a noncurrent version or marker of an object with which Lakekeeper validated a profile."""
        return (
            not (self.is_current and not self.is_marker)
            and self.size <= _PROBE_BYTES
            and bool(_PROBE.fullmatch(self.key))
        )


Resolve = Callable[[str], str]
"""Returns the secret of a reference. Raises UnresolvedCredentialError."""


class OwnBucket(Declared):
    """A bucket that the stack created, and the identity that may read it. It contains no secret."""

    bucket: str
    """Name of the bucket."""
    region: str
    """Region of the bucket."""
    endpoint: str | None = None
    """Endpoint of an S3-compatible store, or of a sandbox in place of AWS."""
    path_style: bool | None = None
    """Whether the bucket's name is in the path of URLs. Default: if there is an endpoint."""
    access_key_id: Reference | None = None
    """Reference to the id of an access key of the store. Without it, the AWS identity is used."""
    secret_access_key: Reference | None = None
    """Reference to the secret of that key."""
    ca_certificates: str | None = None
    """Certificate authorities of the store, in PEM."""
    profile: str | None = None
    """AWS profile to read the bucket with."""
    shared_credentials_file: str | None = None
    """Shared credentials file that contains the profile."""

    _resolve: Resolve | None = PrivateAttr(default=None)

    def with_resolver(self, resolve: Resolve) -> Self:
        """Return the same bucket, whose references a provider resolves."""
        bucket = self.model_copy()
        bucket._resolve = resolve
        return bucket

    @property
    def is_in_store(self) -> bool:
        """Whether the bucket is in an S3-compatible store, which has no KMS keys of the stack."""
        return self.access_key_id is not None

    @property
    def keys(self) -> dict[str, str]:
        """The access key of the store, in boto3's words; empty without a key. Raises UnresolvedCredentialError."""
        if self.access_key_id is None or self.secret_access_key is None:
            return {}
        resolve = self._resolve or credentials.resolve
        return {
            "aws_access_key_id": resolve(self.access_key_id),
            "aws_secret_access_key": resolve(self.secret_access_key),
        }

    @property
    def where(self) -> str:
        """Name and place of the bucket, for messages."""
        return f"bucket `{self.bucket}` at {self.endpoint or f'AWS in {self.region}'}"


def describe_contents(bucket: OwnBucket, besides: Sequence[str] = (), within: str | None = None) -> str | None:
    """Describe the contents of a bucket outside some key prefixes.

    Deleted validation objects of Lakekeeper do not count: every warehouse leaves them in a versioned bucket.

    Args:
        bucket: The bucket.
        besides: Key prefixes, without slashes at their ends, whose objects do not count.
        within: Key prefix to check, without slashes at its ends; the whole bucket if left out.

    Returns:
        `2 objects and 5 old versions: KEY, ...`; None if there is nothing, or no such bucket.

    Raises:
        CannotCountError: The bucket cannot be listed.
    """
    with raise_uncounted(bucket):
        client = open_client(bucket)
        versions: list[ObjectVersion] = []
        for entry in entries_outside(
            client, bucket.bucket, f"{within}/" if within else "", [f"{prefix}/" for prefix in besides]
        ):
            if entry.is_deleted_probe:
                continue
            versions.append(entry)
            if len(versions) > MAX_COUNTED_OBJECTS:
                break
    return _describe(versions[:MAX_COUNTED_OBJECTS], more=len(versions) > MAX_COUNTED_OBJECTS) if versions else None


def exists(bucket: OwnBucket) -> bool:
    """Return whether the bucket exists and the identity may read it. Raises CannotCountError."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    with raise_uncounted(bucket):
        try:
            open_client(bucket).head_bucket(Bucket=bucket.bucket)
        except ClientError as error:
            if read_code(error) in {*NO_BUCKET, *_FORBIDDEN}:
                return False
            raise
    return True


def tags(bucket: OwnBucket) -> dict[str, str]:
    """Return the tags of a bucket; none if it does not exist.

    Raises:
        BucketTagsDeniedError: The identity may not read them, or the bucket belongs to another account.
        CannotCountError: S3 refused the call for another reason.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    with raise_uncounted(bucket):
        try:
            tag_set = open_client(bucket).get_bucket_tagging(Bucket=bucket.bucket)["TagSet"]
        except ClientError as error:
            if read_code(error) in {*NO_BUCKET, "NoSuchTagSet"}:
                return {}
            if read_code(error) in _FORBIDDEN:
                raise BucketTagsDeniedError(
                    f"the owner of {bucket.where} is not known: S3 responded {read_code(error)} to the request"
                    " for its tags."
                    " Allow `s3:GetBucketTagging` to the stack's identity."
                ) from None
            raise
    return {str(tag["Key"]): str(tag["Value"]) for tag in tag_set}


def entries_outside(client: Any, bucket: str, prefix: str, besides: Sequence[str]) -> Iterator[ObjectVersion]:
    """Yield the versions and delete markers under a key prefix, except keys under some prefixes within it.

    Args:
        client: A client of S3.
        bucket: Name of the bucket.
        prefix: Key prefix with a slash at its end; empty for the whole bucket.
        besides: Key prefixes, with slashes at their ends. They are not listed.
    """
    if not any(other.startswith(prefix) for other in besides):
        yield from entries(client, bucket, prefix)
        return
    for page in _pages(client, bucket, prefix, "/"):
        yield from _parse_page(page)
        for folder in page.get("CommonPrefixes", []):
            if folder["Prefix"] not in besides:
                yield from entries_outside(client, bucket, folder["Prefix"], besides)


def entries(client: Any, bucket: str, prefix: str) -> Iterator[ObjectVersion]:
    """Yield the versions and delete markers under a key prefix; none if the bucket does not exist."""
    for page in _pages(client, bucket, prefix):
        yield from _parse_page(page)


def _pages(client: Any, bucket: str, prefix: str, delimiter: str | None = None) -> Iterator[dict[str, Any]]:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    cut = {"Delimiter": delimiter} if delimiter else {}
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix, **cut)
    try:
        yield from pages
    except ClientError as error:
        if read_code(error) not in NO_BUCKET:
            raise


def _parse_page(page: dict[str, Any]) -> Iterator[ObjectVersion]:
    for version in page.get("Versions", []):
        yield ObjectVersion(
            version["Key"], version["VersionId"], is_current=bool(version["IsLatest"]), size=int(version["Size"])
        )
    for marker in page.get("DeleteMarkers", []):
        yield ObjectVersion(marker["Key"], marker["VersionId"], is_marker=True)


@contextmanager
def raise_uncounted(bucket: OwnBucket) -> Generator[None]:
    """Raise CannotCountError if S3 does not let the block read the bucket."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        yield
    except ClientError as error:
        raise CannotCountError(
            f"what {bucket.where} holds cannot be listed: S3 responded {read_code(error)}. Let the stack's"
            " identity list its"
            " versions."
        ) from None
    except (BotoCoreError, credentials.UnresolvedCredentialError) as error:
        raise CannotCountError(f"what {bucket.where} holds cannot be listed: {' '.join(str(error).split())}") from None


def read_code(error: Exception) -> str:
    """Return the code of a botocore ClientError."""
    return str(cast(Any, error).response["Error"]["Code"])


def _describe(versions: list[ObjectVersion], *, more: bool) -> str:
    current = [entry for entry in versions if entry.is_current]
    counts = [
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((len(current), "object"), (len(versions) - len(current), "old version"))
        if count
    ]
    # Current objects matter most, so they are named first.
    names = list(dict.fromkeys(entry.key for entry in [*current, *versions]))
    ending = " and more" if more or len(names) > MAX_LISTED_KEYS else ""
    return f"{'at least ' if more else ''}{' and '.join(counts)} ({', '.join(names[:MAX_LISTED_KEYS])}{ending})"


def open_client(bucket: OwnBucket, service: str = "s3") -> Any:
    """Return a client with the key of the store, or with the identity of the stack's `aws` provider.

    Raises:
        UnresolvedCredentialError: The key of the store cannot be read.
    """
    from botocore.config import Config  # noqa: PLC0415 - slow to load

    timeout = settings.answer_within()
    by_path = bucket.path_style if bucket.path_style is not None else bucket.endpoint is not None
    config = cast(Any, Config)(
        connect_timeout=settings.CONNECT_TIMEOUT_SECONDS,
        read_timeout=timeout,
        retries={"mode": "standard", "total_max_attempts": 3},
        # Stores other than AWS lag behind in checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"} if by_path else {},
    )
    session = open_aws_session(bucket.profile, bucket.region, bucket.shared_credentials_file)
    trusted = {"verify": str(write_certificate_file(bucket.ca_certificates))} if bucket.ca_certificates else {}
    return session.client(service, endpoint_url=bucket.endpoint, config=config, **bucket.keys, **trusted)
