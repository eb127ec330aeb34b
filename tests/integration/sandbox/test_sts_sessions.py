"""STS: trust, external ids, session policies and tags, lifetimes, and sessions of users."""

from datetime import timedelta
from typing import Any

import pytest

from tests.integration.sandbox.conftest import (
    ACCOUNT,
    CATALOG_ARN,
    Aws,
    AwsClock,
    allow,
    expect_refusal,
    policy,
    trusts,
)

ROOT = f"arn:aws:iam::{ACCOUNT}:root"


@pytest.fixture
def bucket(aws: Aws) -> str:
    name = aws.bucket()
    for key in ("t1/data", "t2/data"):
        aws.client("s3").put_object(Bucket=name, Key=key, Body=b"x")
    return name


def read(aws: Aws, credentials: dict[str, Any], bucket: str, key: str) -> bytes:
    return aws.client("s3", credentials).get_object(Bucket=bucket, Key=key)["Body"].read()


class TestAssumeRole:
    def test_principals_of_the_trust_policy_may_assume(self, aws: Aws) -> None:
        ann, ann_key = aws.user()
        _, bob_key = aws.user(allow("sts:AssumeRole"))
        role = aws.role(trusts(ann))
        assert aws.assume(role, ann_key)  # named directly: needs no permission of their own
        with expect_refusal():
            aws.assume(role, bob_key)

    def test_a_trusted_accounts_users_need_permission(self, aws: Aws) -> None:
        for principal in (ROOT, ACCOUNT):
            role = aws.role(trusts(principal))
            _, permitted = aws.user(allow("sts:AssumeRole", role))
            _, without = aws.user()
            assert aws.assume(role, permitted)
            with expect_refusal():
                aws.assume(role, without)

    def test_a_service_role_is_for_the_service(self, aws: Aws) -> None:
        service = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        with expect_refusal():
            aws.assume(aws.role(service), "admin")

    def test_a_missing_role_looks_like_a_role_without_trust(self, aws: Aws) -> None:
        with expect_refusal("AccessDenied", "is not authorized to perform: sts:AssumeRole"):
            aws.assume(f"arn:aws:iam::{ACCOUNT}:role/none", "admin")

    @pytest.mark.parametrize("parameters", [{}, {"ExternalId": "wrong"}, {"ExternalId": "the-id-and-more"}])
    def test_the_external_id_is_required(self, aws: Aws, parameters: dict[str, str]) -> None:
        role = aws.role(trusts(CATALOG_ARN, StringEquals={"sts:ExternalId": "the-id"}))
        with expect_refusal():
            aws.assume(role, **parameters)
        assert aws.assume(role, ExternalId="the-id")

    def test_the_session_name_may_be_required(self, aws: Aws) -> None:
        role = aws.role(trusts(CATALOG_ARN, StringLike={"sts:RoleSessionName": "lakekeeper-*"}))
        assert aws.assume(role, RoleSessionName="lakekeeper-sts")
        with expect_refusal():
            aws.assume(role, RoleSessionName="other")

    def test_tags_need_to_be_allowed(self, aws: Aws) -> None:
        tags = {"Tags": [{"Key": "team", "Value": "data"}]}
        without = {"Effect": "Allow", "Principal": {"AWS": CATALOG_ARN}, "Action": "sts:AssumeRole"}
        with expect_refusal("AccessDenied", "sts:TagSession"):
            aws.assume(aws.role(without), **tags)
        role = aws.role(trusts(CATALOG_ARN, StringEqualsIfExists={"aws:RequestTag/team": "data"}))
        assert aws.assume(role, **tags)
        with expect_refusal():
            aws.assume(role, Tags=[{"Key": "team", "Value": "other"}])

    def test_inherited_tags_need_to_be_allowed(self, aws: Aws) -> None:
        """EKS Pod Identity tags its sessions, so each role that they assume must allow `sts:TagSession`."""
        first = aws.role(trusts(CATALOG_ARN), allow(["sts:AssumeRole", "sts:TagSession"]))
        tagged = aws.assume(first, Tags=[{"Key": "pod", "Value": "a"}], TransitiveTagKeys=["pod"])
        without = aws.role({**trusts(first), "Action": "sts:AssumeRole"})
        with expect_refusal():
            aws.assume(without, tagged)
        assert aws.assume(aws.role(trusts(first)), tagged)


