"""Read the roles of warehouses on AWS: the external ID that each trust policy requires."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from lakewright.credentials.aws_session import aws_session


class AccountSettings(Protocol):
    """How an AWS account is reached."""

    @property
    def profile(self) -> str | None:
        """Profile of the AWS configuration."""
        ...

    @property
    def region(self) -> str | None:
        """Default region."""
        ...

    @property
    def shared_credentials_file(self) -> Path | None:
        """File of credentials."""
        ...

    @property
    def endpoint(self) -> str | None:
        """Endpoint of a sandbox; None for AWS."""
        ...


@dataclass(frozen=True)
class RoleFacts:
    """The role of a warehouse, as read from AWS."""

    external_id: str | None = None
    """External ID that its trust policy requires."""
    is_known: bool = False
    """Whether the role could be read."""
    problem: str = ""
    """Why it could not be read."""


_CONDITIONS = ("StringEquals", "StringLike", "ForAnyValue:StringEquals")


def read_roles(account: AccountSettings, arns: Iterable[str]) -> dict[str, RoleFacts]:
    """Return what AWS says about roles, by ARN. A role that cannot be read has the reason."""
    wanted = sorted(set(arns))
    if not wanted:
        return {}
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        session = aws_session(account.profile, account.region, account.shared_credentials_file)
        iam = session.client("iam", endpoint_url=account.endpoint)
    except BotoCoreError as error:
        return dict.fromkeys(wanted, RoleFacts(problem=_one_line(error)))
    found: dict[str, RoleFacts] = {}
    for arn in wanted:
        try:
            role = iam.get_role(RoleName=arn.rpartition("/")[2])["Role"]
        except ClientError as error:
            found[arn] = RoleFacts(problem=f"AWS returned {cast(Any, error).response['Error']['Code']}")
        except BotoCoreError as error:
            found[arn] = RoleFacts(problem=_one_line(error))
        else:
            if role["Arn"] == arn:
                found[arn] = RoleFacts(required_external_id(role["AssumeRolePolicyDocument"]), is_known=True)
            else:
                found[arn] = RoleFacts(problem="the role belongs to another account")
    return found


def required_external_id(trust: Mapping[str, Any]) -> str | None:
    """Return the external ID of a trust policy; None if there is none, or more than one."""
    found: set[str] = set()
    statements: Any = trust.get("Statement") or []
    for statement in cast(list[dict[str, Any]], statements if isinstance(statements, list) else [statements]):
        conditions: dict[str, dict[str, Any]] = statement.get("Condition") or {}
        for name in _CONDITIONS:
            value: Any = {key.lower(): own for key, own in conditions.get(name, {}).items()}.get("sts:externalid")
            if value is not None:
                found |= set(cast(list[str], value)) if isinstance(value, list) else {str(value)}
    return found.pop() if len(found) == 1 else None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
