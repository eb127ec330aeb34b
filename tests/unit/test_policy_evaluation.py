"""Decisions by AWS's documented evaluation logic: each test covers one rule."""

import json
from typing import Any

import pytest
from lakewright_sandbox.policies.callers import Caller
from lakewright_sandbox.policies.document import Policy, parse
from lakewright_sandbox.policies.evaluation import ActionRequest, IdentityPolicies, PolicyDecision, decide

ACCOUNT = "123456789012"
USER_ARN = f"arn:aws:iam::{ACCOUNT}:user/ann"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/team/reader"
SESSION_ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/reader/s1"
ROOT_ARN = f"arn:aws:iam::{ACCOUNT}:root"
OBJECT = "arn:aws:s3:::bucket/a/key"

USER = Caller(
    "user", ACCOUNT, USER_ARN, USER_ARN, "AIDAUSER", {"aws:username": ["ann"], "aws:principalarn": [USER_ARN]}
)
SESSION = Caller("role", ACCOUNT, SESSION_ARN, ROLE_ARN, "AROAROLE", {"aws:principalarn": [ROLE_ARN]})
NOBODY = Caller("anonymous")


def identity(*statements: dict[str, Any]) -> Policy:
    return parse(json.dumps({"Version": "2012-10-17", "Statement": list(statements)}), "identity")


def create_bucket_policy(principal: Any, effect: str = "Allow", **more: Any) -> Policy:
    element = more.pop("element", "Principal")
    statement = {"Effect": effect, element: principal, "Action": "s3:*", "Resource": "*", **more}
    return parse(json.dumps({"Version": "2012-10-17", "Statement": [statement]}), "resource")


def trust(principal: Any, **more: Any) -> Policy:
    statement = {"Effect": "Allow", "Principal": principal, "Action": ["sts:AssumeRole"], **more}
    return parse(json.dumps({"Version": "2012-10-17", "Statement": [statement]}), "trust")


