"""The decision: may this caller do this action on this resource?

Follows the IAM User Guide, "Policy evaluation logic", for one account: an explicit deny in any policy wins; a resource
policy that names a session or everybody decides alone; one that names a role is still limited by session policies and
the boundary; one that names the account leaves it to the identity's policies; what identity policies allow is cut down
by the permissions boundary and by session policies. A user whom a resource policy names is not limited by a boundary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lakewright_sandbox.policies.callers import Caller, PrincipalMatch
from lakewright_sandbox.policies.document import Policy, Statement
from lakewright_sandbox.policies.patterns import Context


@dataclass(frozen=True)
class IdentityPolicies:
    """The policies that go with an identity. No `boundary` or `session` (None) limits nothing."""

    identity: tuple[Policy, ...] = ()
    boundary: Policy | None = None
    session: tuple[Policy, ...] | None = None


@dataclass(frozen=True)
class Request:
    """One action on one resource. Context keys are in lower case; the caller's own are added by `decide`."""

    action: str
    resource: str
    context: Context = field(default_factory=dict)


@dataclass(frozen=True)
class PolicyDecision:
    """Whether it is allowed, and if not why, worded as AWS words it."""

    allowed: bool
    message: str = ""


def decide(
    caller: Caller,
    rights: IdentityPolicies,
    request: Request,
    resource_policy: Policy | None = None,
    *,
    trust_needed: bool = False,
) -> PolicyDecision:
    """Evaluates everything that applies.

    `trust_needed`: the resource policy must agree as well, as a role's trust policy must.
    """
    asked = Request(request.action, request.resource, {**request.context, **caller.context})
    on_resource = list(_covering([resource_policy] if resource_policy else [], asked))
    refusal = _explicit_deny(caller, rights, asked, on_resource) or _missing_allow(
        caller, rights, asked, on_resource, trust_needed=trust_needed
    )
    if refusal is None:
        return PolicyDecision(True)
    return PolicyDecision(
        False,
        f'User: {caller.arn} is not authorized to perform: {asked.action} on resource: "{asked.resource}" {refusal}',
    )


def _explicit_deny(
    caller: Caller, rights: IdentityPolicies, asked: Request, on_resource: Sequence[Statement]
) -> str | None:
    for name, policies in (("an identity-based policy", rights.identity), *_limits(rights)):
        if any(_covering(policies, asked, "Deny")):
            return f"with an explicit deny in {name}"
    if any(s.effect == "Deny" and s.principals and s.principals.denies(caller) for s in on_resource):
        return "with an explicit deny in a resource-based policy"
    return None


def _missing_allow(
    caller: Caller, rights: IdentityPolicies, asked: Request, on_resource: Sequence[Statement], *, trust_needed: bool
) -> str | None:
    grant = max(
        (s.principals.grant(caller) for s in on_resource if s.effect == "Allow" and s.principals),
        default=PrincipalMatch.NONE,
    )
    if grant is PrincipalMatch.NONE and (trust_needed or caller.kind == "anonymous"):
        return f"because no resource-based policy allows the {asked.action} action"
    # A user's own session (an STS of MinIO's kind) is never more than its session policy; a role's may be.
    unlimited = PrincipalMatch.DIRECT if caller.kind == "role" else PrincipalMatch.IDENTITY
    if grant >= unlimited and (caller.kind == "role" or rights.session is None):
        return None
    if grant < PrincipalMatch.IDENTITY and not any(_covering(rights.identity, asked, "Allow")):
        return f"because no identity-based policy allows the {asked.action} action"
    for name, policies in _limits(rights):
        if not any(_covering(policies, asked, "Allow")):
            return f"because no {name.partition(' ')[2]} allows the {asked.action} action"
    return None


def _limits(rights: IdentityPolicies) -> list[tuple[str, Sequence[Policy]]]:
    limits: list[tuple[str, Sequence[Policy]]] = []
    if rights.boundary is not None:
        limits.append(("a permissions boundary", (rights.boundary,)))
    if rights.session is not None:
        limits.append(("a session policy", rights.session))
    return limits


def _covering(policies: Sequence[Policy], request: Request, effect: str | None = None) -> Iterator[Statement]:
    for policy in policies:
        for statement in policy.statements:
            if effect in (None, statement.effect) and statement.covers(
                request.action, request.resource, request.context
            ):
                yield statement
