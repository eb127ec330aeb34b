"""The caller of a request, and how Principal elements of a policy match it.

Rules from the IAM User Guide, "AWS JSON policy elements: Principal" and "NotPrincipal".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

from lakewright_sandbox.policies.patterns import Context


class PrincipalMatch(IntEnum):
    """The precision with which a Principal element names the caller; it decides which policies still limit an Allow."""

    NONE = 0
    ACCOUNT = 1  # the account: the identity's own policies decide
    IDENTITY = 2  # the role or user: session policies and a role's boundary still limit it
    DIRECT = 3  # this very session, or `*`: only an explicit deny limits it


@dataclass(frozen=True)
class Caller:
    """An authenticated identity, an AWS service, a token of an OIDC provider, or an `anonymous` caller."""

    kind: Literal["user", "role", "service", "web-identity", "anonymous"]
    account: str = ""
    arn: str = "anonymous"  # a user's ARN, or the session's (arn:aws:sts::...:assumed-role/ROLE/SESSION)
    # a user's ARN, the role's (arn:aws:iam::...:role/PATH/ROLE), the name of a service, or the ARN of an OIDC provider
    identity_arn: str = ""
    unique_id: str = ""  # AIDA... or AROA...
    context: Context = field(default_factory=dict[str, Sequence[str]])  # condition keys of the identity

    @property
    def root_arn(self) -> str:
        """Return the ARN that stands for the caller's whole account."""
        return f"arn:aws:iam::{self.account}:root"

    @property
    def has_policies(self) -> bool:
        """Return whether identity policies can apply: users and roles have some, all others have none."""
        return self.kind in ("user", "role")


@dataclass(frozen=True)
class Principals:
    """A Principal or NotPrincipal element. CanonicalUser entries match no caller here."""

    aws: tuple[str, ...]
    services: tuple[str, ...] = ()
    federated: tuple[str, ...] = ()
    negated: bool = False

    def match(self, caller: Caller) -> PrincipalMatch:
        """Return how closely an Allow with this element names the caller."""
        closest = max((_match(entry, caller) for entry in self._entries(caller)), default=PrincipalMatch.NONE)
        if not self.negated:
            return closest
        return PrincipalMatch.NONE if closest is not PrincipalMatch.NONE else PrincipalMatch.DIRECT

    def denies(self, caller: Caller) -> bool:
        """Return whether a Deny with this element applies to the caller.

        NotPrincipal excludes a caller only if it lists all parts of the caller: account and user, or account, role and
        session.
        """
        if not self.negated:
            return self.match(caller) is not PrincipalMatch.NONE
        if "*" in self.aws or (not caller.has_policies and caller.identity_arn in self._entries(caller)):
            return False
        entries = set(self.aws)
        account = bool(entries & {caller.account, caller.root_arn})
        return not (account and caller.identity_arn in entries and caller.arn in entries)

    def _entries(self, caller: Caller) -> tuple[str, ...]:
        """Return the entries that can name a caller of this kind. `*` among the entries of AWS means everyone."""
        kind_entries = {"service": self.services, "web-identity": self.federated}.get(caller.kind)
        return self.aws if kind_entries is None else (*kind_entries, *(entry for entry in self.aws if entry == "*"))


def _match(entry: str, caller: Caller) -> PrincipalMatch:
    if entry == "*":
        return PrincipalMatch.DIRECT
    if not caller.has_policies:
        return PrincipalMatch.DIRECT if entry == caller.identity_arn else PrincipalMatch.NONE
    if entry in (caller.account, caller.root_arn):
        return PrincipalMatch.ACCOUNT
    if caller.kind == "role" and entry == caller.arn:
        return PrincipalMatch.DIRECT
    if entry in (caller.identity_arn, caller.unique_id):
        return PrincipalMatch.IDENTITY
    return PrincipalMatch.NONE