def allow(action: str = "*", resource: str = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: str = "*", resource: str = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Deny", "Action": action, "Resource": resource, **more}


ALL = identity(allow())
NOTHING = identity(allow("iam:ListUsers"))
DENY_ALL = identity(deny())


def get(
    caller: Caller, rights: IdentityPolicies, bucket_policy: Policy | None = None, **context: list[str]
) -> PolicyDecision:
    keys = {key.replace("__", ":").lower(): value for key, value in context.items()}
    return decide(caller, rights, ActionRequest("s3:GetObject", OBJECT, keys), bucket_policy)


def assume(caller: Caller, rights: IdentityPolicies, policy: Policy | None, **context: list[str]) -> PolicyDecision:
    keys = {key.replace("__", ":").lower(): value for key, value in context.items()}
    return decide(caller, rights, ActionRequest("sts:AssumeRole", ROLE_ARN, keys), policy, trust_needed=True)


class TestIdentityPolicies:
    def test_without_any_policy_everything_is_denied(self) -> None:
        decision = get(USER, IdentityPolicies())
        assert not decision.allowed
        assert decision.message == (
            f'User: {USER_ARN} is not authorized to perform: s3:GetObject on resource: "{OBJECT}" '
            "because no identity-based policy allows the s3:GetObject action"
        )

    def test_one_allow_is_enough(self) -> None:
        assert get(USER, IdentityPolicies((NOTHING, ALL))).allowed

    def test_explicit_deny_overrides_every_allow(self) -> None:
        decision = get(USER, IdentityPolicies((ALL, DENY_ALL)), create_bucket_policy({"AWS": USER_ARN}))
        assert not decision.allowed
        assert decision.message.endswith("with an explicit deny in an identity-based policy")

    @pytest.mark.parametrize(
        ("statement", "allowed"),
        [
            (allow("s3:GetObject", "arn:aws:s3:::bucket/a/*"), True),
            (allow("s3:GetObject", "arn:aws:s3:::bucket/b/*"), False),
            (allow("s3:PutObject"), False),
            ({"Effect": "Allow", "NotAction": "s3:Get*", "Resource": "*"}, False),
            ({"Effect": "Allow", "NotAction": "s3:Put*", "Resource": "*"}, True),
            ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::bucket/a/*"}, False),
            ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::bucket/b/*"}, True),
            (allow("s3:GetObject", "arn:aws:s3:::bucket/${aws:username}/*"), False),
            (allow(Condition={"StringEquals": {"aws:username": "ann"}}), True),
            (allow(Condition={"StringEquals": {"aws:username": ["bob", "ann"]}}), True),
            (allow(Condition={"StringEquals": {"aws:username": "bob"}}), False),
            (allow(Condition={"StringEquals": {"aws:username": "ann", "aws:absent": "x"}}), False),
            (allow(Condition={"StringEquals": {"aws:username": "ann"}, "Null": {"aws:absent": "true"}}), True),
        ],
    )
    def test_all_elements_of_a_statement_must_match(self, statement: dict[str, Any], *, allowed: bool) -> None:
        assert get(USER, IdentityPolicies((identity(statement),))).allowed is allowed

    def test_deny_with_unmet_condition_denies_nothing(self) -> None:
        insecure = deny(Condition={"Bool": {"aws:SecureTransport": "false"}})
        assert get(USER, IdentityPolicies((ALL, identity(insecure))), aws__SecureTransport=["true"]).allowed
        assert not get(USER, IdentityPolicies((ALL, identity(insecure))), aws__SecureTransport=["false"]).allowed
        assert get(USER, IdentityPolicies((ALL, identity(insecure)))).allowed  # An absent key does not match.

    def test_deny_unless_tagged_applies_to_the_untagged(self) -> None:
        untagged = deny(Condition={"StringNotEquals": {"aws:PrincipalTag/team": "data"}})
        assert not get(USER, IdentityPolicies((ALL, identity(untagged)))).allowed


class TestPermissionsBoundary:
    def test_boundary_grants_nothing(self) -> None:
        assert not get(SESSION, IdentityPolicies((), boundary=ALL)).allowed

    def test_boundary_limits_identity_policies(self) -> None:
        decision = get(SESSION, IdentityPolicies((ALL,), boundary=NOTHING))
        assert not decision.allowed
        assert "no permissions boundary allows" in decision.message

    def test_both_must_allow(self) -> None:
        assert get(SESSION, IdentityPolicies((ALL,), boundary=ALL)).allowed

    def test_deny_of_the_boundary_is_a_deny(self) -> None:
        assert not get(SESSION, IdentityPolicies((ALL,), boundary=identity(allow(), deny("s3:*")))).allowed


class TestSessionPolicies:
    def test_session_policies_grant_nothing(self) -> None:
        assert not get(SESSION, IdentityPolicies((NOTHING,), session=(ALL,))).allowed

    def test_session_policies_limit_the_role(self) -> None:
        decision = get(
            SESSION, IdentityPolicies((ALL,), session=(identity(allow("s3:GetObject", "arn:aws:s3:::bucket/b/*")),))
        )
        assert not decision.allowed
        assert "no session policy allows" in decision.message

    def test_intersection_is_allowed(self) -> None:
        assert get(SESSION, IdentityPolicies((ALL,), session=(identity(allow("s3:GetObject", OBJECT)),))).allowed

    def test_session_policies_are_united_before_they_limit(self) -> None:
        assert get(SESSION, IdentityPolicies((ALL,), session=(NOTHING, identity(allow("s3:GetObject"))))).allowed

    def test_deny_in_one_session_policy_is_final(self) -> None:
        assert not get(SESSION, IdentityPolicies((ALL,), session=(ALL, DENY_ALL))).allowed

    def test_role_without_session_policy_is_not_limited(self) -> None:
        assert get(SESSION, IdentityPolicies((ALL,))).allowed

    def test_all_three_limits_at_once(self) -> None:
        assert get(SESSION, IdentityPolicies((ALL,), boundary=ALL, session=(ALL,))).allowed
        assert not get(SESSION, IdentityPolicies((ALL,), boundary=NOTHING, session=(ALL,))).allowed


class TestResourcePolicies:
    def test_naming_a_user_is_enough(self) -> None:
        assert get(USER, IdentityPolicies(), create_bucket_policy({"AWS": USER_ARN})).allowed
        assert get(USER, IdentityPolicies(), create_bucket_policy({"AWS": "AIDAUSER"})).allowed

    def test_naming_a_user_is_not_limited_by_a_boundary(self) -> None:
        assert get(USER, IdentityPolicies((), boundary=NOTHING), create_bucket_policy({"AWS": USER_ARN})).allowed

    def test_naming_a_role_needs_no_identity_policy(self) -> None:
        assert get(SESSION, IdentityPolicies(), create_bucket_policy({"AWS": ROLE_ARN})).allowed

    def test_naming_a_role_is_limited_by_session_policy_and_boundary(self) -> None:
        assert not get(
            SESSION, IdentityPolicies((), session=(NOTHING,)), create_bucket_policy({"AWS": ROLE_ARN})
        ).allowed
        assert not get(SESSION, IdentityPolicies((), boundary=NOTHING), create_bucket_policy({"AWS": ROLE_ARN})).allowed
        assert get(
            SESSION, IdentityPolicies((), boundary=ALL, session=(ALL,)), create_bucket_policy({"AWS": ROLE_ARN})
        ).allowed

    def test_naming_the_session_is_limited_by_neither(self) -> None:
        rights = IdentityPolicies((), boundary=NOTHING, session=(NOTHING,))
        assert get(SESSION, rights, create_bucket_policy({"AWS": SESSION_ARN})).allowed

    def test_role_arn_condition_works_like_naming_the_session(self) -> None:
        """The principal is everybody, and the condition has the role's ARN."""
        policy = create_bucket_policy("*", Condition={"ArnEquals": {"aws:PrincipalArn": ROLE_ARN}})
        assert get(SESSION, IdentityPolicies((), session=(NOTHING,)), policy).allowed
        assert not get(USER, IdentityPolicies(), policy).allowed

    def test_naming_the_account_needs_identity_policies(self) -> None:
        for principal in (ROOT_ARN, ACCOUNT):
            assert not get(USER, IdentityPolicies(), create_bucket_policy({"AWS": principal})).allowed
            assert get(USER, IdentityPolicies((ALL,)), create_bucket_policy({"AWS": principal})).allowed

    def test_naming_another_user_grants_nothing(self) -> None:
        for principal in ({"AWS": f"{USER_ARN}a"}, {"AWS": "999999999999"}, {"Service": "s3.amazonaws.com"}):
            assert not get(USER, IdentityPolicies(), create_bucket_policy(principal)).allowed

    def test_another_session_of_the_role_is_not_named(self) -> None:
        other = f"arn:aws:sts::{ACCOUNT}:assumed-role/reader/s2"
        assert not get(SESSION, IdentityPolicies(), create_bucket_policy({"AWS": other})).allowed

    @pytest.mark.parametrize("principal", [USER_ARN, ROOT_ARN, ACCOUNT, "*"])
    def test_deny_applies_to_everybody_it_names(self, principal: str) -> None:
        decision = get(USER, IdentityPolicies((ALL,)), create_bucket_policy({"AWS": principal}, "Deny"))
        assert not decision.allowed
        assert decision.message.endswith("with an explicit deny in a resource-based policy")

    def test_deny_of_the_role_applies_to_its_sessions(self) -> None:
        assert not get(SESSION, IdentityPolicies((ALL,)), create_bucket_policy({"AWS": ROLE_ARN}, "Deny")).allowed
        assert not get(SESSION, IdentityPolicies((ALL,)), create_bucket_policy({"AWS": SESSION_ARN}, "Deny")).allowed

    def test_deny_of_another_user_does_not_apply(self) -> None:
        assert get(USER, IdentityPolicies((ALL,)), create_bucket_policy({"AWS": ROLE_ARN}, "Deny")).allowed

    def test_identity_policies_alone_are_enough(self) -> None:
        assert get(USER, IdentityPolicies((ALL,)), create_bucket_policy({"AWS": ROLE_ARN})).allowed

    def test_not_principal_needs_all_forms_of_an_exception(self) -> None:
        """Only a principal that is listed in all its forms is excepted."""

        def policy(*arns: str) -> Policy:
            return create_bucket_policy({"AWS": list(arns)}, "Deny", element="NotPrincipal")

        assert get(SESSION, IdentityPolicies((ALL,)), policy(ROOT_ARN, ROLE_ARN, SESSION_ARN)).allowed
        assert not get(SESSION, IdentityPolicies((ALL,)), policy(ROLE_ARN, SESSION_ARN)).allowed
        assert not get(SESSION, IdentityPolicies((ALL,)), policy(ROOT_ARN, ROLE_ARN)).allowed
        assert get(USER, IdentityPolicies((ALL,)), policy(ROOT_ARN, USER_ARN)).allowed
        assert not get(USER, IdentityPolicies((ALL,)), policy(ROOT_ARN, ROLE_ARN, SESSION_ARN)).allowed


class TestAnonymous:
    def test_anonymous_requests_are_denied(self) -> None:
        assert not get(NOBODY, IdentityPolicies()).allowed
        assert not get(NOBODY, IdentityPolicies(), create_bucket_policy({"AWS": ROOT_ARN})).allowed

    def test_everybody_includes_anonymous_requests(self) -> None:
        assert get(NOBODY, IdentityPolicies(), create_bucket_policy("*")).allowed
        assert get(NOBODY, IdentityPolicies(), create_bucket_policy({"AWS": "*"})).allowed

    def test_condition_on_the_caller_excludes_anonymous_requests(self) -> None:
        policy = create_bucket_policy("*", Condition={"StringEquals": {"aws:PrincipalAccount": ACCOUNT}})
        assert not get(NOBODY, IdentityPolicies(), policy).allowed


class TestTrust:
    MAY_ASSUME = IdentityPolicies((identity(allow("sts:AssumeRole")),))

    def test_the_callers_permission_is_not_enough(self) -> None:
        assert not assume(USER, self.MAY_ASSUME, None).allowed
        assert not assume(USER, self.MAY_ASSUME, trust({"AWS": SESSION_ARN})).allowed

    def test_naming_the_user_is_enough(self) -> None:
        assert assume(USER, IdentityPolicies(), trust({"AWS": USER_ARN})).allowed

    @pytest.mark.parametrize("principal", [ROOT_ARN, ACCOUNT])
    def test_naming_the_account_needs_the_callers_permission(self, principal: str) -> None:
        assert not assume(USER, IdentityPolicies(), trust({"AWS": principal})).allowed
        assert assume(USER, self.MAY_ASSUME, trust({"AWS": principal})).allowed

    def test_explicit_deny_of_the_caller_is_final(self) -> None:
        assert not assume(USER, IdentityPolicies((DENY_ALL,)), trust({"AWS": USER_ARN})).allowed

    def test_service_is_not_a_user(self) -> None:
        assert not assume(USER, self.MAY_ASSUME, trust({"Service": "ec2.amazonaws.com"})).allowed

    def test_external_id_must_be_present_and_equal(self) -> None:
        policy = trust({"AWS": USER_ARN}, Condition={"StringEquals": {"sts:ExternalId": "right"}})
        assert assume(USER, self.MAY_ASSUME, policy, sts__ExternalId=["right"]).allowed
        assert not assume(USER, self.MAY_ASSUME, policy, sts__ExternalId=["wrong"]).allowed
        assert not assume(USER, self.MAY_ASSUME, policy).allowed

    def test_session_with_a_narrow_policy_cannot_assume_a_role(self) -> None:
        rights = IdentityPolicies((ALL,), session=(identity(allow("s3:*")),))
        assert not assume(SESSION, rights, trust({"AWS": ROOT_ARN})).allowed
        assert not assume(SESSION, rights, trust({"AWS": ROLE_ARN})).allowed


LOGGING = "logging.s3.amazonaws.com"
SERVICE = Caller("service", arn=LOGGING, identity_arn=LOGGING, context={"aws:principalisawsservice": ["true"]})
PROVIDER = f"arn:aws:iam::{ACCOUNT}:oidc-provider/oidc.example/id"
TOKEN = Caller("web-identity", ACCOUNT, PROVIDER, PROVIDER)


class TestServicesAndTokens:
    """Callers without policies of their own: a resource policy must name them."""

    def test_service_is_allowed_by_name_only(self) -> None:
        assert get(SERVICE, IdentityPolicies(), create_bucket_policy({"Service": LOGGING})).allowed
        assert get(SERVICE, IdentityPolicies(), create_bucket_policy("*")).allowed
        assert not get(SERVICE, IdentityPolicies(), create_bucket_policy({"Service": "ec2.amazonaws.com"})).allowed
        assert not get(SERVICE, IdentityPolicies(), create_bucket_policy({"AWS": ROOT_ARN})).allowed
        assert not get(SERVICE, IdentityPolicies()).allowed

    def test_deny_of_everyone_includes_services(self) -> None:
        denying = create_bucket_policy("*", "Deny")
        assert not get(SERVICE, IdentityPolicies(), denying).allowed

    @pytest.mark.parametrize(
        ("key", "denied"), [(["true"], False), (["false"], True), (None, True)], ids=["service", "user", "anonymous"]
    )
    def test_deny_can_except_services(self, key: list[str] | None, *, denied: bool) -> None:
        """BoolIfExists is true without the key, so that anonymous callers are denied."""
        policy = create_bucket_policy("*", "Deny", Condition={"BoolIfExists": {"aws:PrincipalIsAWSService": "false"}})
        context = {"aws__PrincipalIsAWSService": key} if key else {}
        decision = get(USER, IdentityPolicies((ALL,)), policy, **context)
        assert ("explicit deny" in decision.message) == denied

    def test_not_principal_excepts_a_service_by_name(self) -> None:
        allowing = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}
        denying = {"Effect": "Deny", "NotPrincipal": {"Service": LOGGING}, "Action": "s3:*", "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [allowing, denying]})
        other = Caller("service", arn="ec2.amazonaws.com", identity_arn="ec2.amazonaws.com")
        assert get(SERVICE, IdentityPolicies(), parse(document, "resource")).allowed
        assert not get(other, IdentityPolicies(), parse(document, "resource")).allowed

    def test_token_is_allowed_by_its_provider_only(self) -> None:
        assert assume(TOKEN, IdentityPolicies(), trust({"Federated": PROVIDER})).allowed
        assert not assume(TOKEN, IdentityPolicies(), trust({"Federated": f"{PROVIDER}2"})).allowed
        assert not assume(TOKEN, IdentityPolicies(), trust({"AWS": PROVIDER})).allowed


FOREIGN_ARN = "arn:aws:iam::210987654321:user/eve"
FOREIGN = Caller("user", "210987654321", FOREIGN_ARN, FOREIGN_ARN, "AIDAEVE")


class TestOtherAccounts:
    """Between accounts, resource policy and identity policies must both allow."""

    def test_both_sides_must_allow(self) -> None:
        policy = create_bucket_policy({"AWS": FOREIGN_ARN})
        owner = {"aws__ResourceAccount": [ACCOUNT]}
        assert get(FOREIGN, IdentityPolicies((ALL,)), policy, **owner).allowed
        assert not get(FOREIGN, IdentityPolicies(), policy, **owner).allowed
        assert not get(FOREIGN, IdentityPolicies((ALL,)), **owner).allowed

    def test_naming_the_other_account_is_enough(self) -> None:
        policy = create_bucket_policy({"AWS": "arn:aws:iam::210987654321:root"})
        assert get(FOREIGN, IdentityPolicies((ALL,)), policy, aws__ResourceAccount=[ACCOUNT]).allowed

    def test_boundary_limits_a_caller_of_another_account(self) -> None:
        rights = IdentityPolicies((ALL,), boundary=NOTHING)
        assert not get(
            FOREIGN, rights, create_bucket_policy({"AWS": FOREIGN_ARN}), aws__ResourceAccount=[ACCOUNT]
        ).allowed


class TestOwnSessions:
    """A user's own session, as S3-compatible stores issue it: limited to its session policy."""

    def test_resource_policies_do_not_lift_the_limit(self) -> None:
        """The session policy limits even where a resource policy names the user or everybody."""
        rights = IdentityPolicies((ALL,), session=(NOTHING,))
        assert not get(USER, rights, create_bucket_policy({"AWS": USER_ARN})).allowed
        assert not get(USER, rights, create_bucket_policy("*")).allowed

    def test_intersection_is_allowed(self) -> None:
        assert get(USER, IdentityPolicies((ALL,), session=(identity(allow("s3:GetObject", OBJECT)),))).allowed
