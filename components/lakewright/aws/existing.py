"""Look up existing AWS objects that a tenant with `adopt` takes over, or that a spec refers to."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pulumi

from lakewright.aws import adoption_preview
from lakewright.credentials.aws_session import open_aws_session
from lakewright.environment.environment import AwsAccount
from lakewright.environment.platform import TENANT_TAG
from lakewright.lakekeeper.buckets.bucket_key import find_described_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import Claimant, Ownership, parse_tags
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.running_stack import find_program_stack

ROLE_POLICY = "warehouse-prefix"
"""Name of the inline policy that a stack gives to its roles."""
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
        """Return the name of a bucket of this account that this stack may adopt; None if it does not exist.

        Raises:
            pulumi.RunError: The bucket has neither this stack's mark nor a consent.
        """
        if self._look_up("s3", f"bucket {name}", lambda s3: s3.head_bucket(Bucket=name)) is None:
            return None
        tags = self._look_up("s3", f"bucket {name}", lambda s3: s3.get_bucket_tagging(Bucket=name)["TagSet"])
        marked = _make_marked(f"bucket `{name}`", tags, Consent(ConsentKind.BUCKET, name))
        if marked.mark.record and not marked.mark.stack:
            return name  # An earlier version wrote the tags; the tenant's record has compared the id.
        self._refuse_foreign(marked)
        if self._is_new(marked):
            bucket = OwnBucket.model_validate(self.account.describe_access(name, self.region))
            _announce(marked, lambda: adoption_preview.describe_bucket(bucket))
        return name

    def log_bucket(self, name: str, tenant: str) -> str | None:
        """Return the name of a bucket for logs that this stack may adopt; None for other buckets.

        Raises:
            pulumi.RunError: The bucket has the mark of another stack.
        """
        tags = self._look_up("s3", f"bucket {name}", lambda s3: s3.get_bucket_tagging(Bucket=name)["TagSet"])
        marked = _make_marked(f"bucket `{name}`", tags, Consent(ConsentKind.BUCKET, name))
        if not marked.mark.names_owner and not marked.is_permitted:
            return name if _read_tags(tags).get(TENANT_TAG) == tenant else None
        self._refuse_foreign(marked)
        return name

    def bucket_region(self, name: str) -> str | None:
        """Return the region of a bucket of this account, or None."""
        head = self._look_up("s3", f"bucket {name}", lambda s3: s3.head_bucket(Bucket=name))
        return None if head is None else str(head.get("BucketRegion") or self.region)

    def has_policy(self, arn: str) -> bool:
        """Return whether a managed policy exists, or may not be looked up."""
        policy = self._look_up(
            "iam", f"policy {arn}", lambda iam: iam.get_policy(PolicyArn=arn)["Policy"]["Arn"], if_denied=arn
        )
        return policy is not None

    def lacks_principal(self, arn: str) -> bool:
        """Return whether a user or role belongs to this account and does not exist. Others cannot be looked up."""
        _, _, _, _, owner, resource = arn.split(":", 5)
        kind, _, path = resource.partition("/")
        name = path.rpartition("/")[2]
        calls: dict[str, Callable[[Any], Any]] = {
            "role": lambda iam: iam.get_role(RoleName=name)["Role"]["Arn"],
            "user": lambda iam: iam.get_user(UserName=name)["User"]["Arn"],
        }
        account_id = self._look_up("sts", "the account", lambda sts: sts.get_caller_identity()["Account"])
        if kind not in calls or owner != account_id:
            return False
        return self._look_up("iam", f"{kind} {name}", calls[kind], if_denied=arn) != arn

    def role(self, name: str, tenant: str) -> str | None:
        """Return the name of a role that this stack may adopt; None if it does not exist.

        Raises:
            pulumi.RunError: The role has neither this stack's mark nor a consent.
        """
        role = self._find_role(name, tenant)
        if role is None:
            return None
        marked = _mark_role(name, role)
        if self._is_new(marked):
            describe = partial(adoption_preview.describe_role, role=role, inline_policy=ROLE_POLICY)
            _announce(
                marked,
                lambda: self._look_up("iam", f"role {name}", describe, if_denied="its policies may not be listed"),
            )
        return name

    def key(self, alias: str, bucket: str, tenant: str) -> ExistingKey | None:
        """Return the KMS key that an alias names, if this stack may adopt it; None if it does not exist.

        Raises:
            pulumi.RunError: The key has neither this stack's mark nor a consent, or it is the key of another bucket.
        """
        description = self._look_up("kms", f"KMS key {alias}", lambda kms: kms.describe_key(KeyId=alias))
        if description is None or description["KeyMetadata"]["KeyState"] == "PendingDeletion":
            return None
        described_bucket = find_described_bucket(str(description["KeyMetadata"].get("Description", "")))
        if described_bucket not in {None, bucket}:
            raise pulumi.RunError(
                f"KMS key `{alias}` encrypts bucket `{described_bucket}` and cannot be adopted for bucket `{bucket}`:"
                " an alias has `-` in place of `.`. Use another bucket name, or the ARN of a key in"
                " `encryption: {kms: ARN}`"
            )
        key_id = str(description["KeyMetadata"]["KeyId"])
        tags = self._look_up("kms", f"KMS key {alias}", lambda kms: kms.list_resource_tags(KeyId=key_id)["Tags"])
        consents = [Consent(ConsentKind.KEY, alias), Consent(ConsentKind.KEY, key_id)]
        marked = _make_marked(f"KMS key `{alias}`", tags, *consents, Consent(ConsentKind.BUCKET, bucket))
        self._refuse_foreign(marked, tags, tenant)
        if self._is_new(marked):
            _announce(marked, lambda: f"this replaces its tags ({', '.join(sorted(_read_tags(tags))) or 'none'})")
        return ExistingKey(key_id, alias)

    def refuse_foreign_role(self, name: str, tenant: str) -> None:
        """Refuse a role that exists and that this stack may not adopt.

        Raises:
            pulumi.RunError: The role has neither this stack's mark nor a consent.
        """
        self._find_role(name, tenant)

    def _find_role(self, name: str, tenant: str) -> dict[str, Any] | None:
        role = self._look_up("iam", f"role {name}", lambda iam: iam.get_role(RoleName=name)["Role"])
        if role is not None:
            self._refuse_foreign(_mark_role(name, role), role.get("Tags"), tenant)
        return role

    @staticmethod
    def _is_new(marked: MarkedObject) -> bool:
        """Return whether the object is not yet this stack's, so that this run adopts it."""
        return marked.mark.compare(Claimant(find_program_stack())) is not Ownership.OWN

    @staticmethod
    def _refuse_foreign(marked: MarkedObject, tags: Any = None, tenant: str | None = None) -> None:
        """Raise pulumi.RunError unless this stack may adopt an object. Earlier versions marked roles by tenant only."""
        if tenant and not marked.mark.names_owner and _read_tags(tags).get(TENANT_TAG) == tenant:
            return
        if problem := marked.find_adoption_problem(Claimant(find_program_stack())):
            raise pulumi.RunError(problem)

    def _look_up(self, service: str, title: str, call: Callable[[Any], Any], if_denied: Any = None) -> Any:
        from botocore.config import Config  # noqa: PLC0415 - slow to load
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        account = self.account
        style = cast(Any, Config)(s3={"addressing_style": "path"} if account.endpoint else {})
        try:
            session = open_aws_session(account.profile, self.region, account.shared_credentials_file)
            return call(session.client(service, endpoint_url=account.endpoint, config=style))
        except ClientError as error:
            code = cast(Any, error).response["Error"]["Code"]
            if code in _MISSING | _OTHER_OWNER:
                return None
            if code in _DENIED and if_denied is not None:
                return if_denied
            raise pulumi.RunError(f"could not look up {title}: AWS returned {code}") from None
        except BotoCoreError as error:
            raise pulumi.RunError(f"could not look up {title}: {' '.join(str(error).split())}") from None


def _announce(marked: MarkedObject, describe: Callable[[], str]) -> None:
    """Print what adopting an object replaces."""
    try:
        effect = describe()
    except CannotCountError as error:
        effect = f"its settings and contents could not be read: {error}"
    pulumi.log.info(f"{marked.what} exists already and is adopted; {effect}")


def _mark_role(name: str, role: dict[str, Any]) -> MarkedObject:
    return _make_marked(f"IAM role `{name}`", role.get("Tags"), Consent(ConsentKind.ROLE, name))


def _make_marked(title: str, tags: Any, *consents: Consent) -> MarkedObject:
    return MarkedObject(title, parse_tags(_read_tags(tags)), consents)


def _read_tags(tags: Any) -> dict[str, str]:
    """Return tags as S3 and IAM list them, or as KMS does."""
    tag_list = cast(list[dict[str, str]], tags or [])
    return {tag.get("Key") or tag.get("TagKey", ""): tag.get("Value") or tag.get("TagValue", "") for tag in tag_list}
