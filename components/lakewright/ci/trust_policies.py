"""Trust policies of the IAM roles that jobs of CI assume through OIDC, without any static key. Pure functions.

Sources: https://docs.github.com/actions/reference/security/oidc and https://docs.gitlab.com/ci/cloud_services/aws/.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lakewright.ci.errors import SettingError

GITHUB_ISSUER = "token.actions.githubusercontent.com"
AWS_AUDIENCE = "sts.amazonaws.com"
"""Audience that `aws-actions/configure-aws-credentials` asks for."""
_ACCOUNT = re.compile(r"\d{12}")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+")
_HOST = re.compile(r"[a-z0-9.-]+(:\d+)?(/[A-Za-z0-9_.-]+)*")
_NAME = re.compile(r"[A-Za-z0-9_./-]+")


class CiPurpose(StrEnum):
    """Purpose of a job. Each has a role of its own."""

    PREVIEW = "preview"
    """Jobs of pull requests: their role may read only, as they run unapproved code."""
    APPLY = "apply"
    """Jobs in the approved environment: the only role that may change anything."""
    DRIFT = "drift"
    """Jobs of the main branch: their role may read only."""


@dataclass(frozen=True)
class CiIdentity:
    """The identity of jobs: the issuer of their tokens, and their repository."""

    account: str
    """The AWS account that has the role and the OIDC provider."""
    repository: str
    """`OWNER/NAME` on GitHub, the project's path on GitLab."""
    branch: str = "main"
    environment: str = "production"
    """Environment of GitHub whose reviewers approve changes. GitLab's role trusts the protected branch instead."""
    gitlab: str | None = None
    """Host of GitLab, such as `gitlab.com`. None for GitHub."""
    owner_id: int | None = None
    """Number of the owner on GitHub, which subjects of repositories made since 15 July 2026 contain."""
    repository_id: int | None = None
    """Number of the repository, likewise. `gh api repos/OWNER/NAME` has both."""

    def __post_init__(self) -> None:
        """Refuse names that would be patterns or that no token has. Raises SettingError."""
        checks = [
            ("account", self.account, _ACCOUNT, "the 12 digits of an AWS account"),
            ("repository", self.repository, _REPOSITORY, "OWNER/NAME without wildcards"),
            ("branch", self.branch, _NAME, "the name of a branch without wildcards"),
            ("environment", self.environment, _NAME, "the name of an environment without wildcards"),
        ]
        if self.gitlab is not None:
            checks.append(("gitlab", self.gitlab, _HOST, "a host such as gitlab.com, without https://"))
        for name, value, pattern, expected in checks:
            if not pattern.fullmatch(value):
                raise SettingError(f"{name}: expected {expected}, found {value!r}")
        if (self.owner_id is None) != (self.repository_id is None) or (self.gitlab and self.owner_id is not None):
            raise SettingError("owner_id and repository_id: expected both or none, and none for GitLab")
        if self.gitlab is None and self.repository.count("/") != 1:
            raise SettingError(f"repository: expected OWNER/NAME, found {self.repository!r}")

    @property
    def subject(self) -> str:
        """The repository in subjects of GitHub's tokens: `OWNER/NAME`, or `OWNER@ID/NAME@ID`.

        Source: https://docs.github.com/actions/reference/security/oidc#immutable-subject-claims.
        """
        if self.owner_id is None:
            return self.repository
        owner, name = self.repository.split("/")
        return f"{owner}@{self.owner_id}/{name}@{self.repository_id}"


def build_trust_policy(identity: CiIdentity, purpose: CiPurpose) -> dict[str, Any]:
    """Return the trust policy of the role of a purpose. It names one audience and one subject without a wildcard.

    The exception are merge requests on GitLab, whose tokens have the source branch as subject.
    """
    issuer = identity.gitlab or GITHUB_ISSUER
    # AWS compares the audience of GitLab's tokens, which `id_tokens` of the job sets, with the provider's client ids.
    audience = f"https://{identity.gitlab}" if identity.gitlab else AWS_AUDIENCE
    operator, subject = (
        _format_gitlab_subject(identity, purpose) if identity.gitlab else _format_github_subject(identity, purpose)
    )
    conditions: dict[str, dict[str, str]] = {"StringEquals": {f"{issuer}:aud": audience}}
    conditions.setdefault(operator, {})[f"{issuer}:sub"] = subject
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Federated": f"arn:aws:iam::{identity.account}:oidc-provider/{issuer}"},
                "Action": "sts:AssumeRoleWithWebIdentity",
                "Condition": conditions,
            }
        ],
    }


def _format_github_subject(identity: CiIdentity, purpose: CiPurpose) -> tuple[str, str]:
    endings = {
        CiPurpose.PREVIEW: "pull_request",
        # A job with an environment has this subject, whatever branch it is on: the environment's rules limit branches.
        CiPurpose.APPLY: f"environment:{identity.environment}",
        CiPurpose.DRIFT: f"ref:refs/heads/{identity.branch}",
    }
    return "StringEquals", f"repo:{identity.subject}:{endings[purpose]}"


def _format_gitlab_subject(identity: CiIdentity, purpose: CiPurpose) -> tuple[str, str]:
    branch_prefix = f"project_path:{identity.repository}:ref_type:branch:ref"
    if purpose is CiPurpose.PREVIEW:
        return "StringLike", f"{branch_prefix}:*"
    return "StringEquals", f"{branch_prefix}:{identity.branch}"
