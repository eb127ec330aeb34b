"""Limit the IAM roles of an archived warehouse to reading, and restore their rights.

A second inline policy denies all writes. The role's own policy is not changed, so a restoration deletes one policy.
"""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, cast

from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import ArchiveRefusedError
from lakewright.names.object_names import LONGEST_ROLE_NAME
from lakewright.ownership.mark import Claimant, Ownership, parse_tags

READ_ONLY_POLICY = "lakewright-archive"
"""Name of the inline policy that denies writes."""
_WRITES = (
    "s3:PutObject*",
    "s3:DeleteObject*",
    "s3:AbortMultipartUpload",
    "s3:RestoreObject",
    "s3:BypassGovernanceRetention",
)
_WRITING_PURPOSES = ("maintenance", "vending")
"""Purposes of further roles that write. The role of a share reads."""


def build_read_only_policy() -> dict[str, Any]:
    """Return the policy that denies all writes, also to open sessions of the role."""
    statement = {"Sid": "ArchiveIsReadOnly", "Effect": "Deny", "Action": list(_WRITES), "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def limit_roles(account: OwnBucket, role_names: Iterable[str], claimant: Claimant) -> None:
    """Limit roles to reading.

    Args:
        account: The bucket of the warehouse, in the account of the roles.
        role_names: Names of the roles.
        claimant: The stack whose mark the roles must have.

    Raises:
        ArchiveRefusedError: A role does not exist or has the mark of another stack, or IAM refused a call.
    """
    policy = json.dumps(build_read_only_policy())
    for name in role_names:
        with _raise_refusals(f"limiting role `{name}` to reading"):
            iam = own_bucket.open_client(account, "iam")
            _require_own(iam, name, claimant)
            iam.put_role_policy(RoleName=name, PolicyName=READ_ONLY_POLICY, PolicyDocument=policy)


def refuse_missing(account: OwnBucket, role_names: Iterable[str], claimant: Claimant) -> None:
    """Raise if a role does not exist. Changes nothing.

    Raises the errors of `limit_roles`.
    """
    for name in role_names:
        with _raise_refusals(f"reading role `{name}`"):
            _require_own(own_bucket.open_client(account, "iam"), name, claimant)


def restore_roles(account: OwnBucket, role_names: Iterable[str], claimant: Claimant) -> None:
    """Let roles write again. Roles that do not exist are left out.

    Raises the errors of `limit_roles`.
    """
    for name in role_names:
        with _raise_refusals(f"restoring the rights of role `{name}`"):
            iam = own_bucket.open_client(account, "iam")
            if not _is_own(iam, name, claimant):
                continue
            try:
                iam.delete_role_policy(RoleName=name, PolicyName=READ_ONLY_POLICY)
            except iam.exceptions.NoSuchEntityException:
                continue


def list_existing(account: OwnBucket, role_names: Iterable[str], claimant: Claimant) -> list[str]:
    """Return the names of the roles that exist.

    Raises the errors of `restore_roles`.
    """
    existing_roles: list[str] = []
    for name in role_names:
        with _raise_refusals(f"reading role `{name}`"):
            if _is_own(own_bucket.open_client(account, "iam"), name, claimant):
                existing_roles.append(name)
    return existing_roles


def list_former_roles(account: OwnBucket, role_names: Sequence[str], claimant: Claimant) -> list[str]:
    """Return the names of roles that write to the warehouse, exist, and are not among its roles.

    A role that left the spec is retained with its rights, as the warehouse is.

    Args:
        account: The bucket of the warehouse, in the account of the roles.
        role_names: Names of the roles of the warehouse. The catalog's role is the first.
        claimant: The stack whose mark the roles must have.

    Raises:
        ArchiveRefusedError: A role has not the mark of the stack, or IAM refused a call.
    """
    names = [f"{role_names[0]}.{purpose}" for purpose in _WRITING_PURPOSES]
    possible_names = [name for name in names if name not in role_names and len(name) <= LONGEST_ROLE_NAME]
    return list_existing(account, possible_names, claimant)


def _require_own(iam: Any, name: str, claimant: Claimant) -> None:
    if not _is_own(iam, name, claimant):
        raise ArchiveRefusedError(
            f"role `{name}` of the warehouse does not exist, so the warehouse cannot become read-only. Run `up` first."
        )


def _is_own(iam: Any, name: str, claimant: Claimant) -> bool:
    """Return whether a role exists. Raise ArchiveRefusedError if it exists and belongs to another stack."""
    try:
        role = cast(dict[str, Any], iam.get_role(RoleName=name)["Role"])
    except iam.exceptions.NoSuchEntityException:
        return False
    mark = parse_tags({str(tag["Key"]): str(tag["Value"]) for tag in role.get("Tags", [])})
    if mark.compare(claimant) is not Ownership.OWN:
        raise ArchiveRefusedError(
            f"role `{name}` has not the mark of stack `{claimant.stack}`, so its rights were not changed. Run `up` of"
            " the stack that owns it, or delete the role if nothing uses it."
        )
    return True


@contextmanager
def _raise_refusals(action: str) -> Generator[None]:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        yield
    except ClientError as error:
        raise ArchiveRefusedError(
            f"{action} failed: IAM responded {own_bucket.read_code(error)}. Let the stack's identity call iam:GetRole,"
            " iam:PutRolePolicy and iam:DeleteRolePolicy."
        ) from None
    except BotoCoreError as error:
        raise ArchiveRefusedError(f"{action} failed: {' '.join(str(error).split())}.") from None
