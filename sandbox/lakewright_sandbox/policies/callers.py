"""Who makes a request, and what a Principal element in a policy says about them.

Rules from the IAM User Guide, "AWS JSON policy elements: Principal" and "NotPrincipal".
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

from lakewright_sandbox.policies.patterns import Context


class PrincipalMatch(IntEnum):
    """How closely a Principal element names the caller: it decides which other policies still limit what is granted."""

    NONE = 0
    ACCOUNT = 1  # the account: leaves the decision to the identity's own policies
    IDENTITY = 2  # the role or user as such: still limited by session policies and, for a role, its boundary
    DIRECT = 3  # this very session, or everybody: limited by nothing but an explicit deny


@dataclass(frozen=True)
class Caller:
    """An authenticated identity, or nobody (`anonymous`)."""

    kind: Literal["user", "role", "anonymous"]
    account: str = ""
    arn: str = "anonymous"  # a user's ARN, or the session's (arn:aws:sts::...:assumed-role/ROLE/SESSION)
    identity_arn: str = ""  # a user's ARN, or the role's (arn:aws:iam::...:role/PATH/ROLE)
    unique_id: str = ""  # AIDA... or AROA...
    context: Context = field(default_factory=dict)  # the keys that come with the identity

    @property
    def root_arn(self) -> str:
        """The ARN that stands for the caller's whole account."""
        return f"arn:aws:iam::{self.account}:root"


@dataclass(frozen=True)
class Principals:
    """A Principal or NotPrincipal element. Service, Federated and CanonicalUser never are one of our callers."""

    aws: tuple[str, ...]
    services: tuple[str, ...] = ()
    negated: bool = False

    def grant(self, caller: Caller) -> PrincipalMatch:
        """How an Allow with this element names the caller."""
        closest = max((_grant(entry, caller) for entry in self.aws), default=PrincipalMatch.NONE)
        if not self.negated:
            return closest
        return PrincipalMatch.NONE if closest is not PrincipalMatch.NONE else PrincipalMatch.DIRECT

    def denies(self, caller: Caller) -> bool:
        """Whether a Deny with this element is about the caller.

        NotPrincipal excepts a caller only if all that they are is listed: account and user, or account, role, session.
        """
        if not self.negated:
            return self.grant(caller) is not PrincipalMatch.NONE
        if "*" in self.aws:
            return False
        listed = set(self.aws)
        account = bool(listed & {caller.account, caller.root_arn})
        return not (account and caller.identity_arn in listed and caller.arn in listed)


def _grant(entry: str, caller: Caller) -> PrincipalMatch:
    if entry == "*":
        return PrincipalMatch.DIRECT
    if caller.kind == "anonymous":
        return PrincipalMatch.NONE
    if entry in (caller.account, caller.root_arn):
        return PrincipalMatch.ACCOUNT
    if caller.kind == "role" and entry == caller.arn:
        return PrincipalMatch.DIRECT
    if entry in (caller.identity_arn, caller.unique_id):
        return PrincipalMatch.IDENTITY
    return PrincipalMatch.NONE
