"""The AWS identity of Lakekeeper, which must exist before roles can trust it."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from typing import cast

from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import MissingPrincipalError


def refuse_missing(bucket: OwnBucket, principal_arn: str) -> None:
    """Raise MissingPrincipalError if a user or role belongs to the account of a bucket and does not exist.

    A principal of another account, or a principal that the stack's identity may not read, cannot be looked up.

    Args:
        bucket: A bucket that the stack makes, with the identity to look up with.
        principal_arn: ARN of the principal.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    account, resource = principal_arn.split(":", 5)[4:]
    kind, _, path = resource.partition("/")
    name = path.rpartition("/")[2]
    if kind not in {"role", "user"}:
        return
    try:
        if own_bucket.open_client(bucket, "sts").get_caller_identity()["Account"] != account:
            return
        iam = own_bucket.open_client(bucket, "iam")
        principal = iam.get_role(RoleName=name)["Role"] if kind == "role" else iam.get_user(UserName=name)["User"]
        arn = cast(str, principal["Arn"])
    except ClientError as error:
        if own_bucket.read_code(error) != "NoSuchEntity":
            return
        arn = None
    except BotoCoreError:
        return
    if arn != principal_arn:
        exists = f"the {kind} of that name is {arn}" if arn else f"there is no such {kind}"
        raise MissingPrincipalError(
            f"`lakekeeper.principal_arn` of the environment is {principal_arn}, and {exists}. IAM refuses roles that"
            " trust a missing principal. Nothing was changed. Name the identity that Lakekeeper runs as."
        )
