"""Read the policies of an IAM role, with the stack's AWS identity."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from lakewright.credentials.aws_session import open_aws_session
from lakewright.validation.documents import as_mapping

TIMEOUT = 15
"""Seconds to wait for each response of AWS."""


@dataclass(frozen=True)
class AwsSettings:
    """The AWS identity of the stack, which reads the policies of roles."""

    profile: str | None = None
    region: str | None = None
    shared_credentials_file: Path | None = None
    endpoint: str | None = None


@dataclass(frozen=True)
class RoleDocuments:
    """The trust policy and the identity policies of a role."""

    arn: str
    """ARN of the role that was read."""
    trust: Mapping[str, Any]
    policies: list[Mapping[str, Any]]


class RoleReader:
    """Reads roles of the stack's AWS account."""

    def __init__(self, settings: AwsSettings) -> None:
        """Create the clients; they send nothing."""
        from botocore.config import Config  # noqa: PLC0415 - slow to load

        config = cast(Any, Config)(connect_timeout=TIMEOUT, read_timeout=TIMEOUT)
        session = open_aws_session(settings.profile, settings.region or "us-east-1", settings.shared_credentials_file)
        self._iam = session.client("iam", endpoint_url=settings.endpoint, config=config)
        self._sts = session.client("sts", endpoint_url=settings.endpoint, config=config)

    def find_account(self) -> str:
        """Return the ID of the stack's account."""
        return str(self._sts.get_caller_identity()["Account"])

    def read(self, role_arn: str) -> RoleDocuments:
        """Return the documents of the role of this name in the stack's account.

        Raises:
            botocore.exceptions.ClientError: The role does not exist, or may not be read.
        """
        name = role_arn.rpartition("/")[2]
        role = self._iam.get_role(RoleName=name)["Role"]
        policies = [*self._read_inline_policies(name), *self._read_attached_policies(name)]
        return RoleDocuments(str(role["Arn"]), _parse_document(role["AssumeRolePolicyDocument"]), policies)

    def _read_inline_policies(self, role: str) -> Iterator[Mapping[str, Any]]:
        for page in self._iam.get_paginator("list_role_policies").paginate(RoleName=role):
            for name in page["PolicyNames"]:
                yield _parse_document(self._iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])

    def _read_attached_policies(self, role: str) -> Iterator[Mapping[str, Any]]:
        for page in self._iam.get_paginator("list_attached_role_policies").paginate(RoleName=role):
            for policy in page["AttachedPolicies"]:
                arn = policy["PolicyArn"]
                version = self._iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
                policy_version = self._iam.get_policy_version(PolicyArn=arn, VersionId=version)
                yield _parse_document(policy_version["PolicyVersion"]["Document"])


def _parse_document(value: object) -> Mapping[str, Any]:
    """Return a policy, which botocore decodes or leaves as URL-encoded JSON."""
    return as_mapping(json.loads(unquote(value)) if isinstance(value, str) else value)
