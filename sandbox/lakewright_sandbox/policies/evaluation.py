"""Decide whether a caller may do an action on a resource.

Follows the IAM User Guide, "Policy evaluation logic": an explicit deny in any policy wins. A resource
policy that names a session or `*` decides alone; if it names a role, session policies and the boundary still apply;
if it names the account, it leaves the decision to the identity's policies. Permissions boundary and session
policies limit what identity policies allow. A boundary does not limit a user whom a resource policy names. Between
accounts, both the resource policy and the identity's policies must allow a request.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lakewright_sandbox.policies.callers import Caller, PrincipalMatch
from lakewright_sandbox.policies.document import Policy, Statement
from lakewright_sandbox.policies.patterns import Context


@dataclass(frozen=True)
class IdentityPolicies:
    """The policies of an identity. A `boundary` or `session` of None limits nothing."""

    identity: tuple[Policy, ...] = ()
    boundary: Policy | None = None
    session: tuple[Policy, ...] | None = None


@dataclass(frozen=True)
class ActionRequest:
    """One action on one resource. Context keys are in lower case; `decide` adds the caller's own."""

    action: str
    resource: str
    context: Context = field(default_factory=dict[str, Sequence[str]])


@dataclass(frozen=True)
class PolicyDecision:
    """The decision; a denial has the reason in AWS's words."""

    allowed: bool
    message: str = ""


def decide(
    caller: Caller,
    rights: IdentityPolicies,
    request: ActionRequest,
    resource_policy: Policy | None = None,
    *,
    trust_needed: bool = False,
) -> PolicyDecision:
    """Evaluate all policies that apply.

    Args:
        caller: The caller.
        rights: The caller's policies.
        request: The requested action.
        resource_policy: The policy of the resource.
        trust_needed: Whether the resource policy must allow the request too, as a role's trust policy must.

    Returns:
        The decision.
    """
    full_request = ActionRequest(request.action, request.resource, {**request.context, **caller.context})
    on_resource = list(_list_covering_statements([resource_policy] if resource_policy else [], full_request))
    refusal = _explicit_deny(caller, rights, full_request, on_resource) or _find_missing_allow(
        caller, rights, full_request, on_resource, trust_needed=trust_needed
    )
    if refusal is None:
        return PolicyDecision(allowed=True)
    return PolicyDecision(
        allowed=False,
        message=f"User: {caller.arn} is not authorized to perform: {full_request.action} "
        f'on resource: "{full_request.resource}" {refusal}',
    )


def _explicit_deny(
    caller: Caller, rights: IdentityPolicies, full_request: ActionRequest, on_resource: Sequence[Statement]
) -> str | None:
    for name, policies in (("an identity-based policy", rights.identity), *_limits(rights)):
        if any(_list_covering_statements(policies, full_request, "Deny")):
            return f"with an explicit deny in {name}"
    if any(s.effect == "Deny" and s.principals and s.principals.denies(caller) for s in on_resource):
        return "with an explicit deny in a resource-based policy"
    return None


def _find_missing_allow(
    caller: Caller,
    rights: IdentityPolicies,
    full_request: ActionRequest,
    on_resource: Sequence[Statement],
    *,
    trust_needed: bool,
) -> str | None:
    grant = max(
        (s.principals.match(caller) for s in on_resource if s.effect == "Allow" and s.principals),
        default=PrincipalMatch.NONE,
    )
    is_foreign = caller.has_policies and _is_foreign(caller, full_request)
    if grant is PrincipalMatch.NONE and (trust_needed or is_foreign or not caller.has_policies):
        return f"because no resource-based policy allows the {full_request.action} action"
    # A user's own session (an STS of MinIO's kind) is never more than its session policy; a role's may be.
    unlimited = PrincipalMatch.DIRECT if caller.kind == "role" else PrincipalMatch.IDENTITY
    if grant >= unlimited and not is_foreign and (caller.kind != "user" or rights.session is None):
        return None
    if (is_foreign or grant < PrincipalMatch.IDENTITY) and not any(
        _list_covering_statements(rights.identity, full_request, "Allow")
    ):
        return f"because no identity-based policy allows the {full_request.action} action"
    for name, policies in _limits(rights):
        if not any(_list_covering_statements(policies, full_request, "Allow")):
            return f"because no {name.partition(' ')[2]} allows the {full_request.action} action"
    return None


def _is_foreign(caller: Caller, request: ActionRequest) -> bool:
    """Return whether the resource belongs to another account than the caller. Unknown accounts count as the same."""
    owners = request.context.get("aws:resourceaccount", ())
    return bool(owners) and caller.account not in owners


def _limits(rights: IdentityPolicies) -> list[tuple[str, Sequence[Policy]]]:
    limits: list[tuple[str, Sequence[Policy]]] = []
    if rights.boundary is not None:
        limits.append(("a permissions boundary", (rights.boundary,)))
    if rights.session is not None:
        limits.append(("a session policy", rights.session))
    return limits


def _list_covering_statements(
    policies: Sequence[Policy], request: ActionRequest, effect: str | None = None
) -> Iterator[Statement]:
    for policy in policies:
        for statement in policy.statements:
            if effect in (None, statement.effect) and statement.covers(
                request.action, request.resource, request.context
            ):
                yield statement
