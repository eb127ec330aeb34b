"""Check that a bucket of a tenant exists in its region, before a stack makes anything."""

from collections.abc import Collection, Mapping

from lakewright_spark.aws_partition import service_host

from lakewright.lakekeeper.provider.errors import BucketRefusedError
from lakewright.lakekeeper.provider.inputs import Declared

TIMEOUT_SECONDS = 5
"""Timeout of the request, in seconds."""
_NOT_FOUND = 404


class ExistingBucket(Declared):
    """A bucket on AWS that the tenant provides. The stack has no access to it."""

    bucket: str
    """Name of the bucket."""
    region: str
    """Region of the bucket."""
    endpoint: str | None = None
    """Endpoint of a sandbox in place of AWS."""


def refuse_missing(buckets: Mapping[str, ExistingBucket], earlier_names: Collection[str]) -> None:
    """Raise BucketRefusedError if a bucket does not exist, or is in another region.

    S3 says both to requests without credentials. A bucket is accepted if S3 cannot be reached from this machine.

    Args:
        buckets: Buckets of the spec, by name of the storage.
        earlier_names: Names of buckets that the stack uses already.
    """
    problems = [
        f"storage.{name}: {problem}"
        for name, bucket in buckets.items()
        if bucket.bucket not in earlier_names and (problem := _problem(bucket))
    ]
    if problems:
        raise BucketRefusedError(f"{' '.join(problems)} Nothing was changed.")


def _problem(existing: ExistingBucket) -> str | None:
    import httpx  # noqa: PLC0415 - slow to load, and needed for new storages only

    endpoint = existing.endpoint or f"https://{service_host('s3', existing.region)}"
    url = f"{endpoint.rstrip('/')}/{existing.bucket}"
    try:
        response = httpx.head(url, timeout=TIMEOUT_SECONDS)
    except httpx.HTTPError:
        return None
    if response.status_code == _NOT_FOUND:
        return f"bucket `{existing.bucket}` does not exist. Correct its name, or have its owner create it."
    region = response.headers.get("x-amz-bucket-region")
    if region and region != existing.region:
        return f"bucket `{existing.bucket}` is in {region}, and the spec says {existing.region}. Declare {region}."
    return None
