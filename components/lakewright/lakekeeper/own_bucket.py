"""What a bucket of the stack still holds: AWS deletes only an empty one, when all that leads to it is gone already."""

# boto3 carries no types; what comes of it is cast where it is used.
# pyright: reportMissingTypeStubs=false

from typing import Any, cast

from lakewright.aws_session import aws_session
from lakewright.lakekeeper import settings
from lakewright.lakekeeper.declared import Declared
from lakewright.lakekeeper.errors import CannotCount

NAMED = 3
"""So many keys are named in a message."""


class OwnBucket(Declared):
    """A bucket that the stack made and will not empty, and the AWS identity that may look into it; no secret."""

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


def held(own: OwnBucket) -> str | None:
    """`2 objects and 5 old versions: KEY, ...`; None where there is nothing, or no such bucket. Raises CannotCount."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        page = _client(own).list_object_versions(Bucket=own.bucket)
    except ClientError as error:
        code = cast(Any, error).response["Error"]["Code"]
        if code == "NoSuchBucket":
            return None
        raise CannotCount(
            f"what {own.where} holds cannot be listed: S3 answered {code}. Let the stack's identity list its versions."
        ) from None
    except BotoCoreError as error:
        raise CannotCount(f"what {own.where} holds cannot be listed: {' '.join(str(error).split())}") from None
    found: list[dict[str, Any]] = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    if not found:
        return None
    current = [one for one in page.get("Versions", []) if one["IsLatest"]]
    return _described(current, len(found) - len(current), more=bool(page.get("IsTruncated")), keys=found)


def _described(current: list[dict[str, Any]], old: int, *, more: bool, keys: list[dict[str, Any]]) -> str:
    counts = [
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((len(current), "object"), (old, "old version"))
        if count
    ]
    # What a person would miss is named first.
    names = list(dict.fromkeys(one["Key"] for one in [*current, *keys]))
    rest = " and more" if more or len(names) > NAMED else ""
    return f"{'at least ' if more else ''}{' and '.join(counts)} ({', '.join(names[:NAMED])}{rest})"


def _client(own: OwnBucket) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - slow to load

    timeout = settings.answer_within()
    config = cast(Any, Config)(
        connect_timeout=settings.CONNECT_WITHIN,
        read_timeout=timeout,
        retries={"mode": "standard", "total_max_attempts": 3},
        s3={"addressing_style": "path"} if own.endpoint else {},
    )
    session = aws_session(own.profile, own.region, own.shared_credentials_file)
    return session.client("s3", endpoint_url=own.endpoint, config=config)
