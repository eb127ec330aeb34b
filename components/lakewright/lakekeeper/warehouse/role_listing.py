"""Prove with the catalog's own AWS identity that a tenant's role cannot list the bucket outside the prefix.

Lakekeeper lists below its prefix only, so this limit cannot be proven through it.
"""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

import secrets
from collections.abc import Iterator
from typing import Any, cast

from lakewright.lakekeeper.preflight.report import Check
from lakewright.lakekeeper.storage.profiles import S3Profile
from lakewright.lakekeeper.warehouse.role_checks import NEIGHBOR

_DENIED = frozenset({"AccessDenied", "403"})


def check_listings(session: Any, storage: S3Profile, external_id: str | None, endpoint: str | None) -> list[Check]:
    """Return the checks of listings, skipped if the identity may not assume the role.

    Args:
        session: A boto3 session with the identity to assume the role with.
        storage: Storage profile of the warehouse.
        external_id: External ID of the role.
        endpoint: Endpoint of a sandbox; None for AWS.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    sts = session.client("sts", endpoint_url=endpoint, region_name=storage.region)
    request = {"RoleArn": storage.assume_role_arn, "RoleSessionName": "lakewright-proof", "DurationSeconds": 900}
    try:
        keys = sts.assume_role(**request, **({"ExternalId": external_id} if external_id else {}))["Credentials"]
    except (ClientError, BotoCoreError) as error:
        reason = (
            f"not tried: this AWS identity may not assume the role ({_code(error)}). Run it with the identity of"
            " Lakekeeper, `--profile NAME`"
        )
        return [Check(name="bucket listing", status="skipped", reason=reason)]
    s3 = session.client(
        "s3",
        endpoint_url=endpoint,
        region_name=storage.region,
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )
    return [*_listings(s3, storage)]


def _listings(s3: Any, storage: S3Profile) -> Iterator[Check]:
    from botocore.exceptions import ClientError  # noqa: PLC0415

    for location, prefix in _list_locations(storage):
        try:
            s3.list_objects_v2(Bucket=storage.bucket, MaxKeys=1, **prefix)
        except ClientError as error:
            denied = _code(error) in _DENIED
            reason = f"{location} cannot be listed" if denied else f"{location} could not be tried: {_code(error)}"
            yield Check(name="bucket listing", status="passed" if denied else "failed", reason=reason)
            continue
        limit = f"Limit s3:ListBucket by s3:prefix to {storage.key_prefix}/*."
        reason = f"{storage.assume_role_arn} can list {location}. {limit}"
        yield Check(name="bucket listing", status="failed", reason=reason)


def _list_locations(storage: S3Profile) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield locations outside the prefix, and the argument of a listing of each.

    A policy for `PREFIX*` in place of `PREFIX/*` allows the neighbor. A condition that ends with `IfExists` allows a
    listing without a prefix. A policy that names the prefix of another tenant cannot be found in this way.
    """
    parts = storage.key_prefix.split("/")
    above = ["/".join(parts[:depth]) + "/" for depth in range(1, len(parts))]
    neighbors = [f"{storage.key_prefix}{NEIGHBOR}/", "".join(above[-1:]) + f"{secrets.token_hex(4)}{NEIGHBOR}/"]
    yield f"s3://{storage.bucket} without a prefix", {}
    for prefix in ["", *above, *neighbors]:
        yield f"s3://{storage.bucket}/{prefix}", {"Prefix": prefix}


def _code(error: Exception) -> str:
    response = cast(dict[str, Any], getattr(error, "response", {})).get("Error", {})
    return str(response.get("Code") or type(error).__name__)
