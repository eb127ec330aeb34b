"""Read the roles of warehouses on AWS: the external ID that each trust policy requires."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from lakewright.credentials.aws_session import open_aws_session


class AccountSettings(Protocol):
    """Settings to reach an AWS account."""

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
    """Return the facts of roles on AWS, by ARN. A role that cannot be read has the reason."""
    role_arns = sorted(set(arns))
    if not role_arns:
        return {}
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        session = open_aws_session(account.profile, account.region, account.shared_credentials_file)
        iam = session.client("iam", endpoint_url=account.endpoint)
    except BotoCoreError as error:
        return dict.fromkeys(role_arns, RoleFacts(problem=_format_error(error)))
    facts_by_arn: dict[str, RoleFacts] = {}
    for arn in role_arns:
        try:
            role = iam.get_role(RoleName=arn.rpartition("/")[2])["Role"]
        except ClientError as error:
            facts_by_arn[arn] = RoleFacts(problem=f"AWS returned {cast(Any, error).response['Error']['Code']}")
        except BotoCoreError as error:
            facts_by_arn[arn] = RoleFacts(problem=_format_error(error))
        else:
            if role["Arn"] == arn:
                facts_by_arn[arn] = RoleFacts(
                    find_required_external_id(role["AssumeRolePolicyDocument"]), is_known=True
                )
            else:
                facts_by_arn[arn] = RoleFacts(problem="the role belongs to another account")
    return facts_by_arn


def find_required_external_id(trust: Mapping[str, Any]) -> str | None:
    """Return the external ID of a trust policy; None without an ID or with several."""
    external_ids: set[str] = set()
    statements: Any = trust.get("Statement") or []
    for statement in cast(list[dict[str, Any]], statements if isinstance(statements, list) else [statements]):
        conditions: dict[str, dict[str, Any]] = statement.get("Condition") or {}
        for name in _CONDITIONS:
            value: Any = {key.lower(): expected for key, expected in conditions.get(name, {}).items()}.get(
                "sts:externalid"
            )
            if value is not None:
                external_ids |= set(cast(list[str], value)) if isinstance(value, list) else {str(value)}
    return external_ids.pop() if len(external_ids) == 1 else None


def _format_error(error: Exception) -> str:
    return " ".join(str(error).split())