class TestRightsOfSessions:
    def test_session_policy_and_role_must_both_allow(self, aws: Aws, bucket: str) -> None:
        role = aws.role(trusts(CATALOG_ARN), allow("s3:*", f"arn:aws:s3:::{bucket}/*"))
        narrow = policy(allow(["s3:GetObject", "iam:*"], f"arn:aws:s3:::{bucket}/t1/*"))
        session = aws.assume(role, Policy=narrow)
        assert read(aws, session, bucket, "t1/data") == b"x"
        with expect_refusal("AccessDenied", "no session policy allows"):
            read(aws, session, bucket, "t2/data")
        with expect_refusal():
            aws.client("s3", session).put_object(Bucket=bucket, Key="t1/data", Body=b"y")
        with expect_refusal():
            aws.client("iam", session).list_users()
        assert read(aws, aws.assume(role), bucket, "t2/data") == b"x"

    def test_managed_policies_limit_as_well(self, aws: Aws, bucket: str) -> None:
        role = aws.role(trusts(CATALOG_ARN), allow("s3:*", f"arn:aws:s3:::{bucket}/*"))
        arn = aws.client("iam").create_policy(
            PolicyName=f"only-{bucket}", PolicyDocument=policy(allow("s3:*", f"arn:aws:s3:::{bucket}/t1/*"))
        )["Policy"]["Arn"]
        session = aws.assume(role, PolicyArns=[{"arn": arn}])
        assert read(aws, session, bucket, "t1/data") == b"x"
        with expect_refusal():
            read(aws, session, bucket, "t2/data")

    def test_attached_and_group_policies_count(self, aws: Aws, bucket: str) -> None:
        iam = aws.client("iam")
        arn = iam.create_policy(
            PolicyName=f"read-{bucket}", PolicyDocument=policy(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/t1/*"))
        )["Policy"]["Arn"]
        role = aws.role(trusts(CATALOG_ARN))
        iam.attach_role_policy(RoleName=role.rpartition("/")[2], PolicyArn=arn)
        assert read(aws, aws.assume(role), bucket, "t1/data") == b"x"

        user, key = aws.user()
        iam.create_group(GroupName=bucket)
        iam.attach_group_policy(GroupName=bucket, PolicyArn=arn)
        with expect_refusal():
            read(aws, key, bucket, "t1/data")
        iam.add_user_to_group(GroupName=bucket, UserName=user.rpartition("/")[2])
        assert read(aws, key, bucket, "t1/data") == b"x"

    def test_a_boundary_limits_the_role(self, aws: Aws, bucket: str) -> None:
        boundary = aws.client("iam").create_policy(
            PolicyName=f"limit-{bucket}", PolicyDocument=policy(allow("s3:*", f"arn:aws:s3:::{bucket}/t1/*"))
        )["Policy"]["Arn"]
        role = aws.role(trusts(CATALOG_ARN), allow("s3:*"), PermissionsBoundary=boundary)
        session = aws.assume(role)
        assert read(aws, session, bucket, "t1/data") == b"x"
        with expect_refusal("AccessDenied", "no permissions boundary allows"):
            read(aws, session, bucket, "t2/data")

    def test_rights_follow_the_roles_policy_at_once(self, aws: Aws, bucket: str) -> None:
        role = aws.role(trusts(CATALOG_ARN), allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*"))
        session = aws.assume(role)
        assert read(aws, session, bucket, "t1/data") == b"x"
        aws.client("iam").delete_role_policy(RoleName=role.rpartition("/")[2], PolicyName="p")
        with expect_refusal():
            read(aws, session, bucket, "t1/data")

    def test_tags_become_the_principals(self, aws: Aws, bucket: str) -> None:
        home = f"arn:aws:s3:::{bucket}/${{aws:PrincipalTag/table}}/*"
        role = aws.role(trusts(CATALOG_ARN), allow("s3:GetObject", home))
        session = aws.assume(role, Tags=[{"Key": "table", "Value": "t1"}])
        assert read(aws, session, bucket, "t1/data") == b"x"
        with expect_refusal():
            read(aws, session, bucket, "t2/data")
        with expect_refusal():
            read(aws, aws.assume(role), bucket, "t1/data")

    def test_the_identity_of_a_session(self, aws: Aws) -> None:
        role = aws.role(trusts(CATALOG_ARN))
        name = role.rpartition("/")[2]
        identity = aws.client("sts", aws.assume(role)).get_caller_identity()
        assert identity["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/session"
        assert identity["UserId"].endswith(":session")
        assert aws.client("sts", "lakekeeper").get_caller_identity()["Arn"] == CATALOG_ARN


class TestInvalidRequests:
    @pytest.mark.parametrize(
        ("parameters", "code"),
        [
            ({"DurationSeconds": 43201}, "ValidationError"),
            ({"DurationSeconds": 3601}, "ValidationError"),  # the role's own maximum
            ({"RoleSessionName": "with space"}, "ValidationError"),
            ({"Policy": "{"}, "MalformedPolicyDocument"),
            ({"Policy": policy(allow("s3:*")) + " " * 2048}, "ValidationError"),
            ({"Policy": policy(allow("s3:*")).replace("s3:*", "s3:*データ")}, "ValidationError"),
        ],
    )
    def test_parameters(self, aws: Aws, parameters: dict[str, Any], code: str) -> None:
        with expect_refusal(code):
            aws.assume(aws.role(trusts(CATALOG_ARN)), **parameters)

    @pytest.mark.parametrize("description", ["データ", "Łódź", "x" * 1001])
    def test_description_of_a_role(self, aws: Aws, description: str) -> None:
        with expect_refusal("ValidationError"):
            aws.role(trusts(ROOT), Description=description)
        aws.role(trusts(ROOT), Description="Reads acme/é/")

    def test_too_short_a_session(self, aws: Aws) -> None:
        sts = aws.client("sts", "lakekeeper", parameter_validation=False)
        with expect_refusal("ValidationError", "durationSeconds"):
            sts.assume_role(RoleArn=aws.role(trusts(CATALOG_ARN)), RoleSessionName="session", DurationSeconds=899)

    def test_a_longer_session_where_the_role_permits_it(self, aws: Aws) -> None:
        role = aws.role(trusts(CATALOG_ARN), MaxSessionDuration=7200)
        assert aws.assume(role, DurationSeconds=7200)
        chained = aws.role(trusts(role), MaxSessionDuration=7200)
        with expect_refusal("ValidationError", "role chaining"):
            aws.assume(chained, aws.assume(role), DurationSeconds=7200)

    def test_a_trust_policy_with_an_unknown_principal(self, aws: Aws) -> None:
        with expect_refusal("MalformedPolicyDocument", "Invalid principal"):
            aws.role(trusts(f"arn:aws:iam::{ACCOUNT}:user/nobody"))


class TestTokens:
    def test_a_session_ends(self, aws_with_clock: tuple[Aws, AwsClock]) -> None:
        aws, clock = aws_with_clock
        bucket = aws.bucket()
        session = aws.assume(aws.role(trusts(CATALOG_ARN), allow("s3:*")), DurationSeconds=900)
        s3 = aws.client("s3", session)
        s3.put_object(Bucket=bucket, Key="a", Body=b"x")
        try:
            clock.ahead = timedelta(seconds=905)
            with expect_refusal("ExpiredToken"):
                s3.get_object(Bucket=bucket, Key="a")
            with expect_refusal("ExpiredToken"):
                aws.client("sts", session).get_caller_identity()
        finally:
            clock.ahead = timedelta()
        assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"x"

    @pytest.mark.parametrize("token", [None, "wrong"])
    def test_a_missing_or_wrong_token(self, aws: Aws, bucket: str, token: str | None) -> None:
        session = aws.assume(aws.role(trusts(CATALOG_ARN), allow("s3:*")))
        with expect_refusal("InvalidToken"):
            read(aws, {**session, "SessionToken": token}, bucket, "t1/data")

    def test_a_users_key_takes_no_token(self, aws: Aws, bucket: str) -> None:
        _, key = aws.user(allow("s3:*"))
        with expect_refusal("InvalidToken"):
            read(aws, {**key, "SessionToken": "any"}, bucket, "t1/data")

    def test_a_session_of_a_deleted_role_ends_with_it(self, aws: Aws, bucket: str) -> None:
        role = aws.role(trusts(CATALOG_ARN))
        session = aws.assume(role)
        aws.client("iam").delete_role(RoleName=role.rpartition("/")[2])
        with expect_refusal("InvalidAccessKeyId"):
            read(aws, session, bucket, "t1/data")


class TestSessionsOfUsersThemselves:
    """AssumeRole without a RoleArn, as S3-compatible stores offer it."""

    def own_session(self, aws: Aws, key: dict[str, Any], **parameters: Any) -> dict[str, Any]:
        sts = aws.client("sts", key, parameter_validation=False)
        return dict(sts.assume_role(RoleSessionName="session", **parameters)["Credentials"])

    def test_limited_by_the_session_policy(self, aws: Aws, bucket: str) -> None:
        arn, key = aws.user(allow("s3:*", f"arn:aws:s3:::{bucket}/*"))
        session = self.own_session(aws, key, Policy=policy(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/t1/*")))
        assert read(aws, session, bucket, "t1/data") == b"x"
        with expect_refusal():
            read(aws, session, bucket, "t2/data")
        assert aws.client("sts", session).get_caller_identity()["Arn"] == arn

    def test_never_more_than_the_user(self, aws: Aws, bucket: str) -> None:
        _, key = aws.user(allow("s3:GetObject", f"arn:aws:s3:::{bucket}/t1/*"))
        session = self.own_session(aws, key, Policy=policy(allow("s3:*")))
        assert read(aws, session, bucket, "t1/data") == b"x"
        with expect_refusal():
            read(aws, session, bucket, "t2/data")
