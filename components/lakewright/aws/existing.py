"""Look up existing AWS objects: those that a tenant with `adopt` takes over, and those that a spec refers to."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pulumi

from lakewright.credentials.aws_session import aws_session
from lakewright.environment.environment import AwsAccount
from lakewright.environment.platform import TENANT_TAG

_MISSING = frozenset({"404", "NoSuchBucket", "NoSuchTagSet", "NoSuchEntity", "NotFoundException"})
_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
_OTHER_OWNER = frozenset({"403"})
"""HeadBucket's response for another account's bucket; creating it fails with the reason."""


@dataclass(frozen=True)
class ExistingKey:
    """A KMS key behind an alias."""

    key_id: str
    alias: str


@dataclass(frozen=True)
class ExistingObjects:
    """Looks up AWS objects with the identity of the stack. Methods raise pulumi.RunError if AWS refuses."""

    account: AwsAccount
    region: str

    def bucket(self, name: str) -> str | None:
        """Return the name of a bucket of this account, or None."""
        found = self._look_up("s3", f"bucket {name}", lambda s3: s3.head_bucket(Bucket=name))
        return None if found is None else name

    def bucket_of_tenant(self, name: str, tenant: str) -> str | None:
        """Return the name of a bucket of this account that has the tag of a tenant, or None."""
        found = self._look_up("s3", f"bucket {name}", lambda s3: s3.get_bucket_tagging(Bucket=name)["TagSet"])
        listed = cast(list[dict[str, str]], found or [])
        tags = {tag["Key"]: tag["Value"] for tag in listed}
        return name if tags.get(TENANT_TAG) == tenant else None

    def bucket_region(self, name: str) -> str | None:
        """Return the region of a bucket of this account, or None."""
        found = self._look_up("s3", f"bucket {name}", lambda s3: s3.head_bucket(Bucket=name))
        return None if found is None else str(found.get("BucketRegion") or self.region)

    def has_policy(self, arn: str) -> bool:
        """Return whether a managed policy exists, or may not be looked up."""
        found = self._look_up(
            "iam", f"policy {arn}", lambda iam: iam.get_policy(PolicyArn=arn)["Policy"]["Arn"], if_denied=arn
        )
        return found is not None

    def lacks_principal(self, arn: str) -> bool:
        """Return whether a user or role belongs to this account and does not exist. Others cannot be looked up."""
        _, _, _, _, owner, resource = arn.split(":", 5)
        kind, _, path = resource.partition("/")
        name = path.rpartition("/")[2]
        calls: dict[str, Callable[[Any], Any]] = {
            "role": lambda iam: iam.get_role(RoleName=name)["Role"]["Arn"],
            "user": lambda iam: iam.get_user(UserName=name)["User"]["Arn"],
        }
        own = self._look_up("sts", "the account", lambda sts: sts.get_caller_identity()["Account"])
        if kind not in calls or owner != own:
            return False
        return self._look_up("iam", f"{kind} {name}", calls[kind], if_denied=arn) != arn

    def role(self, name: str) -> str | None:
        """Return the name of a role, or None."""
        found = self._look_up("iam", f"role {name}", lambda iam: iam.get_role(RoleName=name))
        return None if found is None else name

    def key(self, alias: str) -> ExistingKey | None:
        """Return the KMS key that an alias names, or None."""
        found = self._look_up("kms", f"KMS key {alias}", lambda kms: kms.describe_key(KeyId=alias))
        if found is None or found["KeyMetadata"]["KeyState"] == "PendingDeletion":
            return None
        return ExistingKey(str(found["KeyMetadata"]["KeyId"]), alias)

    def _look_up(self, service: str, what: str, call: Callable[[Any], Any], if_denied: Any = None) -> Any:
        from botocore.config import Config  # noqa: PLC0415 - slow to load
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        account = self.account
        style = cast(Any, Config)(s3={"addressing_style": "path"} if account.endpoint else {})
        try:
            session = aws_session(account.profile, self.region, account.shared_credentials_file)
            return call(session.client(service, endpoint_url=account.endpoint, config=style))
        except ClientError as error:
            code = cast(Any, error).response["Error"]["Code"]
            if code in _MISSING | _OTHER_OWNER:
                return None
            if code in _DENIED and if_denied is not None:
                return if_denied
            raise pulumi.RunError(f"could not look up {what}: AWS returned {code}") from None
        except BotoCoreError as error:
            raise pulumi.RunError(f"could not look up {what}: {' '.join(str(error).split())}") from None
