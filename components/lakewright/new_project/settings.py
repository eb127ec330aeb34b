"""The settings of a new project, from options or from a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cloud(StrEnum):
    """Where the tenants' buckets are."""

    SANDBOX = "sandbox"
    AWS = "aws"
    S3 = "s3"


class CiSystem(StrEnum):
    """Systems that preview, apply and check the stacks."""

    GITHUB = "github"
    GITLAB = "gitlab"
    NONE = "none"


class AuthenticationKind(StrEnum):
    """How stacks authenticate to Lakekeeper."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 - the name of a kind
    CLIENT_CREDENTIALS = "client-credentials"


class Addition(StrEnum):
    """Parts that some projects have."""

    POLICY = "policy"
    PLATFORM = "platform"
    COMPONENT = "component"


@dataclass(frozen=True)
class LakekeeperAccess:
    """Address of a Lakekeeper, and how stacks authenticate to it; secrets by reference."""

    endpoint: str
    authentication: AuthenticationKind = AuthenticationKind.NONE
    token: str | None = None
    token_url: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    principal_arn: str | None = None
    """AWS identity of the server, which the tenants' roles trust."""


@dataclass(frozen=True)
class ProjectSettings:
    """The settings of a project."""

    name: str
    cloud: Cloud
    environment: str
    lakekeeper: LakekeeperAccess | None = None
    """None with the sandbox."""
    region: str | None = None
    backend: str | None = None
    """URL of the states; None keeps them in the project's folder."""
    ci: CiSystem = CiSystem.NONE
    additions: tuple[Addition, ...] = ()

    @property
    def extras(self) -> tuple[str, ...]:
        """Extras of `lakewright` that the project needs."""
        match self.cloud:
            case Cloud.SANDBOX:
                return ("sandbox", "spark")
            case Cloud.AWS:
                return ("aws", "kubernetes")
            case Cloud.S3:
                return ("kubernetes",)
