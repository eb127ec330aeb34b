"""`aws.iam.Role`, `RolePolicy` and `RolePolicyAttachment`: a role with its trust policy, and its policies."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from typing_extensions import override

from lakewright_sandbox.providers.aws.resources.calls import ignore_codes
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.kind import (
    POLICY,
    ResourceKind,
    ResourceProperty,
    list_removed_tags,
    tags_from_aws,
    tags_to_aws,
    timestamp,
)
from lakewright_sandbox.providers.protocol.properties import Properties
from lakewright_sandbox.typed.boto import ClientError, error_code

_NOT_FOUND_CODE = "NoSuchEntity"


class IamRole(ResourceKind):
    """An IAM role."""

    token = "aws:iam/role:Role"  # noqa: S105
    title = "role"
    properties = {
        "assumeRolePolicy": POLICY,
        "description": ResourceProperty(default=""),
        "forceDetachPolicies": ResourceProperty(default=False),
        "maxSessionDuration": ResourceProperty(default=3600),
        "name": ResourceProperty(replaces=True, required=True),
        "path": ResourceProperty(replaces=True, default="/"),
        "permissionsBoundary": ResourceProperty(default=""),
        "tags": ResourceProperty(default={}),
    }
    computed_outputs = ("arn", "createDate", "tagsAll", "uniqueId")

    @override
    def find_id(self, inputs: Properties) -> str:
        return inputs["name"]

    @override
    def create(self, aws: AwsConnection, inputs: Properties) -> None:
        optional = {
            "Description": inputs.get("description"),
            "PermissionsBoundary": inputs.get("permissionsBoundary"),
            "Tags": tags_to_aws(inputs.get("tags")),
        }
        aws.client("iam", once=True).create_role(
            RoleName=inputs["name"],
            Path=inputs.get("path") or "/",
            AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
            MaxSessionDuration=inputs.get("maxSessionDuration") or 3600,
            **{key: value for key, value in optional.items() if value},
        )

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        try:
            role = aws.client("iam").get_role(RoleName=resource_id)["Role"]
        except ClientError as error:
            if error_code(error) == _NOT_FOUND_CODE:
                return None
            raise
        tags = tags_from_aws(role.get("Tags", []))
        return {
            "arn": role["Arn"],
            "assumeRolePolicy": _document(role["AssumeRolePolicyDocument"]),
            "createDate": timestamp(role["CreateDate"]),
            "description": role.get("Description") or "",
            "forceDetachPolicies": bool(olds.get("forceDetachPolicies")),
            "maxSessionDuration": role.get("MaxSessionDuration") or 3600,
            "name": role["RoleName"],
            "path": role["Path"],
            "permissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn", ""),
            "tags": tags,
            "tagsAll": tags,
            "uniqueId": role["RoleId"],
        }

    @override
    def update(self, aws: AwsConnection, resource_id: str, olds: Properties, news: Properties) -> None:
        iam = aws.client("iam")
        changed = {
            name for name, p in self.properties.items() if not p.equal(olds.get(name), news.get(name, p.default))
        }
        if "assumeRolePolicy" in changed:
            iam.update_assume_role_policy(RoleName=resource_id, PolicyDocument=news["assumeRolePolicy"])
        if changed & {"description", "maxSessionDuration"}:
            iam.update_role(
                RoleName=resource_id,
                Description=news.get("description") or "",
                MaxSessionDuration=news.get("maxSessionDuration") or 3600,
            )
        if "permissionsBoundary" in changed:
            if news.get("permissionsBoundary"):
                iam.put_role_permissions_boundary(RoleName=resource_id, PermissionsBoundary=news["permissionsBoundary"])
            else:
                iam.delete_role_permissions_boundary(RoleName=resource_id)
        if "tags" in changed:
            removed_names = list_removed_tags(olds, news)
            if removed_names:
                iam.untag_role(RoleName=resource_id, TagKeys=removed_names)
            if news.get("tags"):
                iam.tag_role(RoleName=resource_id, Tags=tags_to_aws(news["tags"]))

    @override
    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        iam = aws.client("iam")
        with ignore_codes(_NOT_FOUND_CODE):
            if olds.get("forceDetachPolicies"):
                _detach_all(iam, resource_id)
            iam.delete_role(RoleName=resource_id)


def _detach_all(iam: Any, role: str) -> None:
    for page in iam.get_paginator("list_attached_role_policies").paginate(RoleName=role):
        for policy in page["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
    for page in iam.get_paginator("list_role_policies").paginate(RoleName=role):
        for name in page["PolicyNames"]:
            iam.delete_role_policy(RoleName=role, PolicyName=name)


class IamRolePolicy(ResourceKind):
    """An inline policy of a role. Its id is `role:name`."""

    token = "aws:iam/rolePolicy:RolePolicy"  # noqa: S105
    title = "role policy"
    properties = {
        "name": ResourceProperty(replaces=True, required=True),
        "policy": POLICY,
        "role": ResourceProperty(replaces=True, required=True),
    }

    @override
    def find_id(self, inputs: Properties) -> str:
        return f"{inputs['role']}:{inputs['name']}"

    @override
    def create(self, aws: AwsConnection, inputs: Properties) -> None:
        aws.client("iam").put_role_policy(
            RoleName=inputs["role"], PolicyName=inputs["name"], PolicyDocument=inputs["policy"]
        )

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        role, _, name = resource_id.partition(":")
        try:
            policy = aws.client("iam").get_role_policy(RoleName=role, PolicyName=name)
        except ClientError as error:
            if error_code(error) == _NOT_FOUND_CODE:
                return None
            raise
        return {"name": name, "policy": _document(policy["PolicyDocument"]), "role": role}

    @override
    def update(self, aws: AwsConnection, resource_id: str, olds: Properties, news: Properties) -> None:
        self.create(aws, news)

    @override
    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        role, _, name = resource_id.partition(":")
        with ignore_codes(_NOT_FOUND_CODE):
            aws.client("iam").delete_role_policy(RoleName=role, PolicyName=name)


class IamRolePolicyAttachment(ResourceKind):
    """A managed policy of a role. Its id is `role/arn`."""

    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"  # noqa: S105
    title = "policy attachment"
    properties = {
        "policyArn": ResourceProperty(replaces=True, required=True),
        "role": ResourceProperty(replaces=True, required=True),
    }

    @override
    def find_id(self, inputs: Properties) -> str:
        return f"{inputs['role']}/{inputs['policyArn']}"

    @override
    def create(self, aws: AwsConnection, inputs: Properties) -> None:
        aws.client("iam").attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        role, _, arn = resource_id.partition("/")
        try:
            pages = [*aws.client("iam").get_paginator("list_attached_role_policies").paginate(RoleName=role)]
        except ClientError as error:
            if error_code(error) == _NOT_FOUND_CODE:
                return None
            raise
        attached = {policy["PolicyArn"] for page in pages for policy in page["AttachedPolicies"]}
        return {"policyArn": arn, "role": role} if arn in attached else None

    @override
    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        role, _, arn = resource_id.partition("/")
        with ignore_codes(_NOT_FOUND_CODE):
            aws.client("iam").detach_role_policy(RoleName=role, PolicyArn=arn)


def _document(document: Any) -> str:
    """Return a policy as text; botocore parses the encoded JSON that IAM sends."""
    return unquote(document) if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
