"""Trust policies of the roles of CI: one repository, one purpose, no wildcard in the subject of changes."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.ci.errors import SettingError
from lakewright.ci.trust_policies import CiIdentity, CiPurpose, build_trust_policy

GITHUB = CiIdentity("123456789012", "acme/lakehouse")
GITLAB = CiIdentity("123456789012", "acme/data/lakehouse", gitlab="gitlab.example.com")


def conditions(identity: CiIdentity, purpose: str) -> dict[str, Any]:
    (statement,) = build_trust_policy(identity, CiPurpose(purpose))["Statement"]
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    return statement["Condition"]


@pytest.mark.parametrize(
    ("purpose", "subject"),
    [
        ("preview", "repo:acme/lakehouse:pull_request"),
        ("apply", "repo:acme/lakehouse:environment:production"),
        ("drift", "repo:acme/lakehouse:ref:refs/heads/main"),
    ],
)
def test_github_subject_of_each_purpose(purpose: str, subject: str) -> None:
    issuer = "token.actions.githubusercontent.com"

    assert conditions(GITHUB, purpose) == {
        "StringEquals": {f"{issuer}:aud": "sts.amazonaws.com", f"{issuer}:sub": subject}
    }


def test_new_github_repositories_have_numbers() -> None:
    identity = CiIdentity("123456789012", "acme/lakehouse", owner_id=12, repository_id=345)

    subjects = conditions(identity, "apply")["StringEquals"].values()

    assert "repo:acme@12/lakehouse@345:environment:production" in subjects


def test_gitlab_changes_from_the_protected_branch_only() -> None:
    subject = {"gitlab.example.com:sub": "project_path:acme/data/lakehouse:ref_type:branch:ref:main"}
    audience = {"gitlab.example.com:aud": "https://gitlab.example.com"}

    assert conditions(GITLAB, "apply") == {"StringEquals": {**audience, **subject}}
    assert conditions(GITLAB, "preview")["StringEquals"] == audience
    assert conditions(GITLAB, "preview")["StringLike"] == {
        "gitlab.example.com:sub": "project_path:acme/data/lakehouse:ref_type:branch:ref:*"
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"account": "1234"},
        {"repository": "acme/*"},
        {"repository": "acme"},
        {"repository": "acme/data/lakehouse"},
        {"branch": "*"},
        {"environment": "prod*"},
        {"gitlab": "https://gitlab.com"},
    ],
)
def test_wildcards_and_other_forms_are_refused(wrong: dict[str, str]) -> None:
    settings = {"account": "123456789012", "repository": "acme/lakehouse", **wrong}

    with pytest.raises(SettingError, match=f"{next(iter(wrong))}: expected"):
        CiIdentity(**settings)


def test_numbers_come_together_and_for_github_only() -> None:
    with pytest.raises(SettingError, match="both or none"):
        CiIdentity("123456789012", "acme/lakehouse", owner_id=1)
    with pytest.raises(SettingError, match="none for GitLab"):
        CiIdentity("123456789012", "acme/lakehouse", gitlab="gitlab.com", owner_id=1, repository_id=2)
