"""What a bucket of the stack still holds: AWS deletes only an empty one, when all that leads to it is gone already."""

# boto3 carries no types; what comes of it is cast where it is used.
# pyright: reportMissingTypeStubs=false

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from lakewright.credentials.aws_session import aws_session
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.lakekeeper.provider.inputs import Declared

NAMED = 3
"""So many keys are named in a message."""
COUNTED = 1000
"""So many objects and versions are counted for a message."""
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
        """Whether this is what remains in a versioned bucket of an object with which Lakekeeper validated a profile."""
        return (
            not (self.is_current and not self.is_marker)
            and self.size <= _PROBE_BYTES
            and bool(_PROBE.fullmatch(self.key))
        )


class OwnBucket(Declared):
    """A bucket that the stack made, and the AWS identity that may look into it; no secret."""

    bucket: str
    """Name of the bucket."""
    region: str
    """Its region."""
    endpoint: str | None = None
    """A sandbox's, in place of AWS."""
    profile: str | None = None
    """AWS profile to look with."""
    shared_credentials_file: str | None = None
    """File that has the profile."""

    @property
    def where(self) -> str:
        """The bucket and its place, as messages say it."""
        return f"bucket `{self.bucket}` at {self.endpoint or f'AWS in {self.region}'}"


def held(own: OwnBucket, besides: Sequence[str] = (), within: str | None = None) -> str | None:
    """Describe what a bucket holds outside some prefixes.

    Deleted validation objects of Lakekeeper do not count: every warehouse leaves them in a versioned bucket.

    Args:
        own: The bucket.
        besides: Key prefixes, without slashes at their ends, whose objects do not count.
        within: Key prefix, without slashes at its ends, that alone counts; the whole bucket if left out.

    Returns:
        `2 objects and 5 old versions: KEY, ...`; None where there is nothing, or no such bucket.

    Raises:
        CannotCountError: The bucket cannot be listed.
    """
    with listing(own):
        client = client_of(own)
        found: list[ObjectVersion] = []
        for one in entries_outside(
            client, own.bucket, f"{within}/" if within else "", [f"{prefix}/" for prefix in besides]
        ):
            if one.is_deleted_probe:
                continue
            found.append(one)
            if len(found) > COUNTED:
                break
    return _described(found[:COUNTED], more=len(found) > COUNTED) if found else None


def exists(own: OwnBucket) -> bool:
    """Whether there is a bucket of the name that the identity may look into. Raises CannotCountError."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    with listing(own):
        try:
            client_of(own).head_bucket(Bucket=own.bucket)
        except ClientError as error:
            if code_of(error) in {*NO_BUCKET, *_FORBIDDEN}:
                return False
            raise
    return True


def tags(own: OwnBucket) -> dict[str, str]:
    """Tags of a bucket; none where it is gone, has none, or belongs to an account that does not show them.

    Raises:
        CannotCountError: S3 refused the call for another reason.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    with listing(own):
        try:
            found = client_of(own).get_bucket_tagging(Bucket=own.bucket)["TagSet"]
        except ClientError as error:
            if code_of(error) in {*NO_BUCKET, *_FORBIDDEN, "NoSuchTagSet"}:
                return {}
            raise
    return {str(one["Key"]): str(one["Value"]) for one in found}


def entries_outside(client: Any, bucket: str, prefix: str, besides: Sequence[str]) -> Iterator[ObjectVersion]:
    """Every version and delete marker under a key prefix, but for those under some prefixes within it.

    Args:
        client: A client of S3.
        bucket: Name of the bucket.
        prefix: Key prefix with a slash at its end; empty for the whole bucket.
        besides: Key prefixes, with slashes at their ends. They are not listed.
    """
    if not any(one.startswith(prefix) for one in besides):
        yield from entries(client, bucket, prefix)
        return
    for page in _pages(client, bucket, prefix, "/"):
        yield from _of(page)
        for folder in page.get("CommonPrefixes", []):
            if folder["Prefix"] not in besides:
                yield from entries_outside(client, bucket, folder["Prefix"], besides)


def entries(client: Any, bucket: str, prefix: str) -> Iterator[ObjectVersion]:
    """Every version and delete marker under a key prefix; none where the bucket is gone."""
    for page in _pages(client, bucket, prefix):
        yield from _of(page)


def _pages(client: Any, bucket: str, prefix: str, delimiter: str | None = None) -> Iterator[dict[str, Any]]:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow to load

    cut = {"Delimiter": delimiter} if delimiter else {}
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix, **cut)
    try:
        yield from pages
    except ClientError as error:
        if code_of(error) not in NO_BUCKET:
            raise


def _of(page: dict[str, Any]) -> Iterator[ObjectVersion]:
    for one in page.get("Versions", []):
        yield ObjectVersion(one["Key"], one["VersionId"], is_current=bool(one["IsLatest"]), size=int(one["Size"]))
    for one in page.get("DeleteMarkers", []):
        yield ObjectVersion(one["Key"], one["VersionId"], is_marker=True)


@contextmanager
def listing(own: OwnBucket) -> Generator[None]:
    """Raise CannotCountError where S3 does not let the block look into the bucket."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        yield
    except ClientError as error:
        raise CannotCountError(
            f"what {own.where} holds cannot be listed: S3 answered {code_of(error)}. Let the stack's identity list its"
            " versions."
        ) from None
    except BotoCoreError as error:
        raise CannotCountError(f"what {own.where} holds cannot be listed: {' '.join(str(error).split())}") from None


def code_of(error: Exception) -> str:
    """The code of a botocore ClientError."""
    return str(cast(Any, error).response["Error"]["Code"])


def _described(found: list[ObjectVersion], *, more: bool) -> str:
    current = [one for one in found if one.is_current]
    counts = [
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((len(current), "object"), (len(found) - len(current), "old version"))
        if count
    ]
    # What a person would miss is named first.
    names = list(dict.fromkeys(one.key for one in [*current, *found]))
    rest = " and more" if more or len(names) > NAMED else ""
    return f"{'at least ' if more else ''}{' and '.join(counts)} ({', '.join(names[:NAMED])}{rest})"


def client_of(own: OwnBucket, service: str = "s3") -> Any:
    """A client with the identity of the stack's `aws` provider."""
    from botocore.config import Config  # noqa: PLC0415 - slow to load

    timeout = settings.answer_within()
    config = cast(Any, Config)(
        connect_timeout=settings.CONNECT_WITHIN,
        read_timeout=timeout,
        retries={"mode": "standard", "total_max_attempts": 3},
        s3={"addressing_style": "path"} if own.endpoint else {},
    )
    session = aws_session(own.profile, own.region, own.shared_credentials_file)
    return session.client(service, endpoint_url=own.endpoint, config=config)
